"""Diagnosis: picks, among the causes of ptxsim/causes, the one that the record of a run shows."""
