"""Costs of a warp's plain instructions: issue slots, pipes, registers they wait for.

The chip does not run PTX: sass_count.py or sass_guess.py says how many instructions a row becomes. A run of
plain instructions is issued in the order of the machine code (sass_order.py) with its encoded stalls or,
without machine code, in PTX order. A run needs a register when its first reader is due, and provides one as
soon as its writer is done. Without machine code, waits within a run do not stall the warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ptxsim.frontend.ast import registers_of
from ptxsim.timing.pipes import AWAITED, CYCLES, LATENCY, passes, pipe


class PipeUse(NamedTuple):
    """The parts of one instruction that determine its cost."""

    name: str
    pipe: str  # of pipes.py
    reads: tuple[str, ...]
    writes: tuple[str, ...]


_NO_RESULT = {
    *("st", "red", "stmatrix", "cp", "prefetch", "bar", "barrier", "fence", "membar"),
    *("bra", "ret", "exit"),
}


def describe(instr) -> PipeUse:
    """The PipeUse of one instruction of a program."""
    alone = instr.op in _NO_RESULT or instr.name.startswith("wmma.store") or not instr.operands
    first = () if alone else tuple(registers_of(instr.operands[:1]))
    rest = instr.operands if not first else instr.operands[1:]
    return PipeUse(instr.op, pipe(instr.op, instr.mods), tuple(registers_of(rest)), first)


class Rows:
    """The rows of a program; descriptions and costs are cached."""

    def __init__(
        self, instrs: list, sass_counts: Sequence[float], alu_latency: float, stalls: Sequence[float] = ()
    ):
        self.instrs, self.sass_counts, self.alu_latency = instrs, sass_counts, alu_latency
        self.stalls = stalls  # row -> cycles for which its instructions stall the warp; () if unknown
        self.row = lru_cache(None)(self._row)
        self.run = lru_cache(None)(self._run)
        self.roots = lru_cache(None)(self._roots)

    def _row(self, row: int) -> PipeUse:
        instr = self.instrs[row]
        return describe(instr) if instr is not None else PipeUse("", "none", (), ())

    def pipe(self, number: int) -> str:
        """The pipe of the machine instructions that a row becomes; "none" if it becomes none."""
        if not self.sass_counts[number]:
            return "none"
        found = self.row(number).pipe
        return "either" if found == "none" else found

    def _run(self, first: int, last: int) -> tuple[float, dict[str, float], dict[str, float]]:
        """(issue slots, register from outside -> cycles until its first reader, written register -> cycles
        until its last value is ready). Cycles count from the first slot; instructions are in PTX order.
        """
        busy: dict[str, float] = dict.fromkeys(CYCLES, 0)
        needed: dict[str, float] = {}
        ready: dict[str, float] = {}
        slots = 0.0
        for number in range(first, last + 1):
            row, left = self.row(number), self.sass_counts[number]
            name = self.pipe(number)
            place = max(slots, *busy.values())
            slots += left
            for one, cycles in passes(name, left).items():
                busy[one] += cycles
            for read in row.reads:
                if read not in ready:
                    needed.setdefault(read, place)
            issued = max(place, slots - 1, *(ready.get(r, needed.get(r, 0)) for r in row.reads))
            ready.update(dict.fromkeys(row.writes, issued + LATENCY.get(name, 1) * self.alu_latency))
        return max(slots, *busy.values()), needed, ready

    def in_order(self, uses: Iterable[tuple]) -> tuple[float, float, dict[str, float], dict[str, float]]:
        """(issue slots, cycles in which other warps may issue, and the two dicts of `run`) of instructions in
        machine-code order, in which each waits for its operands. uses: (row, registers read, registers
        written).
        """
        used: dict[str, float] = dict.fromkeys(CYCLES, 0)
        free: dict[str, float] = dict.fromkeys(CYCLES, 0)
        needed: dict[str, float] = {}
        ready: dict[str, float] = {}
        slots = now = 0.0
        for number, reads, writes in uses:
            left, name = self.sass_counts[number], self.pipe(number)
            taken = passes(name, left)
            there = max((ready.get(r, 0.0) for r in reads), default=0.0)
            begin = max(now, there, *(free[one] for one in taken)) if left else max(now, there)
            for read in reads:
                if read not in ready:
                    needed.setdefault(read, begin)
            if left:
                held = max(left, self.stalls[number]) if self.stalls else left
                slots, now = slots + left, begin + held
            for one, cycles in taken.items():
                used[one] += cycles
                free[one] = begin + cycles
            done = begin + max(0.0, left - 1) + LATENCY.get(name, 1) * self.alu_latency
            if self.stalls and name not in AWAITED:
                done = min(done, now)  # the encoded stalls cover the latency
            ready.update(dict.fromkeys(writes, done))
        busy = max(slots, *used.values())
        return busy, max(0.0, now - busy), needed, ready

    def _roots(self, first: int, last: int) -> dict[str, frozenset]:
        """Register that a run writes -> registers from outside from which its value is computed."""
        found: dict[str, frozenset] = {}
        for number in range(first, last + 1):
            row = self.row(number)
            parts = [found.get(r, frozenset((r,))) for r in row.reads]
            guard = self.guard(number)
            for name in row.writes:
                before = [found.get(name, frozenset((name,)))] if guard else []
                found[name] = frozenset().union(*parts, *before)
        return found

    def guard(self, number: int) -> bool:
        instr = self.instrs[number]
        return instr is not None and instr.pred is not None
