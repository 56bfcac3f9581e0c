"""Pieces of sentences that all checks write: a line of the source, a phase, how often."""

from __future__ import annotations


def source_line(program, row: int) -> str:
    """`line 12`, `PTX line 40` where the source is not known. row: of an instruction."""
    instr = program.instrs[row]
    return f"line {instr.src}" if instr.src else f"PTX line {instr.line}"


def source_lines(program, first: int, last: int) -> str:
    """`lines 12 to 30` of the source, of the instructions in these rows; "" where it is not known."""
    lines = [instr.src for instr in program.instrs[first : last + 1] if instr is not None and instr.src]
    return f"lines {min(lines)} to {max(lines)}" if lines else ""


def phase_name(phase: int) -> str:
    """`phase 2`; a wait with parity 1 on a fresh barrier is for the one before phase 0."""
    return f"phase {phase}" if phase >= 0 else "the phase before the first"


def times(number: int) -> str:
    """`1 time`, `3 times`."""
    return f"{number} time{'s' * (number != 1)}"
