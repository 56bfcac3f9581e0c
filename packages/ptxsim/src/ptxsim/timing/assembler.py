"""Assembles PTX with ptxas, if that is installed, to machine code with a table of PTX lines.

ptxas is part of the CUDA toolkit and of the wheel nvidia-cuda-nvcc. `-lineinfo` keeps what `.loc` says, so a
copy of the PTX gets a `.loc` before each instruction. That does not change the code: the opcodes of twelve
kernels were the same without it. Cubins are cached on disk under a hash of the PTX and of ptxas.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ptxsim.jit.code_cache import cache_directory, write_whole

SECONDS = 120  # time limit of ptxas
_COMMENT = re.compile(r"//.*")
_BEGINS = re.compile(r"[@a-z]")
_TOLD = re.compile(r"\.(loc|file)\b")
_BOTH = re.compile(r"^(\.reqntid\b.*\n)\.maxntid\b.*$", re.MULTILINE)


def assembled(ptx: str, arch: str) -> bytes:
    """The cubin of a PTX module; b"" if there is no ptxas, or if it refuses the text."""
    tool = ptxas()
    if tool is None:
        return b""
    stamp = f"{tool} {tool.stat().st_size} {tool.stat().st_mtime_ns} {arch}\n{ptx}"
    kept = cache_directory() / "sass" / f"{hashlib.sha256(stamp.encode()).hexdigest()[:32]}.cubin"
    if kept.exists():
        return kept.read_bytes()
    made = _assembled(tool, located(ptx), arch)
    if made:
        with contextlib.suppress(OSError):
            kept.parent.mkdir(exist_ok=True)
            write_whole(kept, made)
    return made


@functools.cache
def ptxas() -> Path | None:
    """The path of ptxas: from the wheel, from CUDA_HOME or CUDA_PATH, or from PATH; None if there is none."""
    homes = [Path(folder) / "nvidia" / "cu13" for folder in sys.path if folder]
    homes += [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    places = [home / "bin" / "ptxas" for home in homes]
    if found := shutil.which("ptxas"):
        places.append(Path(found))
    return next((place for place in places if place.is_file()), None)


def _assembled(tool: Path, ptx: str, arch: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as folder:
        text, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        text.write_text(ptx)
        command = [str(tool), f"-arch={arch}", "-lineinfo", str(text), "-o", str(cubin)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            return b""
        return cubin.read_bytes() if done.returncode == 0 and cubin.exists() else b""


def accepted(ptx: str) -> str:
    """The PTX as ptxas accepts it: drops .maxntid after .reqntid (NVRTC writes both), keeps line numbers."""
    return _BOTH.sub(r"\1", ptx)


def located(ptx: str) -> str:
    """The PTX with a `.loc` before each line that starts an instruction: the number of the line in `ptx`."""
    found: list[str] = []
    depth, whole, told = 0, True, False
    for number, line in enumerate(accepted(ptx).splitlines(), 1):
        text = _COMMENT.sub("", line).strip()
        told = told or text.startswith(".section")  # of a line table in the given PTX
        if told or _TOLD.match(text):
            told = told and text != "}"
            continue
        if depth and whole and _BEGINS.match(text):
            found.append(f".loc 1 {number} 0")
        found.append(line)
        depth += text.count("{") - text.count("}")
        whole = text.endswith((";", "{", "}", ":")) if text else whole
    return "\n".join([*found, '.file 1 "kernel.ptx"', ""])
