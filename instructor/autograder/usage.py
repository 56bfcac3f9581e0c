"""The CPU time and memory that grading a submission has used."""

import os
import time

from tirxlab.sandbox import tree

try:
    import resource
except ModuleNotFoundError:  # Windows
    resource = None  # type: ignore[assignment]


def cpu_seconds() -> float:
    """CPU seconds of this process, of those below it and of those that they have waited for."""
    if resource is None:
        return time.process_time()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return tree.cpu_seconds(os.getpid()) or sum(u.ru_utime + u.ru_stime for u in used)


def most_memory(largest: int) -> int:
    """Bytes of the largest process so far; `largest`: of those that this process does not wait for."""
    if resource is None:
        return largest
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    return max(largest, unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
