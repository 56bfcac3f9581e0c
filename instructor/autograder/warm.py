"""The simulator compiled before any limit counts: once for a machine and a version, whoever grades first."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import ptxsim
from ptxsim import cache_directory
from tirxlab.checkout import environment

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

COMPILE = "import ptxsim; ptxsim.warm_up()"


def compiled() -> None:
    """Returns once it is compiled. A process of its own does it: this one needs none of it."""
    mark = cache_directory() / f"warm-{_version()}"
    if mark.exists():
        return
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(open(mark.with_suffix(".lock"), "w"))
        except OSError:  # a disk that nothing can be written to: what is not compiled by now never will be
            return
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():  # somebody else was faster
            return
        done = subprocess.run([sys.executable, "-c", COMPILE], env=environment(), stdout=subprocess.DEVNULL)
        if done.returncode == 0:
            with contextlib.suppress(OSError):
                mark.touch()


def _version() -> str:
    """Of everything that is compiled, and of who compiles it."""
    root = Path(ptxsim.__file__).parent
    seen = [
        (str(path.relative_to(root)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in root.rglob("*.py")
    ]
    text = repr((sys.version, importlib.metadata.version("numba"), str(root), sorted(seen)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
