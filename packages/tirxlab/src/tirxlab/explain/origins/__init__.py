"""Where a wrong element of D comes from: its way back through a run, step by step, to rows of A and B."""
