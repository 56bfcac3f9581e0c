"""The CPU time and memory that grading a submission has used."""

import os
import time

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    if resource is None:
        return time.process_time()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def most_memory() -> int:
    """Bytes of the largest process so far."""
    if resource is None:
        return 0
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
