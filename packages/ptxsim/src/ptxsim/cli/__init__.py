"""The command `ptxsim`."""
