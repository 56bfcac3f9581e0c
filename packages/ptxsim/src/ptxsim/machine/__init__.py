"""The state of a cluster (memories, barriers, warps) and the scheduler that runs it."""
