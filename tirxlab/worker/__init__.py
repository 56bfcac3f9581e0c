"""Building code that nobody has read: student Python runs in a confined child whose only product is data.

    with Builder(text) as builder:
        built = builder.build(4, (512, 512, 512))      # Built: an artifact, or one line that says why not

The child (child.py) lowers a step to CUDA text and a launch. A second one, which runs no student code,
compiles it. The parent (session.py) takes bytes of limited size from them, within limited time, and validates
them. What a child may touch: levels.py.
"""

from tirxlab.worker.builder import Builder, Built, NoKernel, artifact_of
from tirxlab.worker.levels import LEVELS, strongest
from tirxlab.worker.limits import Limits
from tirxlab.worker.session import Session, WorkerError

__all__ = [
    "LEVELS",
    "Builder",
    "Built",
    "Limits",
    "NoKernel",
    "Session",
    "WorkerError",
    "artifact_of",
    "strongest",
]
