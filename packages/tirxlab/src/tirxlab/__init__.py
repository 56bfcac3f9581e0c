"""The names that kernels import: `from tirxlab import Tx, TMABar, PipelineState, ...`.

The dialect needs TVM, which takes seconds to import. It is loaded on first use, so that
`import tirxlab.artifact` works on a machine that has no TVM at all.

The simulator takes its settings from the lab: LAB_JOBS, and the lab's cache for its compiled code.
"""

import contextlib
import os


def _settings() -> None:
    """Sets ptxsim's environment variables; skipped if a package is missing: who needs it will report that."""
    if os.environ.get("LAB_JOBS"):
        os.environ.setdefault("PTXSIM_JOBS", os.environ["LAB_JOBS"])
    with contextlib.suppress(ImportError, OSError):
        from tirxlab.cache_folder import root

        os.environ.setdefault("PTXSIM_CACHE", str(root() / "ptxsim"))


_settings()

DIALECT_NAMES = (
    "Tx",
    "TMABar",
    "TCGen05Bar",
    "MBarrier",
    "PipelineState",
    "ClusterPersistentScheduler2D",
    "tma_shared_layout",
    "SwizzleMode",
    "TileLayout",
    "S",
    "TLane",
    "TCol",
    "axis_tid_in_wg",
    "KernelError",
)

__all__ = list(DIALECT_NAMES)


def __getattr__(name: str):
    if name not in DIALECT_NAMES:
        raise AttributeError(f"module 'tirxlab' has no attribute {name!r}; it exports {', '.join(__all__)}")
    from tirxlab import dialect

    return getattr(dialect, name)
