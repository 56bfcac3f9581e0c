"""Generated source on disk: written once under a hash of everything that it depends on, then imported.

Its machine code (`compiled.generated`) is in the same folder. Because of the hash, neither is ever stale, and
the folder may be copied or read-only.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import platformdirs

from ptxsim.jit import shipped

Made = TypeVar("Made")
_PACKAGE = Path(__file__).parents[1]
_SOURCES = ("jit/*.py", "isa/mathlib/*.py", "isa/address_map.py", "isa/operands.py")  # it may import these


def cache_directory() -> Path:
    """The folder of generated code: $PTXSIM_CACHE, the user's cache directory, or a temporary one."""
    path = _wanted()
    return path if _made(path) else _temporary()


def _made(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def _wanted() -> Path:
    asked = os.environ.get("PTXSIM_CACHE")
    return Path(asked) if asked else platformdirs.user_cache_path("ptxsim", appauthor=False)


@functools.cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="ptxsim-"))


@functools.cache
def _sources():
    """The hash of everything that generated code may import, and of the compiler's version."""
    digest = hashlib.sha256(shipped.compiler().encode())
    for path in sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern)):
        digest.update(path.read_bytes())
    return digest


def remembered(name: str, sources: tuple[str, ...], make: Callable[[], Made], key: str = "") -> Made:
    """The result of `make()`, which must fit into JSON; from disk if it was made from the same sources and
    key.

    sources: patterns of files of this package from which it is made, in addition to those of all generated
    code.
    """
    digest = _sources().copy()
    for path in sorted(path for pattern in sources for path in _PACKAGE.glob(pattern)):
        digest.update(path.read_bytes())
    digest.update(key.encode())
    path = cache_directory() / f"{name}_{digest.hexdigest()[:24]}.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):  # not there yet, or damaged
        made = make()
        with contextlib.suppress(OSError):  # the disk is full or read-only: the next process makes it again
            write_whole(path, json.dumps(made).encode())
        return made


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically, because other processes may look for it."""
    handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(part, path)


_COMPILES = "the simulator compiles itself, about half a minute"
FIRST_RUN = f"first run: {_COMPILES}, once"
ANNOUNCED = "PTXSIM_COMPILATION_ANNOUNCED"  # environment variable: set once the user has been told


def first_run() -> str:
    """The line for the user when the simulator compiles itself. It says why, if a wheel contains code that
    does not fit, and if it will happen each time.
    """
    if not _made(_wanted()) or not os.access(_wanted(), os.W_OK):
        return f"{_COMPILES}, each time: {_wanted()} cannot be written (set PTXSIM_CACHE to another folder)"
    misfit = shipped.misfit()
    return FIRST_RUN + (f"; the code in this release cannot be used: {misfit}" if misfit else "")


def is_cold() -> bool:
    """Whether nothing is compiled here yet, so that the first launch takes about half a minute longer."""
    return not (shipped.usable() or any(cache_directory().glob("ptxsim_*.code")))


def import_generated(text: str, key: str = "", slow: bool = False):
    """Imports generated source from a file named by a hash of the source and of the helpers that it calls.

    key: a digest of other functions that it calls (`compiled.digest_of_module`). slow: compiling it takes
    long enough to be announced on standard error.
    """
    digest = _sources().copy()
    digest.update((text + key).encode())
    name = f"ptxsim_{digest.hexdigest()[:24]}"
    if name in sys.modules:
        return sys.modules[name]
    path = cache_directory() / f"{name}.py"
    if not path.exists():
        try:
            write_whole(path, text.encode())
        except OSError:  # it has to be a file to be imported
            path = _temporary() / path.name
            write_whole(path, text.encode())
    kept = any(path.parent.glob(f"{name}.*.code")) or shipped.holds(name)
    if slow and ANNOUNCED not in os.environ and not kept:
        print(first_run(), file=sys.stderr, flush=True)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # no memory, or Ctrl-C: the next launch must not use a partial module
        del sys.modules[name]
        raise
    return module
