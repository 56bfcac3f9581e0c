"""The lab's front door for kernels: `from tirxlab import Tx, TMABar, PipelineState, ...`.

The dialect needs TVM, which costs seconds to import; it is loaded on first use, so that
`import tirxlab.artifact` works on a machine that has no TVM at all.

The simulator's own settings follow the lab's: LAB_JOBS, and its compiled code stands in the lab's cache.
"""

import contextlib
import os


def _settings() -> None:
    """Of ptxsim. Where the environment is damaged they are left out: what needs the package says so."""
    if os.environ.get("LAB_JOBS"):
        os.environ.setdefault("PTXSIM_JOBS", os.environ["LAB_JOBS"])
    with contextlib.suppress(ImportError, OSError):
        from tirxlab.toolchain.cache import root

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
