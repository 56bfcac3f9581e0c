"""The state of a cluster (memories, barriers, warps) and what moves it forward."""
