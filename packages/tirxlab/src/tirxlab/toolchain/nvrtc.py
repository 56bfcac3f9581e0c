"""CUDA text -> PTX, cubin and the resource usage that ptxas reports, with the NVRTC of the Python wheels.

Needs no GPU, driver, CUDA toolkit or C++ compiler, and no TVM.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tirxlab.artifact import Artifact
from tirxlab.toolchain.lean_headers import HEADERS

# `cuda.h` is part of the toolkit, not of the wheels; kernels need only this one type from it. A struct that
# is itself named CUtensorMap would clash with the forward declaration in <cuda/barrier>.
TENSOR_MAP = (
    "struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; };\n"
    "typedef struct CUtensorMap_st CUtensorMap;\n"
)
# Without --no-cache NVRTC may answer from its own cache, with an empty log.
FLAGS = ("--std=c++17", "-default-device", "--disable-warnings", "--ptxas-options=-v", "--no-cache")
# With the text, the architecture and NVRTC's version this determines the output: a part of cache keys.
SETTINGS = (*FLAGS, hashlib.sha256(repr(HEADERS).encode()).hexdigest()[:16])

SOURCE_MARK = (
    "lab_src"  # `lab_src(N);` in the CUDA text: the code after it comes from line N of the student's file
)
_MARK = re.compile(rf"\b{SOURCE_MARK}\((\d+)\);")
_FOREIGN_NAME = re.compile(
    r"\b(?=\w*[^\W\x00-\x7f])\w+?(?=(?:_buf)?(?:_ptr)?(?:_\d+)?\b)"
)  # without TVM's endings
_FOREIGN_INSTRUCTION = re.compile(r"Instruction '([\w.:]+)' not supported on \.target '(\w+)'")
_REFUSED = re.compile(r"^ptxas .*\binput, line (\d+); error *: (.*)", re.MULTILINE)
_PTX_MARK = re.compile(r"// @src (\d+)")
OTHER_CHIP = "is an instruction of another chip: there is none for"
_PLAIN = {  # part of a message -> what it means
    "must have integral or unscoped enum type": "an index is a fraction: `/` always gives one, write `//`",
    "may only be used within a loop": "a loop that runs once at this size is none any more: an `if` around "
    "the rest of its body does the same",
}
NO_ASCII = "CUDA takes only ASCII letters in names: rename {}"
_MAX_LINES, _MAX_WIDTH = 12, 400  # of a message
T = TypeVar("T")


class CompileError(ValueError):
    """NVRTC refused the program. log: its full text; errors: [(line of the CUDA text, message)]; ptx: what
    ptxas refused.
    """

    def __init__(self, log: str, errors: list[tuple[int, str]], ptx: str = ""):
        super().__init__(errors[0][1] if errors else log.strip().splitlines()[0] if log.strip() else "failed")
        self.log, self.errors, self.ptx = log, errors, ptx


@dataclass(frozen=True)
class Compiled:
    """The result of compiling one CUDA program. Sizes are per thread."""

    ptx: str
    cubin: bytes
    registers: int
    spills: int  # bytes, stores and loads together
    stack: int  # bytes
    version: str  # of NVRTC, "13.0"


def version() -> str:
    """The version of NVRTC, "13.0"; ImportError with the package to install if there is none."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


def compile_cuda(source: str, arch: str, *, entry: str | None = None) -> Compiled:
    """Compile CUDA C++ for `arch` ("sm_80", "sm_90a", "sm_100a"); CompileError if NVRTC or ptxas refuses.

    `entry` names the kernel whose registers and spills are reported; without it the largest of each is.
    """
    return _with_lean_headers(source, lambda headers: _compile(source, arch, entry, headers))


def _with_lean_headers(source: str, compiled: Callable[[dict[str, str]], T]) -> T:
    if any(f"#include <{name}>" in source for name in HEADERS):
        try:
            return compiled(HEADERS)
        except CompileError:  # it needs the real headers, or it is wrong: compile again to find out
            pass
    return compiled({})


def compile_ptx(source: str, arch: str, *flags: str) -> str:
    """The PTX only, without ptxas; `flags` go to NVRTC beside the usual ones. CompileError as above."""
    usual = [flag for flag in FLAGS if not flag.startswith("--ptxas")]
    virtual = arch.replace("sm_", "compute_")

    def made(headers: dict[str, str]) -> str:
        every = [*usual, *flags]
        return _translate(source, virtual, headers, every, lambda lib, program, log: _ptx(lib, program))

    return _with_lean_headers(source, made)


def _compile(source: str, arch: str, entry: str | None, headers: dict[str, str]) -> Compiled:
    def results(lib, program, log: str) -> Compiled:
        cubin = _data(lib.nvrtcGetCUBINSize, lib.nvrtcGetCUBIN, program)
        return Compiled(_ptx(lib, program), cubin, *resources(log, entry), version())

    return _translate(source, arch, headers, FLAGS, results)


def _ptx(lib, program) -> str:
    return _text(lib.nvrtcGetPTXSize, lib.nvrtcGetPTX, program)


def _translate(source: str, arch: str, headers: dict[str, str], flags, results: Callable):
    """Runs NVRTC; returns `results(lib, program, log)`. `headers`: name -> text, before the include path."""
    prelude = TENSOR_MAP if "CUtensorMap" in source else ""
    text = prelude + re.sub(r"#include\s*<cuda\.h>", "", source)
    options = [f"-I{path}" for path in _include_dirs()] + [f"--gpu-architecture={arch}", *flags]
    lib = _nvrtc()
    texts, names = ([part.encode() for part in parts] for parts in (headers.values(), headers))
    program = _call(lib.nvrtcCreateProgram, text.encode(), b"kernel.cu", len(headers), texts, names)
    try:
        (status,) = lib.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        log = _text(lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog, program)
        if status != lib.nvrtcResult.NVRTC_SUCCESS:
            errors = _errors(log, shift=prelude.count("\n"))
            raise CompileError(log, errors, _ptx(lib, program) if _REFUSED.search(log) else "")
        return results(lib, program, log)
    finally:
        lib.nvrtcDestroyProgram(program)


def finish(draft: Artifact, whole: bool = True) -> Artifact:
    """A draft with its PTX, cubin and resources. CompileError if NVRTC or ptxas refuses its CUDA text.

    Unless `whole`, only the PTX, which is all that the simulator needs, in half the time.
    """
    if not whole:
        return replace(draft, ptx=compile_ptx(draft.cuda, draft.arch))
    made = compile_cuda(draft.cuda, draft.arch, entry=draft.entry)
    return replace(
        draft,
        ptx=made.ptx,
        cubin=made.cubin,
        registers=made.registers,
        spills=made.spills,
        stack=made.stack,
        tools={**draft.tools, "nvrtc": made.version},
    )


def first_error(error: CompileError, cuda: str) -> tuple[str, int]:
    """(what is wrong, at most one screen; the student's line to which it belongs, 0 if unknown)."""
    if not error.errors and (foreign := _FOREIGN_INSTRUCTION.search(error.log)):
        return f"{foreign[1]} {OTHER_CHIP} {foreign[2]}", _refused_line(error)
    if not error.errors and (refused := _REFUSED.search(error.log)):
        return f"the generated CUDA does not assemble: {refused[2][:_MAX_WIDTH]}", _refused_line(error)
    if not error.errors:
        lines = [line[:_MAX_WIDTH] for line in error.log.splitlines() if line.strip()][:_MAX_LINES]
        return "the generated CUDA does not assemble: " + "\n".join(lines), 0
    line, message = error.errors[0]
    text = cuda.splitlines()[line - 1].strip() if 0 < line <= cuda.count("\n") + 1 else ""
    if foreign := _FOREIGN_NAME.search(text):
        return NO_ASCII.format(foreign[0]), 0
    message += next((f": {plain}" for part, plain in _PLAIN.items() if part in message), "")
    reason = f"the generated CUDA does not compile: {message}\n    CUDA line {line}: {text[:_MAX_WIDTH]}"
    return reason, source_line(cuda, line) or 0


def _refused_line(error: CompileError) -> int:
    """The student's line to which the line of PTX belongs that ptxas refused; 0 if unknown."""
    refused = _REFUSED.search(error.log)
    above = error.ptx.splitlines()[: int(refused[1])] if refused else []
    return int(next((m[1] for line in reversed(above) for m in [_PTX_MARK.search(line)] if m), 0))


def source_line(cuda: str, line: int) -> int | None:
    """The student's line to which line `line` (1-based) of the CUDA text belongs."""
    above = cuda.splitlines()[:line]
    found = [m.group(1) for text in above for m in _MARK.finditer(text)]
    return int(found[-1]) if found else None


def resources(log: str, entry: str | None = None) -> tuple[int, int, int]:
    """(registers, spill bytes, stack bytes) of `entry`, or the largest of each, from the log of ptxas -v."""
    found: dict[str | None, list[int]] = {}
    name = None
    for line in log.splitlines():
        if m := re.search(r"(?:Compiling entry function|Function properties for) '?([\w$]+)'?", line):
            name = m.group(1)
            found.setdefault(name, [0, 0, 0])
        elif m := re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line
        ):
            found[name][1:] = int(m.group(2)) + int(m.group(3)), int(m.group(1))
        elif m := re.search(r"Used (\d+) registers", line):
            found[name][0] = int(m.group(1))
    rows = [found[entry]] if entry in found else list(found.values())
    if not rows:
        raise ValueError(f"no resource figures in the log of ptxas: {log[:300]!r}")
    return tuple(max(column) for column in zip(*rows, strict=True))


def _nvrtc():
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ImportError(
            f"NVRTC is missing ({error}): pip install cuda-bindings cuda-toolkit[nvrtc]"
        ) from None
    return nvrtc


def _include_dirs() -> list[Path]:
    """The include folders of the CUDA wheels: cuda_fp16.h and the like, and libcu++."""
    import nvidia

    for root in map(Path, nvidia.__path__):
        include = root / "cu13" / "include"
        if (include / "cuda_fp16.h").is_file():
            return [include, include / "cccl"]
    raise ImportError("the CUDA headers are missing: pip install 'cuda-toolkit[cudart,cccl,crt]==13.0.*'")


def _errors(log: str, shift: int) -> list[tuple[int, str]]:
    """[(line, message)] of the compiler's errors, in lines of the text before the prelude was added."""
    found = re.findall(r"^kernel\.cu\((\d+)\): error: (.*)$", log, re.MULTILINE)
    return [(int(line) - shift, message.strip()) for line, message in found]


def _call(function, *args) -> Any:
    status, *values = function(*args)
    if status != type(status)(0):
        raise RuntimeError(f"{function.__name__} failed: {status}")
    return values[0] if values else None


def _data(size, read, program) -> bytes:
    data = bytes(_call(size, program))
    _call(read, program, data)
    return data


def _text(size, read, program) -> str:
    return _data(size, read, program).rstrip(b"\0").decode()
