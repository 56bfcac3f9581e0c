"""The same kernel launched ten times on a GPU, each time watched: what became of its result."""

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
    """How often each thing happened: says(arrays after the launch), or the finding of a launch that failed
    (then no more).

    arrays: fresh ones for each launch. Raises DeviceError where the GPU takes no such kernel.
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
