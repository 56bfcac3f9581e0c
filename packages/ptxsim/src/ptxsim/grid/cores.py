"""How many processes share the clusters of a launch."""

from __future__ import annotations

import os


def cores() -> int:
    """Processes to use: $PTXSIM_JOBS, else the cores this process may run on.

    Raises ValueError for a setting that is no number.
    """
    asked = os.environ.get("PTXSIM_JOBS", "")
    if asked:
        if not (asked.isdecimal() and int(asked)):
            raise ValueError(f"PTXSIM_JOBS={asked}: it takes how many processes to use, 1 or more")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
