"""Pieces of sentences that all checks write: a line of the source, a phase, how often."""

from __future__ import annotations


def source_line(program, row: int) -> str:
    """`line 12`, `PTX line 40` where the source is not known. row: of an instruction."""
    instr = program.instrs[row]
    return f"line {instr.src}" if instr.src else f"PTX line {instr.line}"


def phase_name(phase: int) -> str:
    """`phase 2`; a wait with parity 1 on a fresh barrier is for the one before phase 0."""
    return f"phase {phase}" if phase >= 0 else "the phase before the first"


def times(number: int) -> str:
    """`1 time`, `3 times`."""
    return f"{number} time{'s' * (number != 1)}"
