"""Ground truth by construction: random synchronisation programs whose happens-before is known without ptxsim.

model -> generate -> execute (who comes after whom) -> emit (PTX) -> compare (with ptxsim's verdict).
"""
