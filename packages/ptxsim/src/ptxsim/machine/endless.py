"""Detects loops that never end although they have effects: a cluster state that recurs, or too much work.

A cluster is deterministic. If everything that its threads can read (registers, shared, tensor and global
memory, barriers) returns to an earlier state after every runnable thread has had its turns, the cluster loops
forever: a loop over tiles that never takes the next one, or CTAs that poll a flag with bar.sync in the loop.
Findings name the smallest loop of the program that contains the rows where the warps were in the meantime.
"""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.isa.memory_access import LOOKS
from ptxsim.jit import bytecode
from ptxsim.machine.cluster_view import Cluster
from ptxsim.report.findings import Finding

START = 1024  # turns after which a cluster is watched; most clusters end before, and pay nothing
START_TOGETHER = 128  # the same, if other clusters may help this one
UNITS = 4  # unit instructions of one turn that take as long as a turn of compiled code
AGAIN = 3  # times that a state must recur
AGAIN_AT_RANDOM = 100  # the same if chance decides which split runs next: by then each has had a turn
MOST_INSTRUCTIONS = 4_000_000_000  # warp instructions of a cluster
SHUT = 1 << 11  # turns after which a loop that no jump leaves ends the run
_ACTS = {"st", "atom", "red", "cp", "wgmma", "tcgen05", "mma", "bar", "barrier", "call"}  # more than polling
POLLS = ("mbarrier.test_wait", "mbarrier.try_wait", "atom")


class Livelock:
    """Looks for states that recur, and for loops that copy the same tiles over and over."""

    def __init__(self, cluster: Cluster, most: int | None):
        self.most, self.first = most or MOST_INSTRUCTIONS, cluster.executed()
        self.copied: set = set()  # (kind, tensor, coordinates) of copies
        self.known_copies = 0  # copies since the last one of a new tile inside its tensor
        self.outside = 0  # how many of these are wholly outside of their tensors
        self.shut = False  # whether a warp is in a loop that no jump leaves
        self.left: dict[
            bool, int
        ] = {}  # hash of the state in which the cluster was last suspended, see below
        self.watch(START)

    def watch(self, start: int) -> None:
        """Starts to compare states after `start` more turns."""
        self.turns = self.again = 0
        self.start = self.next = start  # turn whose state is compared with later ones
        self.forget = 1  # turn from which `stood` starts again
        self.key: tuple[int, tuple, bytes] | None = None
        self.split: tuple[int, bytes] | None = None  # the split in `key`, and its row of the split table
        self.own: np.ndarray = np.empty(0, np.uint64)  # registers of its warp
        self.state: tuple | None = None
        self.memory: int | None = None
        self.stood: set[tuple[int, int]] = set()  # (warp, row) of the latest turns

    def came_back(self, cluster: Cluster, g: int) -> bool:
        """After a turn of split g: whether the cluster loops through the same states."""
        self.turns += 1
        if self.turns >= self.forget:  # rows before the loop must not count as part of it
            if self.turns >= SHUT:
                self.shut = any(loop_without_end(cluster.program, row) for _, row in self.stood)
            self.stood, self.forget = self.stood if self.shut else set(), 2 * self.turns
        self.stood.add((g // 32, cluster.split_table.item(g, bytecode.SP_PC)))
        if self.turns < self.start:
            return False
        fresh = self.turns >= self.next
        if not fresh and (self.split is None or g != self.split[0]):
            return False
        split, own = (g, cluster.split_table[g].tobytes()), cluster.registers[g // 32]
        if not fresh and (split != self.split or not np.array_equal(own, self.own)):
            return False  # a cheap test that is enough for most turns: in loops that end, registers differ
        key = (g, tuple(cluster.queue), cluster.split_table.tobytes())
        if fresh:
            self.next, self.again = 2 * self.turns, 0
            self.split, self.own = split, own.copy()
            self.key, self.state, self.memory = key, state_of(cluster), None
            return False
        if key != self.key or (state := state_of(cluster)) != self.state:
            return False
        before, self.memory = self.memory, memory_of(cluster)
        self.again = self.again + 1 if self.memory == before else 1
        drawn = cluster.engine.random and (len(cluster.queue) > 1 or state[-1])  # what comes next
        return self.again >= (AGAIN_AT_RANDOM if drawn else AGAIN)

    def same_as_left(self, cluster: Cluster, memory: bool = True) -> bool:
        """Whether the cluster is suspended in the same state as the last time that this was asked. memory:
        whether global memory counts, which takes long.
        """
        before = self.left.get(memory)
        self.left[memory] = hash((state_of(cluster), memory_of(cluster) if memory else 0))
        return self.left[memory] == before

    def copies(self, kind: str, tmap, start: tuple[int, ...]) -> None:
        """Notes that a tensor copy of the box at `start` was issued."""
        tile = (kind, tmap.segment, tmap.byte_offset, start)
        outside = tmap.misses(start)
        if outside or tile in self.copied:
            self.known_copies += 1
            self.outside += outside
        else:
            self.copied.add(tile)
            self.known_copies = self.outside = 0

    def same_tiles(self) -> bool:
        """Whether copies have brought no new tile for far longer than any loop over tiles would take."""
        return self.known_copies > 1024 + 64 * len(self.copied)

    def given_up(self, cluster: Cluster) -> bool:
        """Whether the cluster has done more work than any kernel that ends."""
        return self.same_tiles() or self.shut or self.spent(cluster)

    def spent(self, cluster: Cluster) -> bool:
        """Whether the cluster has used up its instructions."""
        return cluster.executed() - self.first > self.most

    def rows(self) -> dict[int, tuple[int, int]]:
        """Warp -> first and last row at which it was lately."""
        found: dict[int, list[int]] = {}
        for warp, row in sorted(self.stood):
            found.setdefault(warp, []).append(row)
        return {warp: (rows[0], rows[-1]) for warp, rows in found.items()}


def state_of(cluster: Cluster) -> tuple:
    """All state of a cluster but global memory. Of a barrier's phase only the parity counts: threads can read
    no more.
    """
    arrays = [cluster.registers, cluster.predicates, cluster.group_table, cluster.shared, cluster.local]
    arrays += [array for tmem in cluster.tmem for array in (tmem.owner, tmem.cells)]
    barriers = [(at, b.expected, b.pending, b.tx, b.phase & 1) for at, b in cluster.mbarriers.items()]
    arrived = [(key, bar.arrived) for key, bar in cluster.unit_state.items() if key[0] == "bar"]
    pending = [(work.label, len(queue)) for queue in cluster.engine.queues.values() for work in queue]
    return tuple(array.tobytes() for array in arrays), tuple(barriers), tuple(arrived), tuple(pending)


def memory_of(cluster: Cluster) -> int:
    """A checksum of global memory."""
    found = 0
    for array in cluster.launch.memory.arrays:
        found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return found


def polls(cluster: Cluster, livelock: Livelock) -> bool:
    """Whether a warp is in a loop that reads what others write: a barrier, an atomic, a strong load."""
    return any(_polls(cluster.program, span) for span in livelock.rows().values())


def _polls(program, span: tuple[int, int]) -> bool:
    first, last = loop_around(program, *span)
    inside = filter(None, program.instrs[first : last + 1])
    return any(instr.name.startswith(POLLS) or LOOKS & set(instr.mods) for instr in inside)


def hopeless(cluster: Cluster, livelock: Livelock) -> bool:
    """Whether every warp is in a loop that polls or that no jump leaves, so that none makes progress."""
    program, spans = cluster.program, livelock.rows().values()
    return all(_polls(program, span) or loop_without_end(program, span[0]) for span in spans)


def report(cluster: Cluster, livelock: Livelock, proven: bool) -> Finding:
    """The finding that names the warps and their loop. If not `proven`, the run was only given up, unless the
    program has no jump out of that loop.
    """
    cause = "endless"
    rows = livelock.rows()
    shut = {} if proven else {w: r for w, r in rows.items() if loop_without_end(cluster.program, r[0])}
    names, loops = _loops(cluster, shut or rows)
    never = "never leaves" if names.startswith("warp ") else "never leave"
    if shut:
        message = f"{names} {never} {loops}: no jump leads out of it"
    elif proven:
        message = f"{names} {never} {loops}: after every iteration, the cluster is in the same state again"
    elif livelock.same_tiles():
        known, outside, tiles = livelock.known_copies, livelock.outside, len(livelock.copied)
        what = f"{known} tensor copies in a row were of the same {tiles} tiles or outside of their tensors"
        if 2 * outside > known:
            what = f"{outside} of {known} tensor copies in a row lay outside of their tensors"
            cause = "endless-outside"
        message = f"no end in sight for {names} in {loops}: {what}. The run was given up"
    else:
        message = (
            f"{names} are still in {loops} after {cluster.executed() - livelock.first} warp instructions of "
            f"the cluster (max_instructions={livelock.most}). The run was given up"
        )
    hint = cluster.reporter.hints.hint(CAUSES[cause], "deadlock")
    where, evidence = _where(cluster, shut or rows), dict[str, object](cause=cause)
    if not proven and livelock.spent(cluster):
        evidence |= {"budget": livelock.most}
    return Finding("deadlock", "error" if proven or shut else "incomplete", message, hint, where, evidence)


def _loops(cluster: Cluster, rows: dict[int, tuple[int, int]]) -> tuple[str, str]:
    """(`warps 0, 4`, `the loop at lines 12 .. 30`)."""
    program, reporter = cluster.program, cluster.reporter
    heads = [loop_around(program, *span) for span in rows.values()] or [(0, len(program.code) - 1)]
    first, last = min(h[0] for h in heads), max(h[1] for h in heads)
    lines = [program.instrs[row] for row in range(first, last + 1) if program.instrs[row] is not None]
    warps = sorted({w % cluster.warps_per_cta for w in {*rows, *_waiting(cluster, first, last)}})
    names = f"warp{'s' * (len(warps) > 1)} {', '.join(map(str, warps))}" if warps else "threads"
    [(file, _)] = Counter(i.at.file for i in lines if i.src is not None).most_common(1) or [(None, 0)]
    sourced = [i for i in lines if i.src is not None and i.at.file == file] or lines
    low, high = (pick(sourced, key=lambda i: i.src or i.line) for pick in (min, max))
    begin, end = reporter.line_text(low), reporter.line_text(high)
    return names, f"the loop at {begin}" + (f" to {end.rpartition(':')[2]}" if end != begin else "")


def _waiting(cluster: Cluster, first: int, last: int) -> set[int]:
    """Warps that wait at an instruction between two rows."""
    return {g // 32 for g in cluster.waits if first <= cluster.splits[g].row <= last}


def _jumps(program) -> tuple[np.ndarray, np.ndarray]:
    """(rows of all branches, rows to which they jump)."""
    code = program.code
    rows = np.flatnonzero(code[:, bytecode.OP] == bytecode.BRA)
    return rows, code[rows, bytecode.IMM]


def _loops_around(program, first: int, last: int) -> list[tuple[int, int]]:
    """First and last row of each loop (a backward jump and its range) around two rows, the smallest first."""
    rows, targets = _jumps(program)
    jumps = zip(targets.tolist(), rows.tolist(), strict=True)
    around = [(to, at) for to, at in jumps if to <= first and at >= last]
    return sorted(around, key=lambda loop: loop[1] - loop[0])


def loop_around(program, first: int, last: int) -> tuple[int, int]:
    """First and last row of the smallest loop around two rows, or else those two rows."""
    return next(iter(_loops_around(program, first, last)), (first, last))


def only_asks(program, row: int) -> bool:
    """Whether the smallest loop around a row only polls, and perhaps sleeps."""
    first, last = loop_around(program, row, row)
    inside = [instr for instr in program.instrs[first : last + 1] if instr is not None]
    return first < last and not any(
        instr.op in _ACTS or instr.op == "mbarrier" and not instr.mods[0].endswith("_wait")
        for instr in inside
    )


def loop_without_end(program, row: int) -> tuple[int, int] | None:
    """First and last row of the smallest loop around a row that no jump, ret or exit leaves; None if every
    such loop can end.
    """
    jumps, targets = _jumps(program)
    for first, last in _loops_around(program, row, row):
        inside = (jumps >= first) & (jumps <= last)
        leaves = inside & ((targets < first) | (targets > last))
        ends = any(
            i is not None and i.op in ("ret", "exit", "trap") for i in program.instrs[first : last + 1]
        )
        falls = program.instrs[last] is None or program.instrs[last].pred is not None
        if not leaves.any() and not ends and not falls:
            return first, last
    return None


def _where(cluster: Cluster, rows: dict[int, tuple[int, int]]) -> dict:
    """The place of the first warp in `rows`: the first row of its loop whose line is not also that of the row
    before the loop.
    """
    if not rows:
        return {}
    w, span = min(rows.items())
    head, last = loop_around(cluster.program, *span)
    instrs = cluster.program.instrs
    known = [r for r in range(head, last + 1) if instrs[r] is not None]
    before = instrs[head - 1].src if head and instrs[head - 1] is not None else None
    row = next((r for r in known if instrs[r].src != before), known[0])
    return {
        **cluster.reporter.row_place(cluster, w // cluster.warps_per_cta, row),
        "warp": w % cluster.warps_per_cta,
    }
