"""ptxsim inside other tools: pytest, Triton."""
