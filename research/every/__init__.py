"""Every interleaving of small programs, enumerated outright, beside ptxsim's verdict on the same programs.

programs -> explore (all interleavings; nothing of ptxsim) -> ptx -> compare.
"""
