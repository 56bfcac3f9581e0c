"""What instructions of a warp cost by themselves: issue slots, pipes, registers they wait for.

PTX is not what runs. How many instructions a row becomes, sass_count.py and sass_guess.py say. A run of plain
instructions is issued in the order of the machine code (sass_order.py), with the stalls that stand in it,
without one in that of PTX: it needs a register when its first reader is due, and gives one as soon as its
writer is done. Without machine code, what waits within a run does not hold up the warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ptxsim.frontend.ast import registers_of
from ptxsim.timing.pipes import AWAITED, CYCLES, LATENCY, passes, pipe


class PipeUse(NamedTuple):
    """One instruction, as far as its cost goes."""

    name: str
    pipe: str  # of pipes.py
    reads: tuple[str, ...]
    writes: tuple[str, ...]


_NO_RESULT = (
    "st",
    "red",
    "bar",
    "barrier",
    "stmatrix",
    "bra",
    "cp",
    "prefetch",
    "fence",
    "membar",
    "ret",
    "exit",
)


def describe(instr) -> PipeUse:
    """The row of one instruction of a program."""
    alone = instr.op in _NO_RESULT or instr.name.startswith("wmma.store") or not instr.operands
    first = () if alone else tuple(registers_of(instr.operands[:1]))
    rest = instr.operands if not first else instr.operands[1:]
    return PipeUse(instr.op, pipe(instr.op, instr.mods), tuple(registers_of(rest)), first)


class Rows:
    """Rows of a program, described once."""

    def __init__(
        self, instrs: list, sass_counts: Sequence[float], alu_latency: float, stalls: Sequence[float] = ()
    ):
        self.instrs, self.sass_counts, self.alu_latency = instrs, sass_counts, alu_latency
        self.stalls = stalls  # cycles that the instructions of a row hold up their warp, where that is known
        self.row = lru_cache(None)(self._row)
        self.run = lru_cache(None)(self._run)
        self.roots = lru_cache(None)(self._roots)

    def _row(self, row: int) -> PipeUse:
        instr = self.instrs[row]
        return describe(instr) if instr is not None else PipeUse("", "none", (), ())

    def _run(self, first: int, last: int) -> tuple[float, dict[str, float], dict[str, float]]:
        """(issue slots, register from outside -> cycles before its first reader, register that is written ->
        cycles until its last value is there). Both count from the first slot, in the order of PTX.
        """
        busy: dict[str, float] = dict.fromkeys(CYCLES, 0)
        needed: dict[str, float] = {}
        ready: dict[str, float] = {}
        slots = 0.0
        for number in range(first, last + 1):
            row, left = self.row(number), self.sass_counts[number]
            name = "none" if not left else "either" if row.pipe == "none" else row.pipe
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
        """Of (row, registers that it reads, that it writes), in the order of the machine code, in which each
        waits for its operands: (issue slots, cycles in which others may issue, and the two of `run`).
        """
        used: dict[str, float] = dict.fromkeys(CYCLES, 0)
        free: dict[str, float] = dict.fromkeys(CYCLES, 0)
        needed: dict[str, float] = {}
        ready: dict[str, float] = {}
        slots = now = 0.0
        for number, reads, writes in uses:
            row, left = self.row(number), self.sass_counts[number]
            name = "none" if not left else "either" if row.pipe == "none" else row.pipe
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
                done = min(done, now)  # whoever comes behind is told to wait for it
            ready.update(dict.fromkeys(writes, done))
        busy = max(slots, *used.values())
        return busy, max(0.0, now - busy), needed, ready

    def _roots(self, first: int, last: int) -> dict[str, frozenset]:
        """Register that a run writes -> registers from outside that its value comes from."""
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
