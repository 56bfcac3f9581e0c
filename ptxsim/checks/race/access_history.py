"""Who has accessed what: looks every access to shared and global memory up in its shadow, and keeps the
conflicts that this shows, one `Pair` per pair of lines.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ptxsim.checks.race.conflict import Pair
from ptxsim.checks.race.shadow_access import touch_log, touch_spans
from ptxsim.checks.race.shadow_bytes import MEMORY, PAGE, SHARED, cleared, grown, new_shadow
from ptxsim.checks.race.shadow_order import CONSTANT, MAX_CONFLICTS, NARROW, STRONG
from ptxsim.checks.static_flow import targets
from ptxsim.frontend.parser import Imm, Reg, Vec
from ptxsim.isa.address_map import RANK_SHIFT, SHARED_BASE

_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"}  # PTX ISA 8.4: strong operations


class AccessHistory:
    """The history of a launch: of global memory to its end, of shared memory while a cluster runs."""

    def __init__(self, races):
        self.races, launch = races, races.launch
        self.segments, self.positions, size = _segments(launch.memory)
        clusters = launch.clusters[0] * launch.clusters[1] * launch.clusters[2]
        self.memory = new_shadow(size)
        self.window = -(-launch.shared_end // 1024) * 1024  # bytes of a CTA's shared memory
        self.shared = new_shadow(self.window * launch.ctas_per_cluster)
        self.others = np.zeros(clusters + 2, np.uint8)  # clusters whose accesses this one comes after
        self.strong = np.array([_is_strong(i) for i in launch.program.instrs], np.int64)
        self.kinds = self.strong | constant_stores(launch.program.instrs)
        self.out = np.zeros((MAX_CONFLICTS + 1, 7), np.int64)
        self.span = np.zeros((1, 2), np.int64)
        self.now = 0  # number of the cluster + 1

    def start(self, cluster) -> None:
        self.now = cluster.index + 1
        self.others[:] = 0
        self.others[self.now] = 1
        self.shared = cleared(self.shared)
        self.pairs: dict[tuple, Pair] = {}

    def log(self, log: np.ndarray, clocks: np.ndarray, agents: int = 0, base_thread: int = 0) -> None:
        """Logged accesses of threads, in order (rows of Observer.accesses).

        clocks[t - base_thread] is what thread t knows; `agents` is added to t to give the agent that acts.
        """
        threads_per_agent, fences = self.races.clocks.threads_per_agent, self.races.fences
        for space in (SHARED, MEMORY):
            at = 0
            while at < len(log):
                at = touch_log(
                    *self._shadow(space), space == SHARED, log, at, clocks, threads_per_agent, agents,
                    base_thread, self.kinds, self.segments, self.window, SHARED_BASE, RANK_SHIFT,
                    self.now, self.races.clocks.threads, self.races.clocks.per_cta, self.others,
                    fences.epochs[space],
                    fences.counts[space], self.out, self.span,
                )  # fmt: skip
                if at < len(log):
                    self._grow(space, PAGE)
            if self.out[0, 0]:
                self.collect(space)

    def spans(self, space: str, spans: np.ndarray, write: bool, op) -> None:
        """Asynchronous work `op` accesses the bytes [first, last) of disjoint spans: int64 (n, 2)."""
        fences = self.races.fences
        while not touch_spans(
            *self._shadow(space), spans, write, self.now, op.queue, op.epoch, op.row, op.flags, op.clock,
            self.races.clocks.threads, self.races.clocks.per_cta, self.others, fences.epochs[space],
            fences.counts[space], self.out,
        ):  # fmt: skip
            pages = ((spans[:, 1] - 1) // PAGE - spans[:, 0] // PAGE + 1).sum()
            self._grow(space, int(pages) * PAGE)
        if self.out[0, 0]:
            self.collect(space, op.clock, op)

    def _shadow(self, space: str):
        return self.shared if space == SHARED else self.memory

    def _grow(self, space: str, slots: int) -> None:
        if space == SHARED:
            self.shared = grown(self.shared, slots)
        else:
            self.memory = grown(self.memory, slots)

    def collect(self, space: str, clock: np.ndarray | None = None, detail: object = None) -> None:
        """Keeps what the last look-ups noted, one entry per pair of places in the program."""
        count = int(self.out[0, 0])
        for line in self.out[1 : 1 + min(count, MAX_CONFLICTS)]:
            pair = Pair.of(self.races, line.tolist(), space, clock, detail)
            known = self.pairs.setdefault(pair.key, pair)
            known.count += 1
        self.out[0, 0] = 0


def _is_strong(instr) -> int:
    if instr is None:
        return 0
    strong = instr.op in ("atom", "red") or (instr.op in ("ld", "st") and _STRONG & set(instr.mods))
    return (STRONG | (NARROW if "cta" in instr.mods else 0)) if strong else 0


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
