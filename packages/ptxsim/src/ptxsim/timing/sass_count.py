"""How many instructions each PTX instruction became: counted in the machine code that ptxas made of it.

The table of lines says which row of PTX an instruction comes from. A loop of the machine code is the PTX loop
whose branch closes it. ptxas unrolls it: there are as many copies of its loads, stores and barriers as it
joins iterations, so an instruction of which there are as many stands for one in each. What it moved out of
a loop is counted where it went. Spills are among them, where they stand. 24 kernels were counted on an H200
(research/time/witness.py): the sum is 1.00 times the counter's in the median.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from ptxsim.frontend.ast import Instr
from ptxsim.timing.flow import Flow, flow
from ptxsim.timing.machine_code import NOTHING, Code

NOWHERE = -1  # the loop of what is in none
_SHARED = {"ld": {0x984}, "st": {0x388, 0x988}}  # LDS, STS
_GLOBAL = {"ld": {0x981}, "st": {0x386, 0x986}}  # LDG, STG
_COPIES = {0xFAE, 0x3B4, 0x5B4, 0x3B5}  # LDGSTS, UTMALDG, UTMASTG
_SURE = {  # instructions that ptxas neither drops nor makes two of
    "ldmatrix": {0x83B},
    "stmatrix": {0x844},
    "bar": {0x51D, 0xB1D},
    "barrier": {0x51D, 0xB1D},
    "shfl": {0x389, 0x589, 0x989, 0xF89},
}
_ELSE = {  # where a loop has none of them
    "mma": {0x23C, 0x237, 0x23F},  # HMMA, IMMA, DMMA
    "wgmma": {0x9F0, 0xDF0},
    **dict.fromkeys(("ex2", "rcp", "tanh"), {0x308}),  # MUFU
    **dict.fromkeys(("atom", "red"), {0x9A3, 0x98E, 0x38C, 0xF8C}),
}


class Place(NamedTuple):
    """Where the instructions of a row of PTX stand."""

    joined: int  # iterations that its block of the machine code does
    at: list[int]  # which instructions, as these run; of a load, a store, a shuffle these alone


class Counted:
    """counts: row -> instructions each time that it runs; stalls: cycles that these hold up the warp; places:
    row -> where they stand.
    """

    def __init__(self, program, code: Code):
        self.instrs, self.code, self.ptx = program.instrs, code, flow(program)
        self.block = {r: b for b in self.ptx.order for r in _rows(self.ptx, b)}
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
        """Loop of the machine code -> loop of PTX."""
        code, found = self.code.flow, {}
        for header, body in code.loops.items():
            ends = [code.blocks[b].end - 1 for b in body if header in code.blocks[b].next]
            own = [i for b in body if code.inside[b][-1] == header for i in _rows(code, b)]
            for some in (ends, own):
                votes = Counter(loop for i in some if (loop := self._around(self.row[i])) != NOWHERE)
                if votes:
                    found[header] = votes.most_common(1)[0][0]
                    break
        return found

    def _around(self, row: int) -> int:
        """The innermost PTX loop of a row."""
        loops = self.ptx.inside[self.block[row]] if row >= 0 else []
        return loops[-1] if loops else NOWHERE

    def _sums(self, values: list[int]) -> dict[int, dict[int, Counter]]:
        """Row -> loop of the machine code, the innermost -> opcode -> sum of the values of those there."""
        code = self.code.flow
        found: dict[int, dict[int, Counter]] = defaultdict(lambda: defaultdict(Counter))
        for b in code.order:
            loop = code.inside[b][-1] if code.inside[b] else NOWHERE
            for i in _rows(code, b):
                if self.row[i] >= 0 and self.code.opcodes[i] != NOTHING:
                    found[self.row[i]][loop][self.code.opcodes[i]] += values[i]
        return found

    def _main(self) -> dict[int, int]:
        """PTX loop -> the loop of the machine code that has most of it: others do the last iterations."""
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
        """The loop of the machine code in which a row runs."""
        around = reversed(self.ptx.inside[self.block[row]])
        return next((self.main[loop] for loop in around if loop in self.main), NOWHERE)

    def _unrolled(self) -> dict[int, int]:
        """Block of PTX -> iterations that ptxas joined."""
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
        """What is unrolled together: an innermost loop, or a block in none."""
        loops = self.ptx.inside[block]
        return (loops[-1], NOWHERE) if loops else (NOWHERE, block)

    def _each(self, sums: dict[int, dict[int, Counter]]) -> list[float]:
        """Of such sums: row -> the share of each time that it runs."""
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
        """Where each row stands in the loop in which it runs: in the block that has most of it."""
        code, found, count = self.code.flow, {}, 0
        standing: dict[int, dict[int, list[tuple]]] = defaultdict(lambda: defaultdict(list))
        for b in code.order:
            loop = code.inside[b][-1] if code.inside[b] else NOWHERE
            for i in _rows(code, b):
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
        """The row before the loops that an instruction of a row was moved out of."""
        around = self.code.flow.inside.get(place, []) if place != NOWHERE else []
        stays = {self.loop.get(header) for header in around}
        left = [loop for loop in self.ptx.inside[self.block[row]] if loop not in stays]
        return self.ptx.blocks[self.ptx.parent[left[0]]].end - 1 if left else None


def _rows(graph: Flow, block: int) -> range:
    return range(graph.blocks[block].start, graph.blocks[block].end)


def _marks(instr: Instr) -> set[int]:
    """Opcodes that say how many copies of a row there are; none if they are not sure to."""
    if instr.op in ("ld", "st"):
        if any(m.startswith("shared") for m in instr.mods):
            return _SHARED[instr.op]
        return _GLOBAL[instr.op] if "global" in instr.mods else set()
    if instr.op == "cp":
        return _COPIES if instr.name.startswith("cp.async.c") else set()
    return _SURE.get(instr.op, set())
