"""Phrases that all checks use in their messages: source lines, phases, counts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def source_line(program, row: int) -> str:
    """`line 12`, or `PTX line 40` if the source line is unknown; row: of the instruction."""
    instr = program.instrs[row]
    return f"line {instr.src}" if instr.src else f"PTX line {instr.line}"


def line_number(program, row: int) -> int:
    """The source line of an instruction; if it is unknown, minus the line of the PTX text."""
    instr = program.instrs[row]
    return instr.src or -instr.line


def lines_text(numbers: Sequence[int]) -> str:
    """`line 12`, `lines 12 and 15`, `PTX lines 40 and 41`: for numbers of `line_number`."""
    kind = "PTX line" if min(numbers) < 0 else "line"
    return f"{kind}{'s' * (len(numbers) > 1)} {' and '.join(str(abs(number)) for number in numbers)}"


def spot(program, row: int) -> tuple[Hashable, ...]:
    """What distinguishes a source line, also where one function is inlined twice."""
    instr = program.instrs[row]
    if not instr.src:
        return (instr.line,)
    calls, inlined = [], instr.inlined
    while inlined is not None:
        calls.append(inlined[1:3])
        inlined = inlined.outer
    return instr.src, instr.loc and instr.loc[0], *calls


def source_lines(program, first: int, last: int) -> str:
    """`lines 12 to 30`: the source lines of the instructions in rows first to last; "" if unknown."""
    lines = [instr.src for instr in program.instrs[first : last + 1] if instr is not None and instr.src]
    return f"lines {min(lines)} to {max(lines)}" if lines else ""


def phase_name(phase: int) -> str:
    """`phase 2`; a wait with parity 1 on a fresh barrier is for the phase before phase 0 (-1)."""
    return f"phase {phase}" if phase >= 0 else "the phase before the first"


def times(number: int) -> str:
    """`1 time`, `3 times`."""
    return f"{number} time{'s' * (number != 1)}"


def brings_bytes(instr) -> bool:
    """Whether an instruction's bytes count on an mbarrier: a copy, st.async, try_cancel."""
    return "mbarrier::complete_tx::bytes" in instr.mods


def load_unit(instr) -> str:
    """What brings an instruction's bytes to shared memory: `TMA load`, `st.async`."""
    if instr.op != "cp":
        return f"{instr.op}.{instr.mods[0]}"
    return "cp.async.bulk" if {"shared::cta", "shared::cluster"} <= set(instr.mods[:4]) else "TMA load"
