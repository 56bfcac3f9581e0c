"""Why it went wrong: what picks, of the causes of ptxsim/causes, the one that a record shows."""
