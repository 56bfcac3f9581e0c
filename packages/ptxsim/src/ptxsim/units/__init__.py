"""The hardware units, a file for each: the PTX forms of their instructions, and what these do."""
