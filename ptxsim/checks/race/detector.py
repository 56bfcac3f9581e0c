"""Races by happens-before: conflicting accesses to shared, global and tensor memory that nothing orders.

`Races` follows who knows what (checks/race/vector_clocks.py), looks every access up in the shadow of its
memory, and hands what it finds to checks/race/report.py. Asynchronous units act as agents of their own
(checks/race/async_copies.py).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ptxsim.checks.race import report as race_report
from ptxsim.checks.race.async_copies import AsyncUnits
from ptxsim.checks.race.conflict import Pair
from ptxsim.checks.race.proxy_fences import MEMORY, SHARED, ProxyFences, is_async_fence
from ptxsim.checks.race.shadow_bytes import (
    AGENT,
    AGENT_SHIFT,
    CODE,
    CONSTANT,
    MAX_CONFLICTS,
    NO_FENCE_READ,
    NO_FENCE_WRITE,
    PAGE_BITS,
    PREVIOUS,
    STRONG,
    cleared,
    grown,
    new_shadow,
    touch_log,
)
from ptxsim.checks.race.shadow_tmem import TmemShadow
from ptxsim.checks.race.vector_clocks import Stamp
from ptxsim.checks.static_flow import targets
from ptxsim.frontend.parser import Imm, Reg, Vec
from ptxsim.isa.address_map import GLOBAL_BASE, RANK_SHIFT, SHARED_BASE
from ptxsim.jit import bytecode as ml

SHARED_READERS, MEMORY_READERS = 4, 2
_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}  # PTX ISA 8.4: strong operations


class Races(AsyncUnits):
    """The observer: one per launch."""

    def __init__(self, launch, reporter):
        self.launch, self.reporter = launch, reporter
        self.segments, self.positions, size = _segments(launch.memory)
        clusters = launch.clusters[0] * launch.clusters[1] * launch.clusters[2]
        self.memory = new_shadow(size, MEMORY_READERS, tagged=True)
        self.window = -(-launch.shared_end // 1024) * 1024
        self.shared = new_shadow(self.window * launch.ctas_per_cluster, SHARED_READERS, tagged=False)
        self.others = np.zeros(clusters + 2, np.uint8)  # clusters whose accesses this one comes after
        self.flags: dict[int, set[int]] = {}  # global place -> clusters that released through it
        self.strong = np.array([_is_strong(i) for i in launch.program.instrs], np.int64)
        self.kinds = self.strong | constant_stores(launch.program.instrs)
        self.synchronises = bool(self.strong.any())
        self.out = np.zeros((MAX_CONFLICTS + 1, 7), np.int64)
        self.now = 0
        self.operands: dict[tuple, tuple | None] = {}  # byte ranges of MMA operands, by descriptor
        self.cells: dict[tuple, np.ndarray] = {}  # TMEM cells of instructions and results

    def start(self, cluster) -> None:
        super().start(cluster)
        self.now = cluster.index + 1
        self.others[:] = 0
        self.others[self.now] = 1
        self.fences = ProxyFences(self)
        self.shared = cleared(self.shared)
        self.tmem = TmemShadow(cluster.ctas)
        self.start_units()
        self.pairs: dict[tuple, Pair] = {}
        self.sync_places: dict[int, Stamp] = {}
        self.flags_seen: dict[int, set[int]] = {}  # thread -> clusters whose flags it saw, without acquire

    def finish(self, cluster) -> None:
        race_report.report(self, self.pairs)

    def fence(self, cluster, split, mods: set[str]) -> None:
        if is_async_fence(mods):
            self.fences.record(self.rows(split), mods)
        elif "mbarrier_init" in mods:
            self.init_fence(self.rows(split))
        elif "proxy" not in mods:
            self.memory_fence(self.rows(split))

    # ---- accesses of threads ----

    def accesses(self, cluster, log: np.ndarray) -> None:
        self._log(log, self.clocks, 0, 0)

    def _log(self, log: np.ndarray, clocks: np.ndarray, agents: int, base_thread: int) -> None:
        """Looks up logged accesses; `agents` is added to a thread's number to give the agent that acts.

        Strong accesses synchronise: they cut the log into pieces.
        """
        cuts = np.flatnonzero(self.strong[log[:, ml.LOG_ROW]]) if self.synchronises else ()
        at = 0
        for cut in cuts:
            self._piece(log, at, cut, clocks, agents, base_thread)
            self._before_strong(log[cut])
            self._piece(log, cut, cut + 1, clocks, agents, base_thread)
            self._after_strong(log[cut])
            at = cut + 1
        self._piece(log, at, len(log), clocks, agents, base_thread)

    def _piece(self, log, begin: int, until: int, clocks, agents: int, base_thread: int) -> None:
        for space in (SHARED, MEMORY):
            at = begin
            while at < until:
                shadow = self.shared if space == SHARED else self.memory
                at = touch_log(
                    *shadow, int(space == SHARED), log, at, until, clocks, self.lanes, agents, base_thread,
                    self.kinds, self.segments, self.window, SHARED_BASE, RANK_SHIFT, self.now,
                    *self.common(space),
                )  # fmt: skip
                if at < until:
                    self.grow()
            self.collect(space)

    def common(self, space: str) -> tuple:
        """What every look-up in a memory needs besides the clock of who acts."""
        return self.threads, self.others, self.fences.epochs[space], self.fences.counts[space], self.out

    def grow(self) -> None:
        """Makes room in whichever shadow is full."""
        page = 1 << PAGE_BITS
        if self.shared.used[0] + page > len(self.shared.records):
            self.shared = grown(self.shared)
        if self.memory.used[0] + page > len(self.memory.records):
            self.memory = grown(self.memory)

    # ---- synchronisation through memory (PTX ISA 8.8) ----

    def _before_strong(self, entry) -> None:
        """A strong read may acquire what was released at its place."""
        instr = self.cluster.program.instrs[int(entry[ml.LOG_ROW])]
        if instr.op not in ("ld", "atom"):
            return
        place, row = int(entry[ml.LOG_PLACE]), int(entry[ml.LOG_THREAD]) // self.lanes
        acquires = bool({"acquire", "acq_rel"} & set(instr.mods))
        self.acquire(row, self.sync_places.get(place), clock=acquires)
        if acquires:
            self.others[list(self.flags.get(place, ()))] = 1
        else:
            self.flags_seen.setdefault(row, set()).update(self.flags.get(place, ()))

    def memory_fence(self, rows: np.ndarray) -> None:
        super().memory_fence(rows)
        for row in rows:
            self.others[list(self.flags_seen.pop(int(row), ()))] = 1

    def _after_strong(self, entry) -> None:
        """A strong write releases."""
        instr = self.cluster.program.instrs[int(entry[ml.LOG_ROW])]
        if instr.op not in ("st", "atom", "red"):
            return
        place, row = int(entry[ml.LOG_PLACE]), int(entry[ml.LOG_THREAD]) // self.lanes
        releases = bool({"release", "acq_rel"} & set(instr.mods))
        stamp = self.release(row, clock=releases)
        known = self.sync_places.get(place)
        if known is None:
            self.sync_places[place] = Stamp(stamp.clock.copy(), stamp.known.copy())
        else:
            known.join(stamp)
        relaxed = self.relaxed.get(row)
        if place >= GLOBAL_BASE and (releases or (relaxed and relaxed.fence is not None)):
            self.flags.setdefault(place, set()).update(np.flatnonzero(self.others).tolist())

    # ---- conflicts ----

    def collect(self, space: str, clock: np.ndarray | None = None, detail: object = None) -> None:
        """Keeps what the last look-ups noted, one entry per pair of places in the program."""
        count = int(self.out[0, 0])
        if not count:
            return
        for line in self.out[1 : 1 + min(count, MAX_CONFLICTS)]:
            pair = Pair.of(self, line.tolist(), space, clock, detail)
            if pair is not None:
                known = self.pairs.setdefault(pair.key, pair)
                known.count += 1
        self.out[0, 0] = 0

    def fenced_elsewhere(self, space: str, line: list[int], clock: np.ndarray) -> int | None:
        """The thread whose fence, behind the synchronisation, stands in for the writer's."""
        if line[CODE] not in (NO_FENCE_READ, NO_FENCE_WRITE) or clock is None:
            return None
        thread = line[PREVIOUS] >> AGENT_SHIFT
        epoch = (line[PREVIOUS] >> 20) & ((1 << 28) - 1)
        return self.fences.elsewhere(space, thread, epoch, clock)

    def kind_of(self, agent: int) -> str:
        return "thread" if agent < self.threads else self.agent(agent).kind

    def agent_of(self, line: list[int]) -> int:
        return line[AGENT]


def _is_strong(instr) -> int:
    if instr is None:
        return 0
    strong = instr.op in ("atom", "red") or (instr.op in ("ld", "st") and _STRONG & set(instr.mods))
    return STRONG if strong else 0


def constant_stores(instrs: list) -> np.ndarray:
    """CONSTANT for every plain store whose values the text fixes: numbers, or registers that are only ever
    set to one.
    """
    written = Counter(name for i in instrs if i is not None for name in targets(i))
    known = {
        i.operands[0].name
        for i in instrs
        if i is not None and i.op == "mov" and i.pred is None and isinstance(i.operands[0], Reg)
        and isinstance(i.operands[1], Imm) and written[i.operands[0].name] == 1
    }  # fmt: skip
    flags = np.zeros(len(instrs), np.int64)
    for row, instr in enumerate(instrs):
        if instr is not None and instr.op == "st" and "async" not in instr.mods:
            source = instr.operands[-1]
            values = source.items if isinstance(source, Vec) else [source]
            if all(isinstance(v, Imm) or isinstance(v, Reg) and v.name in known for v in values):
                flags[row] = CONSTANT
    return flags


def _segments(memory) -> tuple[np.ndarray, list[int], int]:
    """The buffers whose accesses count: int64 (n, 3) of base, end, position in the shadow; that position per
    segment of the memory; and their total size.
    """
    rows, positions, position = [], [], 0
    for base, end, _, logged in memory.rows:
        positions.append(position)
        if logged:
            rows.append((base, end, position))
            position += -(-(end - base) // 1024) * 1024
    return np.array(rows or [(0, 0, 0)], np.int64), positions, position
