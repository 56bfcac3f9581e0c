"""Errors of TVM's lowering and of NVRTC, cut to one screen and attributed to the student's line."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

from tvm.tirx.stmt_functor import post_order_visit
from tvm.tirx.tile_primitive import TilePrimitiveCall

from tirxlab.dialect.wording import NO_THREADS, plain
from tirxlab.toolchain import nvrtc

from .markers import line_of

_VARIABLE = (
    "{0} is a variable of the kernel, which this operation cannot take as a slice bound: "
    "write {0} = Tx.meta_var(...) where it is computed"
)
_MAX_LINES, _MAX_WIDTH = 12, 400


class BuildError(ValueError):
    """A kernel that cannot be compiled. `file` and `line` (1-based, 0 if unknown) are the student's."""

    def __init__(self, reason: str, file: str = "", line: int = 0):
        self.reason, self.file, self.line = reason, file, line
        where = f"{Path(file).name}:{line}: " if file and line else f"{Path(file).name}: " if file else ""
        text = linecache.getline(file, line).strip() if file and line else ""
        super().__init__(f"{where}{reason}" + (f"\n    {text}" if text else ""))


def lowering_message(error: Exception, kernel, info) -> BuildError:
    """TVM's message, without the program that it prints, at the line of the statement that it is about."""
    text = str(error)
    variable = re.search(r"Buffer (\w+) is used before its definition", text)
    if variable:
        line = _user(variable[1], kernel, info.file)
        return BuildError(_VARIABLE.format(variable[1]), info.file, line or info.line)
    line = _mentioned(text, kernel, info.file)
    if NO_THREADS in text:
        line = first_line_with("(cta|warpgroup|warp|thread)_id", info)
    return BuildError(plain(text) or _cut(text), info.file, line or info.line)


def _user(name: str, kernel, file: str) -> int | None:
    """The line of the first tile operation that reads a variable, preferably not a copy; None without one."""
    found = [(call, line) for line, call in _calls(kernel, file).items() if re.search(rf"\b{name}\b", call)]
    found.sort(key=lambda pair: "T.tile.copy" in pair[0])
    return found[0][1] if found else None


def compile_message(error: nvrtc.CompileError, cuda: str, info) -> BuildError:
    """NVRTC's first error, at the student's line to which its CUDA line belongs."""
    reason, line = nvrtc.first_error(error, cuda)
    if reason.startswith(nvrtc.NO_ASCII.format("")):
        line = first_line_with(reason.split()[-1], info)
    if nvrtc.OTHER_CHIP in reason and not line:
        line = first_line_with(reason.split(".")[0], info)
    return BuildError(reason, info.file, line or info.line)


def first_line_with(name: str, info) -> int:
    """The kernel's first line whose code has this name, a regular expression; 0 if none has it."""
    lines = enumerate(linecache.getlines(info.file)[info.line - 1 :], info.line)
    return next((line for line, text in lines if re.search(rf"\b{name}\b", text.split("#")[0])), 0)


# TVM's message on the shapes of a tile operation, as a regular expression -> the message for the student.
_SHAPES = {
    r"B_N=\d+ \* cta_group=\d *=(\d+) doesn't match N=(\d+)": r"the accumulator has \2 columns and B's tile "
    r"\1 rows: they must be equal, so slice tmem[:, :\1]",
    r"A_M=(\d+) doesn't match M=(\d+) from C region": r"the accumulator has \2 rows and A's tile \1: they "
    "must be equal",
    r"no MMA SMEM descriptor matches region shape \[([\d, ]+)\]": r"an operand of Tx.gemm_async is [\1], and "
    "its buffer's layout has no such tile: A and B are [rows, columns of K], as the buffer's shape and its "
    "tma_shared_layout have them",
    r"expected C_type=(\w+), got (\w+)": r"the accumulator in tensor memory is \1, not \2",
    r"layout T\.TileLayout\(T\.S\[\(([\d, ]+)\).* can not be grouped by shape \(([\d, ]+)\)": "a buffer "
    r"of shape (\2) has a layout of shape (\1): they must be the same",
    r"::kDLInt, DLDataTypeCode::kDLUInt\)\) is false: ([^|]*[^| ])": r"a whole number (a stage, an index) is "
    r"needed here, and `\1` is a condition: are two arguments in each other's place?",
    r"globalStrides\[\d\]=(\d+) must be a multiple of 16B": r"a row of the tensor in global memory is \1 B "
    "long, and TMA takes multiples of 16 B: is its Tx.Buffer of the right shape?",
    r"tma_auto stage=shared-chain": "TMA does not find this box in the layout of the shared buffer: it is "
    "tma_shared_layout(dtype, swizzle, shape of the buffer), and a box is all of the last dimensions, as "
    "Dsmem[part, :, :] is of (parts, rows, columns)",
    r"no-swizzle SMEM descriptors|swizzle mode .* not supported": "an operand of Tx.gemm_async "
    "has no layout that the tensor core reads: pool.alloc(.., layout=tma_shared_layout(..))",
}


def _cut(text: str) -> str:
    """The informative part of a message, at most a dozen lines."""
    for form, told in _SHAPES.items():
        found = re.search(form, text)
        if found:
            return found.expand(told)
    text = text.split("\nStack trace")[0].split("\nTraceback")[0]
    lines = _reasons(text) or [line.rstrip() for line in text.splitlines() if line.strip()]
    shown = [line if len(line) <= _MAX_WIDTH else line[:_MAX_WIDTH] + " ..." for line in lines[:_MAX_LINES]]
    return "\n".join(shown + ["..."] * (len(lines) > _MAX_LINES)) or "TVM gives no reason"


def _reasons(text: str) -> list[str]:
    """From TVM's table of tried lowerings of a tile operation: its name, then a line for each reason."""
    operation = re.search(r"dispatch failed: op=tirx\.tile\.(\w+)", text)
    rows = re.findall(r"^\| *([\w.]+) \(prio=.*?\) *\| *(.*?) *\|$", text, re.MULTILINE)
    if not operation:
        return []
    return [f"Tx.{operation[1]} cannot be lowered"] + [f"  {variant}: {reason}" for variant, reason in rows]


def _mentioned(text: str, kernel, file: str) -> int | None:
    """The line of the tile operation that the message quotes, else of the first one on the same buffers."""
    quoted = re.search(r"T\.tile\.\w+\(.*\)", text)
    printed = _calls(kernel, file)
    for same in (str, _names):
        for line, call in printed.items():
            if quoted and same(call) == same(quoted[0]):
                return line
    return None


def _calls(kernel, file: str) -> dict[int, str]:
    """The tile operations of a kernel as TVM prints them, by line."""
    calls: list[TilePrimitiveCall] = []
    post_order_visit(kernel.body, lambda n: calls.append(n) if isinstance(n, TilePrimitiveCall) else None)
    return {line: str(call).splitlines()[-1] for call in calls if (line := line_of(call, file))}


def _names(call: str) -> list[str]:
    """The operation and the buffers of a printed tile operation."""
    return re.findall(r"T\.tile\.\w+|\w+(?=\[)", call)
