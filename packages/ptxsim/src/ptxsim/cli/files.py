"""Loads a module from a file: .ptx, .cu (compiled by nvcc or NVRTC), fat binary, program with PTX inside."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from ptxsim.cli.common import Bad


def module_of(path: Path, arch: str = "sm_90a"):
    """(LoadedModule, its PTX). Raises Bad if the file gives no module."""
    import ptxsim

    text = ptx_of(path, arch)
    try:
        return ptxsim.load(text, refuse=False), text
    except ptxsim.PtxError as error:
        raise Bad(f"{path}: {error}") from None


def ptx_of(path: Path, arch: str) -> str:
    """The PTX in a file. Of several PTX texts, the newest one."""
    from ptxsim.driver.fatbin import ImageError, inside, ptx_of

    named = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if named is None:
        raise Bad(f"--arch must be an architecture such as sm_90a or sm_100a (got {arch!r})")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Bad(f"{path} cannot be read: {error.strerror}") from None
    if path.suffix in (".cu", ".cuh"):
        return compiled(path, arch)
    if path.suffix == ".ptx":
        if any(byte < 9 for byte in data[:1000].rstrip(b"\0")):
            raise Bad(f"{path} is not text: rename a fat binary or a program so that it does not end in .ptx")
        return data.partition(b"\0")[0].decode("utf-8", "replace")
    capability = int(named[1])
    try:
        newest = max((i.target[0] for i in inside(data) if i.text), default=capability)
        return ptx_of(data, newest)
    except ImageError as error:
        raise Bad(f"{path}: {error}") from None


def compiled(path: Path, arch: str) -> str:
    """Compiles CUDA C++ to PTX: with nvcc if it is installed, otherwise with NVRTC (cuda-bindings)."""
    from ptxsim.cli.nvcc import nvcc

    found = nvcc()
    if found is None:
        return _by_nvrtc(path, arch)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        command = [found, f"-arch={arch}", "-std=c++17", "-lineinfo", "-ptx", str(path), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            told = (line for line in done.stderr.splitlines() if "error" in line or "fatal" in line)
            lines = [line for line in told if line.isprintable()] or ["nvcc failed"]
            raise Bad(f"{path} does not compile: {lines[0]}")
        return out.read_text()


def _by_nvrtc(path: Path, arch: str) -> str:
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise Bad(
            "a .cu file needs nvcc, or `pip install cuda-bindings cuda-toolkit[nvrtc,cudart]`"
        ) from None
    includes = [f"-I{path.parent}"] + [f"-I{d}" for root in _wheels() for d in (root, root / "cccl")]
    options = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "-default-device",
        "--generate-line-info",
        *includes,
    ]
    _, program = nvrtc.nvrtcCreateProgram(path.read_bytes(), str(path).encode(), 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
        nvrtc.nvrtcGetProgramLog(program, log)
        lines = [line for line in log.decode("utf-8", "replace").splitlines() if "error" in line]
        raise Bad(f"{path} does not compile: {(lines or ['NVRTC gives no reason'])[0]}")
    text = bytes(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()


def _wheels() -> list[Path]:
    """The folders of CUDA headers in installed wheels."""
    try:
        import nvidia
    except ImportError:
        return []
    return [
        p for root in nvidia.__path__ for p in Path(root).glob("*/include") if (p / "cuda_fp16.h").is_file()
    ]
