"""Ground truth by construction: random synchronisation programs whose happens-before is known without ptxsim.

model -> generate -> execute (what happens before what) -> emit (PTX) -> compare (with ptxsim's verdict).
"""
