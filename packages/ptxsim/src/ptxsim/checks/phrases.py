"""Phrases that all checks use in their messages: source lines, phases, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from ptxsim.lowering.emit import Program

_SHOWN = 4  # names of a list
SourceLine = tuple[str, int]  # file, "" where messages need not name it; line, or minus that of the PTX text


def line_of(program: Program, row: int) -> SourceLine:
    """The line by which messages name an instruction."""
    instr = program.by_row[row]
    file = instr.at.file if instr.src and program.several_files else ""
    return file or "", instr.src or -instr.line


def source_line(program: Program, row: int) -> str:
    """`line 12`, `gemm.cuh:12` in a program of several files, or `PTX line 40` if the line is unknown."""
    return lines_text([line_of(program, row)])


def line_at(program: Program, where: dict) -> SourceLine:
    """The line by which messages name the place of a finding, which has a line."""
    rows = (row for row, i in program.by_row.items() if i.line == where["ptx_line"])
    return line_of(program, next(rows))


def lines_text(lines: Sequence[SourceLine]) -> str:
    """`line 12`, `lines 12 and 15`, `gemm.cuh:12 and gemm.cuh:15`, `PTX lines 40 and 41`."""
    kind = "" if lines[0][0] else "PTX line" if lines[0][1] < 0 else "line"
    numbers = [f"{file}:{line}" if file else str(abs(line)) for file, line in lines]
    return f"{kind}{'s' * (kind != '' and len(lines) > 1)} {' and '.join(numbers)}".lstrip()


def spot(program: Program, row: int) -> tuple[Hashable, ...]:
    """What distinguishes a source line, also where one function is inlined twice."""
    instr = program.by_row[row]
    return (instr.src, *instr.at.places()) if instr.src else (instr.line,)


def copies_of(program: Program, row: int) -> set[int]:
    """The rows that unrolling made of one instruction of a source line, with this one."""
    name, at = program.by_row[row].name, spot(program, row)
    alike = (r for r, i in program.by_row.items() if i.name == name)
    return {r for r in alike if spot(program, r) == at}


def source_lines(program: Program, first: int, last: int) -> str:
    """`lines 12 to 30`: the source lines of the instructions in rows first to last; "" if unknown.

    In a program of several files, those of the file that has the most.
    """
    found = [i for i in program.instrs[first : last + 1] if i is not None and i.src]
    [(file, _)] = Counter(i.at.file for i in found).most_common(1) or [(None, 0)]
    lines = [i.src for i in found if i.src and i.at.file == file]
    return f"lines {min(lines)} to {max(lines)}{f' of {file}' * program.several_files}" if lines else ""


def phase_name(phase: int) -> str:
    """`phase 2`; a wait with parity 1 on a fresh barrier is for the phase before phase 0 (-1)."""
    return f"phase {phase}" if phase >= 0 else "the phase before the first"


def times(number: int) -> str:
    """`1 time`, `3 times`."""
    return f"{number} time{'s' * (number != 1)}"


def some_of(names: Sequence[str]) -> str:
    """`a, b, c`, or `a, b, c, d and 3 more`."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def brings_bytes(instr) -> bool:
    """Whether an instruction's bytes count on an mbarrier: a copy, st.async, try_cancel."""
    return "mbarrier::complete_tx::bytes" in instr.mods


def load_unit(instr) -> str:
    """What brings an instruction's bytes to shared memory: `TMA load`, `st.async`."""
    if instr.op != "cp":
        return f"{instr.op}.{instr.mods[0]}"
    return "cp.async.bulk" if {"shared::cta", "shared::cluster"} <= set(instr.mods[:4]) else "TMA load"
