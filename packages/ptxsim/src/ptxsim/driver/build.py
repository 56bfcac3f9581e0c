"""Compiles the stand-in (driver/native) with the system's C compiler: half a second, once; cached on disk.

A wheel may contain a compiled stand-in, in driver/prebuilt-<machine>.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from ptxsim.jit.code_cache import cache_directory

NATIVE = Path(__file__).with_name("native")
RUNTIMES = (11, 12, 13)  # major versions of libcudart that a program may ask for
_FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]


class BuildError(RuntimeError):
    """The stand-in cannot be built; the message is one line that says why."""


def library() -> Path:
    """The folder with libcuda.so.1 and libcudart.so.11.0, .12, .13; compiles them if necessary."""
    ready = Path(__file__).with_name(f"prebuilt-{platform.machine()}")
    if (ready / "libcuda.so.1").exists():
        return ready
    digest = hashlib.sha256(platform.machine().encode())
    for path in sorted(NATIVE.iterdir()):
        digest.update(path.read_bytes())
    folder = cache_directory() / f"standin_{digest.hexdigest()[:16]}"
    if not folder.exists():
        _install(folder)
    return folder


def _install(folder: Path) -> None:
    """Installs all files at once, because several processes may build at the same time."""
    part = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        build(part)
        os.rename(part, folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def build(folder: Path) -> None:
    """Compiles into `folder`. Raises BuildError without a C compiler and on systems other than Linux."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if platform.system() != "Linux":
        raise BuildError("`ptxsim exec` needs Linux (`ptxsim run` works everywhere)")
    if not compiler:
        raise BuildError("`ptxsim exec` needs a C compiler once: install gcc or clang, or set CC")
    sources = [str(path) for path in sorted(NATIVE.glob("*.c"))]
    _compile(
        [compiler, *_FLAGS, *sources, "-o", f"{folder}/libcuda.so.1", "-Wl,-soname,libcuda.so.1", "-ldl"]
    )
    for major in RUNTIMES:
        name = f"libcudart.so.{'11.0' if major == 11 else major}"
        script = folder / f"versions{major}"
        script.write_text(f"{name} {{ }};\n")
        shell = ["-x", "c", "/dev/null", "-o", f"{folder}/{name}", f"-Wl,-soname,{name}"]
        shell += [f"-Wl,--version-script={script}", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
        _compile([compiler, *_FLAGS, *shell, f"-L{folder}", "-l:libcuda.so.1"])


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        reason = next((line for line in said if "error" in line), said[0])  # its location may precede it
        raise BuildError(f"the C compiler could not build the stand-in: {reason}")
