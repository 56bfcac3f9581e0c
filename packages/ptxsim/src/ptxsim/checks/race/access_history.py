"""Looks up every access to shared and global memory in its shadow, and keeps the conflicts that this
finds, one `AccessPair` per pair of lines.
"""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.data_loads import data_loads
from ptxsim.checks.race.deferred_reads import HELD, DeferredReads
from ptxsim.checks.race.other_clusters import OtherClusters
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.shadow_access import COMPLETE, NEEDS_READS, touch_log, touch_spans
from ptxsim.checks.race.shadow_bytes import MEMORY, PAGE, SHARED, cleared, grown, new_shadow
from ptxsim.checks.race.shadow_order import (
    AGENT,
    AGENT_SHIFT,
    CODE,
    CONFLICT,
    CONSTANT,
    DATA,
    EPOCH,
    EPOCH_MASK,
    EPOCH_SHIFT,
    MAX_CONFLICTS,
    NARROW,
    OBSERVES,
    POSITION,
    PREVIOUS,
    ROW,
    SAME_VALUE,
    SERIAL,
    STORE,
    STRONG,
    WRITE_WRITE,
)
from ptxsim.checks.race.shadow_words import (
    AGENTS_PER_CTA,
    DONE,
    EVENTS,
    FENCE_ROOM,
    FIRST_COPY,
    LANES,
    NOW,
    STORES,
    THREADS,
    WINDOW,
    WORDS,
    describe,
)
from ptxsim.checks.static_flow import definitions
from ptxsim.events.views import Cluster
from ptxsim.frontend.ast import Imm, Reg, Vec
from ptxsim.isa.memory_access import Ordering, ordering
from ptxsim.jit.bytecode import LOG_PLACE
from ptxsim.lowering.emit import Program
from ptxsim.machine.tensor_map import MAP_BYTES

_NOTHING = np.zeros(0, np.int32)


class AccessHistory(Part):
    """Part of the RaceDetector, and the last to start: the access history of a launch. That of global
    memory lasts until the launch ends, that of shared memory as long as a cluster runs.
    """

    def __init__(self, races):
        super().__init__(races)
        launch = races.launch
        self.reads = DeferredReads(launch.memory)
        clusters = launch.clusters[0] * launch.clusters[1] * launch.clusters[2]
        self.memory = new_shadow(self.reads.size)
        self.window = launch.shared_window  # bytes of a CTA's shared memory
        self.shared = new_shadow(self.window * launch.ctas_per_cluster)
        self.others = OtherClusters(clusters)
        self.orderings, self.strong, self.kinds = _flags(launch.program)
        self.out = {
            space: np.zeros((MAX_CONFLICTS + 1, CONFLICT), np.int64) for space in (SHARED, MEMORY, "tmem")
        }  # conflicts that compiled code has noted
        self.words = np.zeros((2, WORDS), np.int64)  # a row for shared and one for global memory
        self.row = {SHARED: self.words[0], MEMORY: self.words[1]}
        self.now = 0  # index of the cluster + 1
        self.together = [self]  # the histories of clusters that run at the same time

    def begin(self, index: int) -> None:
        """Attributes the accesses that follow to cluster `index`."""
        self.now = index + 1
        self.others.begin(self.now)
        self.words[:, NOW] = self.now
        self.pairs: dict[tuple, AccessPair] = {}

    def start(self, cluster: Cluster) -> None:
        self.begin(cluster.index)
        self.shared = cleared(self.shared)
        self.copied = np.zeros(self.races.clocks.threads, np.int32)  # scratch: ProxyFences.copies_seen
        self.words[:, [DONE, STORES]] = 0
        self.describe()

    def join(self, first: AccessHistory) -> None:
        """Takes part in the history of a cluster that runs at the same time: global memory is one."""
        self.memory, self.reads, self.together = first.memory, first.reads, first.together
        self.together.append(self)
        for history in (first, self):
            history.others.join(first.others)

    def describe(self) -> None:
        """Tells the compiled look-ups where the arrays of this cluster are; called again when one is
        replaced.
        """
        clocks, fences = self.races.clocks, self.races.fences
        for space, words in self.row.items():
            events = self.others.latest, self.others.events
            around = *events, fences.epochs[space], fences.counts[space], self.out[space]
            describe(words, 0, (*self._shadow(space), *around, self.kinds, self.reads.segments, self.copied))
            words[[NOW, THREADS, LANES]] = self.now, clocks.threads, clocks.threads_per_agent
            words[[AGENTS_PER_CTA, FENCE_ROOM]] = clocks.per_cta, fences.epochs[space].shape[1]
            words[[WINDOW, FIRST_COPY]] = self.window, clocks.first_copy

    def describe_others(self) -> None:
        """Tells the look-ups where the events of other clusters are, if their array was replaced."""
        if self.words[0, EVENTS] != self.others.events.ctypes.data:
            self.describe()

    def stores(self) -> int:
        """Stores to shared memory that threads of this cluster have made so far."""
        return int(self.row[SHARED][STORES])

    def log(self, log: np.ndarray, clocks: np.ndarray, agents: int = 0, base_thread: int = 0) -> None:
        """Looks up logged accesses of threads, in order (rows of Observer.accesses).

        clocks[t - base_thread] is what thread t knows; `agents` is added to t to give the agent that acts.
        """
        while (outcome := touch_log(self.words, log, clocks, agents, base_thread)) != COMPLETE:
            if outcome == NEEDS_READS:
                self._look_up_reads(self.reads.row_of(int(log[self.row[MEMORY][DONE], LOG_PLACE])))
            else:
                self._grow(SHARED if self.row[SHARED][DONE] < len(log) else MEMORY, PAGE)
        for space in (SHARED, MEMORY):
            if self.out[space][0, 0]:
                self.collect(space)

    def spans(self, space: str, spans: np.ndarray, write: bool, op) -> None:
        """Looks up an access of asynchronous work `op` to the bytes [first, last) of disjoint spans: int64
        (n, 2).
        """
        if self.races.clocks.first_copy and space == SHARED:
            self.copied[:] = self.races.fences.copies_seen(space, op.clock)
        self._touch(space, spans, write, op.queue, op.epoch, op.row, op.flags, op.clock)
        if self.out[space][0, 0]:
            self.collect(space, op.clock, op)

    def box(self, tmap, start: tuple[int, ...], write: bool, op) -> None:
        """Looks up an access of asynchronous work `op` to a box of a tensor map; no access if the copy
        stays in shared memory.
        """
        if not tmap.array.size:
            return
        if write:
            self._look_up_reads(self.reads.places[tmap.segment][0])
        elif self.reads.keep(self.now, op, tmap, start):
            return
        spans = self.reads.spans(tmap, start)
        if len(spans):
            self.spans(MEMORY, spans, write, op)

    def map_of(self, tmap, op) -> None:
        """Looks up the read of a tensor map in global memory by asynchronous work `op`."""
        first = self.reads.place_of(tmap.at)
        self._look_up_reads(self.reads.row_of(tmap.at))
        self.spans(MEMORY, np.array([[first, first + MAP_BYTES]]), False, op)

    def merged(self, row: int, spans: np.ndarray, buffers: list[int], write: bool, clock: np.ndarray) -> None:
        """Looks up all that the instruction at `row` does to global memory in a cluster, as one access of
        agent 0.

        spans: disjoint, in the shadow; buffers: their rows in reads.segments.
        """
        for buffer in buffers:
            if self.reads.segments[buffer, HELD]:
                self._look_up_reads(buffer)
        self._touch(MEMORY, spans, write, 0, 1, row, int(self.kinds[row]) | SERIAL, clock)
        if self.out[MEMORY][0, 0]:
            self.collect(MEMORY, clock)

    def _look_up_reads(self, row: int) -> None:
        """Enters the deferred reads of a buffer. They conflict with nothing, because the buffer is still
        unwritten.
        """
        for now, queue, epoch, place, flags, tmap, start in self.reads.end(row):
            self.row[MEMORY][NOW] = now
            self._touch(MEMORY, self.reads.spans(tmap, start), False, queue, epoch, place, flags, _NOTHING)
        self.row[MEMORY][NOW] = self.now

    def _touch(self, space: str, spans: np.ndarray, *access) -> None:
        while not touch_spans(self.row[space], spans, *access):
            pages = ((spans[:, 1] - 1) // PAGE - spans[:, 0] // PAGE + 1).sum()
            self._grow(space, int(pages) * PAGE)

    def _shadow(self, space: str):
        return self.shared if space == SHARED else self.memory

    def _grow(self, space: str, slots: int) -> None:
        larger = grown(self._shadow(space), slots)
        if space == SHARED:
            self.shared = larger
            describe(self.row[space], 0, larger)
            return
        for history in self.together:
            history.memory = larger
            describe(history.row[space], 0, larger)

    def collect(self, space: str, clock: np.ndarray | None = None, detail: object = None) -> None:
        """Keeps the conflicts that the last look-ups noted, one entry per pair of places in the program.
        If two accesses meet at many cells of tensor memory, they are examined once.
        """
        out = self.out[space]
        known: dict[tuple, AccessPair] = {}
        for line in out[1 : 1 + min(int(out[0, 0]), MAX_CONFLICTS)].tolist():
            if line[CODE] == WRITE_WRITE and self._same_copy(line[PREVIOUS], line[AGENT], line[EPOCH]):
                if line[PREVIOUS] >> AGENT_SHIFT == line[AGENT]:
                    continue  # one thread: either order is fine
                line[CODE] = SAME_VALUE
            alike = (*line[:POSITION], *line[POSITION + 1 :]) if space == "tmem" else tuple(line)
            if alike not in known:
                pair = AccessPair.of(self.races, line, space, clock, detail)
                known[alike] = self.pairs.setdefault(pair.key, pair)
            known[alike].count += 1
            if out[0, 0] > MAX_CONFLICTS and known[alike].multiplies:  # what else it reads, is not known
                known[alike].each_time.readers.add((line[ROW], -1))
        out[0, 0] = 0

    def _same_copy(self, previous: int, agent: int, epoch: int) -> bool:
        """Whether two cp.async copy the same bytes to the same place."""
        both = ((previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK), (agent, epoch))
        if any(self.races.clocks.kind_of(queue) != "cp.async" for queue, _ in both):
            return False
        first, second = (self.races.copies.contents(*copy) for copy in both)
        return first is not None and first == second


@functools.lru_cache(maxsize=16)
def _flags(program: Program) -> tuple[list[Ordering], np.ndarray, np.ndarray]:
    """Per instruction: its ordering; its STRONG and NARROW flags; these with the other flags."""
    orderings = [ordering(i) for i in program.instrs]
    strong = np.array([STRONG * o.strong | NARROW * o.narrow for o in orderings], np.int64)
    data = np.array([DATA * (row in data_loads(program)) for row in range(len(orderings))], np.int64)
    observes = OBSERVES * np.array([o.reads and o.writes for o in orderings], np.int64)
    stores = STORE * np.array([stores_registers(i) for i in program.instrs], np.int64)
    return orderings, strong, strong | data | observes | constant_stores(program) | stores


def stores_registers(instr) -> bool:
    """Whether the instruction makes threads store register values themselves: no copy and no reduction."""
    if instr is None or {"async", "bulk"} & set(instr.mods):
        return False
    return instr.op in ("st", "stmatrix") or (instr.op == "wmma" and "store" in instr.mods)


def constant_stores(program: Program) -> np.ndarray:
    """CONSTANT for every plain store whose values the text fixes: literals, or registers that are only
    written by one mov of a literal.
    """
    written = definitions(program)
    known = {
        i.operands[0].name
        for i in program.by_row.values()
        if i.op == "mov" and i.pred is None and isinstance(i.operands[0], Reg)
        and isinstance(i.operands[1], Imm) and len(written[i.operands[0].name]) == 1
    }  # fmt: skip
    flags = np.zeros(len(program.instrs), np.int64)
    for row, instr in program.by_row.items():
        if instr.op == "st" and "async" not in instr.mods:
            source = instr.operands[-1]
            values = source.items if isinstance(source, Vec) else [source]
            if all(isinstance(v, Imm) or isinstance(v, Reg) and v.name in known for v in values):
                flags[row] = CONSTANT
    return flags
