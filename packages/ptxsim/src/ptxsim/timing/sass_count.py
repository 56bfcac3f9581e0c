"""Counts how many machine instructions (SASS) each PTX instruction became, in the code that ptxas made of it.

The line table says which row of PTX a machine instruction comes from. A loop of the machine code belongs to
the PTX loop whose branch closes it. If ptxas unrolls a loop, there are as many copies of its loads, stores
and barriers as iterations were joined, so the counts are divided by that number. Instructions that ptxas
moved out of a loop are counted where it put them, and spills where they occur. For 24 kernels on an H200
(research/time/witness.py), the median sum is 1.00 times that of the hardware counter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from ptxsim.frontend.ast import Instr
from ptxsim.timing.flow import NOWHERE, flow
from ptxsim.timing.machine_code import NOTHING, Code

_SHARED = {"ld": {0x984}, "st": {0x388, 0x988}}  # LDS, STS
_GLOBAL = {"ld": {0x981}, "st": {0x386, 0x986}}  # LDG, STG
_COPIES = {0xFAE, 0x3B4, 0x5B4, 0x3B5}  # LDGSTS, UTMALDG, UTMASTG
_SURE = {  # instructions that ptxas neither drops nor duplicates
    "ldmatrix": {0x83B},
    "stmatrix": {0x844},
    "bar": {0x51D, 0xB1D},
    "barrier": {0x51D, 0xB1D},
    "shfl": {0x389, 0x589, 0x989, 0xF89},
}
_ELSE = {  # used for loops that contain none of these
    "mma": {0x23C, 0x237, 0x23F},  # HMMA, IMMA, DMMA
    "wgmma": {0x9F0, 0xDF0},
    **dict.fromkeys(("ex2", "rcp", "tanh"), {0x308}),  # MUFU
    **dict.fromkeys(("atom", "red"), {0x9A3, 0x98E, 0x38C, 0xF8C}),
}


class Place(NamedTuple):
    """The machine instructions of a row of PTX."""

    joined: int  # PTX iterations that one pass of its block of machine code does
    at: list[int]  # positions of its instructions in program order; of a load, store or shuffle only these


class Counted:
    """Counts for one program. counts: row -> machine instructions per execution; stalls: row -> cycles for
    which these stall the warp; places: row -> Place.
    """

    def __init__(self, program, code: Code):
        self.instrs, self.code, self.ptx = program.instrs, code, flow(program)
        self.block = self.ptx.block_of()
        first: dict[int, int] = {}
        for row in self.block:
            if self.instrs[row] is not None:
                first.setdefault(self.instrs[row].line, row)
        self.row = [first.get(line, -1) for line in code.lines]
        self.loop = self._loops()
        self.copies = self._sums([1] * len(code.opcodes))
        self.main = self._main()
        self.unrolled = self._unrolled()
        self.counts = self._each(self.copies)
        self.stalls = self._each(self._sums(code.stalls))
        self.places = self._places()

    def _loops(self) -> dict[int, int]:
        """Loop of the machine code -> the PTX loop that it comes from."""
        code, found = self.code.flow, {}
        for header, body in code.loops.items():
            ends = [code.blocks[b].end - 1 for b in body if header in code.blocks[b].next]
            own = [i for b in body if code.innermost(b) == header for i in code.blocks[b].positions]
            for some in (ends, own):
                votes = Counter(loop for i in some if (loop := self._around(self.row[i])) != NOWHERE)
                if votes:
                    found[header] = votes.most_common(1)[0][0]
                    break
        return found

    def _around(self, row: int) -> int:
        """The innermost PTX loop around a row."""
        return self.ptx.innermost(self.block[row]) if row >= 0 else NOWHERE

    def _sums(self, values: list[int]) -> dict[int, dict[int, Counter]]:
        """Row -> innermost loop of the machine code -> opcode -> sum of the values of these instructions."""
        code = self.code.flow
        found: dict[int, dict[int, Counter]] = defaultdict(lambda: defaultdict(Counter))
        for b in code.order:
            loop = code.innermost(b)
            for i in code.blocks[b].positions:
                if self.row[i] >= 0 and self.code.opcodes[i] != NOTHING:
                    found[self.row[i]][loop][self.code.opcodes[i]] += values[i]
        return found

    def _main(self) -> dict[int, int]:
        """PTX loop -> the machine-code loop with most of its instructions; others do remaining iterations."""
        size: Counter = Counter()
        for row, places in self.copies.items():
            sure = 1000 * bool(_marks(self.instrs[row]))
            for loop, codes in places.items():
                size[loop] += codes.total() * (1 + sure)
        found: dict[int, int] = {}
        for header, loop in self.loop.items():
            if loop not in found or size[header] > size[found[loop]]:
                found[loop] = header
        return found

    def _place(self, row: int) -> int:
        """The loop of the machine code in which a row is executed."""
        around = reversed(self.ptx.inside[self.block[row]])
        return next((self.main[loop] for loop in around if loop in self.main), NOWHERE)

    def _unrolled(self) -> dict[int, int]:
        """Block of PTX -> number of iterations that ptxas joined."""
        votes: dict[bool, dict] = {sure: defaultdict(Counter) for sure in (True, False)}
        for row, places in self.copies.items():
            instr = self.instrs[row]
            wanted = _marks(instr)
            marked = wanted or _ELSE.get(instr.op, set())
            if count := sum(n for code, n in places[self._place(row)].items() if code in marked):
                votes[bool(wanted)][self._key(self.block[row])][count] += 1
        found = {}
        for b in self.ptx.order:
            chosen = votes[True][self._key(b)] or votes[False][self._key(b)]
            found[b] = max(chosen, key=lambda n: (chosen[n], n)) if chosen else 1
        return found

    def _key(self, block: int) -> tuple[int, int]:
        """A key for what is unrolled together: an innermost loop, or a block outside of loops."""
        loop = self.ptx.innermost(block)
        return (NOWHERE, block) if loop == NOWHERE else (loop, NOWHERE)

    def _each(self, sums: dict[int, dict[int, Counter]]) -> list[float]:
        """Row -> sum per execution of the row, from sums over the code (`_sums`)."""
        found = [0.0] * len(self.instrs)
        for row, places in self.copies.items():
            here = self._place(row)
            if here in places:
                found[row] += sums[row][here].total() / self.unrolled[self.block[row]]
            else:
                loop = max(places, key=lambda loop: places[loop].total())
                if (before := self._before(row, loop)) is not None:
                    found[before] += sums[row][loop].total()
        return found

    def _places(self) -> dict[int, Place]:
        """Row -> its instructions in the loop in which it is executed: in the block with most of them."""
        code, found, count = self.code.flow, {}, 0
        standing: dict[int, dict[int, list[tuple]]] = defaultdict(lambda: defaultdict(list))
        for b in code.order:
            loop = code.innermost(b)
            for i in code.blocks[b].positions:
                count += 1
                if self.row[i] >= 0 and loop == self._place(self.row[i]):
                    standing[self.row[i]][b].append((count, self.code.opcodes[i]))
        for row, blocks in standing.items():
            instr = self.instrs[row]
            marked = _marks(instr) or _ELSE.get(instr.op, set())
            sure = {b: [place for place, code in all_ if code in marked] for b, all_ in blocks.items()}
            chosen = max(blocks, key=lambda b: (len(sure[b]), len(blocks[b]), -b))
            at = sure[chosen] or [place for place, _ in blocks[chosen]]
            found[row] = Place(self.unrolled[self.block[row]], at)
        return found

    def _before(self, row: int, place: int) -> int | None:
        """The last row before the loops out of which ptxas moved an instruction of `row`, or None."""
        around = self.code.flow.inside.get(place, []) if place != NOWHERE else []
        stays = {self.loop.get(header) for header in around}
        left = [loop for loop in self.ptx.inside[self.block[row]] if loop not in stays]
        return self.ptx.blocks[self.ptx.parent[left[0]]].end - 1 if left else None


def _marks(instr: Instr) -> set[int]:
    """Opcodes whose number tells how many copies of a row there are; empty if none tells reliably."""
    if instr.op in ("ld", "st"):
        if any(m.startswith("shared") for m in instr.mods):
            return _SHARED[instr.op]
        return _GLOBAL[instr.op] if "global" in instr.mods else set()
    if instr.op == "cp":
        return _COPIES if instr.name.startswith("cp.async.c") else set()
    return _SURE.get(instr.op, set())
