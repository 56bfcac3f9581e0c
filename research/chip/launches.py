"""Launches the same kernel ten times on a GPU, each under a watchdog, and counts the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tirxlab.artifact import Artifact

LAUNCHES = 10
LIMIT = "6"  # seconds until a launch counts as hung: LAB_TIMEOUT


def solution(track: str) -> Path:
    """The file with the rungs of a track ("ampere" or "hopper")."""
    return Path(__file__).parents[2] / f"instructor/solutions/{track}_kernels.py"


def launched(artifact: Artifact, arrays: Callable[[], list], says: Callable[[list], str]) -> Counter[str]:
    """How often each outcome occurred: says(arrays after the launch), or the finding of a launch that failed
    (which ends the series).

    arrays: makes fresh ones for each launch. Raises DeviceError if the GPU cannot run such a kernel.
    """
    from tirxlab.devices import cuda

    seen: Counter[str] = Counter()
    for _ in range(LAUNCHES):
        data = arrays()
        run = cuda.run(artifact, data)
        seen[says(data) if run.ran else run.findings[0].message[:200]] += 1
        if not run.ran:
            break
    return seen
