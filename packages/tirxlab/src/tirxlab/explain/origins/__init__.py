"""Where a wrong element of D comes from: its way back through a run, step by step, to the rows of A and B."""
