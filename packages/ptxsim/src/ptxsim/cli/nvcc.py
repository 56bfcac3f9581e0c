"""`ptxsim nvcc ARGS`: runs nvcc with the flags that keep PTX and line numbers in its output."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import typer

from ptxsim.cli.common import Bad

_CODE = re.compile(r"\b(code=)\[?([^\]]*)\]?")
_SHORT = re.compile(r"(?:-arch|--gpu-architecture)=?(.*)")
_CHIPS = {"a100": "80", "h200": "90a", "b200": "100a", "rtx5090": "120a"}


def command(context: typer.Context) -> int:
    """Run nvcc so that its output runs under `ptxsim exec`: PTX instead of machine code, line numbers kept.

    All arguments are nvcc's own. -arch=sm_90a becomes PTX for compute_90a; the default without -arch is
    compute_90a (PTXSIM_CHIP=b200: compute_100a).
    """
    found = nvcc()
    if found is None:
        raise Bad("nvcc was not found: put it in PATH, set CUDA_HOME, or `pip install nvidia-cuda-nvcc`")
    os.execv(found, [found, *linked(rewritten(context.args))])
    return 0


def nvcc() -> str | None:
    """The path of nvcc: from PATH, CUDA_HOME or the wheel; None if there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    places = [str(Path(home) / "bin" / "nvcc")] if home else []
    wheels = [str(p) for p in Path(__file__).parents[2].glob("nvidia/**/bin/nvcc")]
    return shutil.which("nvcc") or next((p for p in [*places, *wheels] if os.access(p, os.X_OK)), None)


def linked(arguments: list[str]) -> list[str]:
    """The arguments with `-lcuda` replaced by the stand-in, because libcuda exists only with a driver."""
    if "-lcuda" not in arguments:
        return arguments
    from ptxsim.driver.build import BuildError, library

    try:
        folder = library()
    except BuildError as error:
        raise Bad(str(error)) from None
    it = ["-L", str(folder), "-l:libcuda.so.1"]
    return [word for argument in arguments for word in (it if argument == "-lcuda" else [argument])]


def rewritten(arguments: list[str]) -> list[str]:
    """nvcc's arguments, changed so that it emits PTX for each architecture they name."""
    out, named, rest = [], False, iter(arguments)
    for argument in rest:
        short = _SHORT.fullmatch(argument)
        if short:
            named, value = True, short[1] or next(rest, "")
            out += _keep(value)
        elif argument.startswith(("-gencode", "--generate-code")):
            named = True
            value = argument.partition("=")[2] if "arch=" in argument else next(rest, "")
            out += ["-gencode", _CODE.sub(_ptx_only, value)]
        elif argument.startswith(("-code", "--gpu-code")):
            if argument in ("-code", "--gpu-code"):
                next(rest, "")
        else:
            out.append(argument)
    if not named:
        out += _keep("compute_" + _CHIPS.get(os.environ.get("PTXSIM_CHIP", "h200"), "90a"))
    if "-lineinfo" not in out and "--generate-line-info" not in out:
        out.append("-lineinfo")
    return out


def _keep(value: str) -> list[str]:
    number = value.rpartition("_")[2]
    if value in ("native", "all", "all-major", ""):
        number = "90a"
    return ["-gencode", f"arch=compute_{number},code=compute_{number}"]


def _ptx_only(match: re.Match) -> str:
    """code=[sm_90a,compute_90a] -> code=compute_90a."""
    names = [name.strip() for name in match[2].split(",")]
    return match[1] + names[-1].replace("sm_", "compute_").replace("lto_", "compute_")
