"""Every interleaving of small programs, enumerated exhaustively and compared with ptxsim's verdicts.

programs -> explore (all interleavings, without ptxsim) -> ptx -> compare.
"""
