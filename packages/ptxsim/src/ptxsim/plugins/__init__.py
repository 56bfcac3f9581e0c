"""ptxsim inside other tools: pytest, Triton, CuTe DSL, TileLang."""
