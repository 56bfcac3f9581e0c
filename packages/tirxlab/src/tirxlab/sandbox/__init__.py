"""Builds untrusted code: student Python runs in a confined child whose only product is data.

    with Builder(text) as builder:
        built = builder.build(4, (512, 512, 512))      # Built: an artifact, or one line that says why not

The child (child.py) lowers a step to CUDA text and a launch. A second child, which runs no student code,
compiles these. The parent (session.py) takes bytes of limited size from them, within limited time, and
validates them. levels.py says what a child may access.
The names below are imported on first use, so that a child can be started before all of this is imported.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .builder import Builder as Builder
    from .builder import Built as Built
    from .builder import NoKernel as NoKernel
    from .builder import artifact_of as artifact_of
    from .levels import LEVELS as LEVELS
    from .levels import strongest as strongest
    from .limits import Limits as Limits
    from .session import Session as Session
    from .session import WorkerError as WorkerError

_COMES_FROM = {
    "LEVELS": "levels",
    "strongest": "levels",
    "Limits": "limits",
    "Session": "session",
    "WorkerError": "session",
    "Builder": "builder",
    "Built": "builder",
    "NoKernel": "builder",
    "artifact_of": "builder",
}
__all__ = sorted(_COMES_FROM)


def __getattr__(name: str):
    if name not in _COMES_FROM:
        raise AttributeError(f"module 'tirxlab.sandbox' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tirxlab.sandbox.{_COMES_FROM[name]}"), name)
