"""How many processes share the clusters of a launch."""

from __future__ import annotations

import os


def cores() -> int:
    """The number of processes to use: $PTXSIM_JOBS, or else the cores that this process may run on.

    Raises ValueError if PTXSIM_JOBS is not a positive integer.
    """
    asked = os.environ.get("PTXSIM_JOBS", "")
    if asked:
        if not (asked.isdecimal() and int(asked)):
            raise ValueError(f"PTXSIM_JOBS={asked}: must be the number of processes to use, 1 or more")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
