"""An observer that records the events of one cluster for its timeline (schedule.py); added with trace=True.

An event's `after` lists the events that it follows by the program's synchronisation: the same warp's previous
event; for a wait, the events that completed the barrier's phase; for a unit's work, the instruction that
issued it. Data dependences play no part: an MMA that nobody made wait for its loads starts before them, and
the timeline shows it.
"""

from __future__ import annotations

import functools
from collections import defaultdict

import numpy as np

from ptxsim.events.observer import Observer
from ptxsim.events.records import Arrival, BarArrival, BulkCopy, Commit, CopyArrival, PhaseWait, TmemCells
from ptxsim.events.views import Cluster, Launch, Split, Wait
from ptxsim.grid.co_resident import talks
from ptxsim.jit import bytecode
from ptxsim.jit.translate import is_shared
from ptxsim.trace.schedule import (
    BARRIERS,
    COPIES,
    LOADS,
    MOVES,
    STORES,
    TENSOR,
    UNITS,
    Costs,
    Event,
    Lane,
    Timeline,
    schedule,
    summarise,
)

_SPACES = ("global read", "shared read", "global write", "shared write")
_MERGED = (*_SPACES, *MOVES, "wait")
_ROLES = ("TMA", "cp.async", "MMA", "write-back")
_STAGE = {LOADS: 0, COPIES: 1, TENSOR: 2, STORES: 3}  # position of the unit's role in the data path
_NO_MMA_SYNC = "products by mma.sync or wmma: the tensor core's work for them is not recorded"
_POLLS = "how often a thread polls global memory that another one writes: the simulator chose that"


def _traced(handler):
    """Restricts a handler to the recorded cluster."""

    @functools.wraps(handler)
    def run(self, cluster: Cluster, *args, **named):
        return handler(self, cluster, *args, **named) if cluster.index == self.index else None

    return run


class Recorder(Observer):
    """Records cluster number `index` of the grid. Call `timeline(costs)` after the run."""

    def __init__(self, launch: Launch, index: int = 0):
        self.index, self.program = index, launch.program
        self.warps_per_cta = launch.warps_per_cta
        self.ctas = launch.ctas_per_cluster
        self.events: list[Event] = []
        self.last: dict[int, int] = {}  # warp -> its last event
        # barrier -> events that have arrived in this phase
        self.gathered: dict[object, list[int]] = defaultdict(list)
        self.completed: dict[object, int] = {}  # barrier -> event that completed its last phase
        self.multiplied: dict[int, list[int]] = {}  # thread -> events of its last MMA
        # thread -> bulk groups, the last of them still open
        self.groups: dict[int, list[list[int]]] = defaultdict(lambda: [[]])
        self.roles: dict[int, set[str]] = defaultdict(set)  # warp -> some of _ROLES
        self.looking: dict[int, tuple] = {}  # warp -> (barrier, parity) of its last failed test
        self.finished = False

    # ---- notes ----

    def note(self, cta: int, lane: str, kind: str, name: str, after: list[int], **more) -> int:
        self.events.append(Event(cta, lane, kind, name, after=after, **more))
        return len(self.events) - 1

    def by_warp(
        self, split: Split, kind: str, name: str, after=(), amount: int = 0, read=(), phase=None
    ) -> int:
        """An event of a warp, after its previous one; a repetition of that only extends it."""
        w, instr = split.warp, split.instr
        before = self.last.get(w)
        last = self.events[before] if before is not None else None
        self.looking.pop(w, None)
        if before is not None and last and self.merges(last, kind, name, phase):
            last.amount += amount
            last.after += [n for n in after if n not in last.after]
            last.read += [n for n in read if n not in last.read]
            return before
        ties = [*([before] if before is not None else []), *(n for n in dict.fromkeys(after) if n != before)]
        line = instr.src if instr is not None else None
        lane = f"warp {w % self.warps_per_cta}"
        more = {"amount": amount, "read": [*dict.fromkeys(read)], "line": line, "phase": phase}
        self.last[w] = self.note(split.cta, lane, kind, name, ties, **more)
        return self.last[w]

    def merges(self, last: Event, kind: str, name: str, phase) -> bool:
        """Whether a warp's new event only extends its previous one."""
        return kind in _MERGED and (last.kind, last.name, last.phase) == (kind, name, phase)

    def role(self, split: Split, role: str) -> None:
        self.roles[split.warp].add(role)

    def barrier_name(self, place, cta: int) -> str:
        name = self.reporter.shared_name(place[1])
        return name if place[0] == cta else f"{name} of CTA {place[0]}"

    def complete(self, key, cta: int, name: str, phase: int | None = None) -> None:
        """A barrier's phase ends after all arrivals in it and after the phase before."""
        earlier = [self.completed[key]] if key in self.completed else []
        after = [*dict.fromkeys(self.gathered.pop(key, []) + earlier)]
        self.completed[key] = self.note(cta, BARRIERS, "phase", name, after, phase=phase)

    # ---- the run ----

    @_traced
    def start(self, cluster: Cluster) -> None:
        self.reporter = cluster.reporter

    @_traced
    def finish(self, cluster: Cluster) -> None:
        self.finished = not cluster.stuck
        if not cluster.stuck:
            return
        waits: dict[int, tuple] = {}  # warp -> (split, wait), preferably at no CTA or cluster barrier
        for g, wait in sorted(cluster.waits.items(), key=lambda item: item[1].kind not in ("bar", "cluster")):
            waits[g // 32] = cluster.splits[g], wait
        for w in [w for w, alive in enumerate(cluster.alive) if alive]:
            self._stuck(cluster, w, *waits.get(w, (None, None)))

    def _stuck(self, cluster: Cluster, w: int, split: Split | None, wait: Wait | None) -> None:
        """The wait that a warp never leaves."""
        cta, phase = w // self.warps_per_cta, None
        name = {"bar": "cta_sync", "cluster": "cluster_sync"}.get(wait.kind, wait.kind) if wait else "polling"
        place, parity = self.looking.get(w, (None, 0))
        line = split.instr.src if split is not None and split.instr is not None else None
        if wait and wait.kind == "mbarrier":
            place, parity = wait.detail["place"], wait.detail["parity"]
        if wait and wait.kind == "bar":
            name = _bar_name(wait.detail["number"])
        if place is not None:
            name, barrier = self.barrier_name(place, cta), cluster.mbarriers.get(place)
            phase = barrier.phase + ((barrier.phase ^ parity) & 1) if barrier else None
        ties = [self.last[w]] if w in self.last else []
        lane = f"warp {w % self.warps_per_cta}"
        self.last[w] = self.note(cta, lane, "stuck", name, ties, phase=phase, line=line)

    @_traced
    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        inside, write = is_shared(log[:, bytecode.LOG_PLACE]), log[:, bytecode.LOG_SIZE] & 1
        # By warp, within a warp in the order of _SPACES: a warp reads before it writes what it has read.
        order, size = 4 * (log[:, bytecode.LOG_THREAD] // 32) + 2 * write + inside, bytes_of(log)
        for one in (order[:1] if (order == order[:1]).all() else np.unique(order)).tolist():
            chosen, space = order == one, _SPACES[one % 4]
            at = cluster.splits[one // 4 * 32].at(row=int(log[chosen, bytecode.LOG_ROW][0]))
            self.by_warp(at, space, space, amount=int(size[chosen].sum()))

    # ---- barriers ----

    @_traced
    def bar_arrive(self, cluster: Cluster, split: Split, arrival: BarArrival) -> None:
        key = ("bar", split.cta, arrival.number)
        self.gathered[key].append(self.by_warp(split, "issue", f"{_bar_name(arrival.number)}: arrive"))

    @_traced
    def bar_complete(self, cluster: Cluster, cta: int, number: int, waiting: list) -> None:
        key = ("bar", cta, number)
        self.complete(key, cta, _bar_name(number))
        for split in waiting:
            self.by_warp(split, "wait", _bar_name(number), [self.completed[key]])

    @_traced
    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed: bool) -> None:
        self.gathered["cluster"].append(self.by_warp(split, "issue", "cluster_sync: arrive"))

    @_traced
    def cluster_complete(self, cluster: Cluster) -> None:
        self.complete("cluster", 0, "cluster_sync")

    @_traced
    def cluster_wait(self, cluster: Cluster, split: Split) -> None:
        self.by_warp(split, "wait", "cluster_sync", [self.completed["cluster"]])

    @_traced
    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        self.gathered.pop(place, None)
        self.completed.pop(place, None)

    @_traced
    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        place = arrival.place
        name = f"arrive on {self.barrier_name(place, split.cta)}"
        self.gathered[place].append(self.by_warp(split, "issue", name, phase=cluster.mbarriers[place].phase))

    @_traced
    def mbarrier_wait(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        place = wait.place
        phase = cluster.mbarriers[place].phase - 1
        after = [self.completed[place]] if place in self.completed else []
        self.by_warp(split, "wait", self.barrier_name(place, split.cta), after, phase=phase)

    @_traced
    def mbarrier_blocked(self, cluster: Cluster, split: Split, wait: PhaseWait) -> None:
        self.looking[split.warp] = wait.place, wait.parity

    @_traced
    def async_arrive(self, cluster: Cluster, place, token) -> None:
        if token is not None:
            self.gathered[place].append(token)

    @_traced
    def cp_async_arrive(
        self, cluster: Cluster, split: Split, place, tokens: list, arrival: CopyArrival
    ) -> None:
        self.gathered[place] += [issue for issue in tokens if issue is not None]

    @_traced
    def phase_complete(self, cluster: Cluster, place) -> None:
        phase = cluster.mbarriers[place].phase - 1
        self.complete(place, place[0], self.barrier_name(place, place[0]), phase)

    # ---- tensor core and tensor memory ----

    @_traced
    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        footprint = work.footprint
        if footprint.tile is None:
            return
        self.role(split, "MMA")
        issue = self.by_warp(split, "issue", "tcgen05.mma")
        (m, n), line = footprint.tile, split.instr.src
        self.multiplied[split.thread] = [
            self.note(
                rank, TENSOR, "mma", footprint.label, [issue], amount=m * n * 16 // work.group, line=line
            )
            for rank in footprint.ranks
        ]

    @_traced
    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> int:
        """The event of the commit itself: it ends when all earlier MMAs of the thread are done."""
        issue = self.by_warp(split, "issue", "tcgen05.commit")
        after = [issue, *self.multiplied.get(split.thread, [])]
        return self.note(split.cta, TENSOR, "commit", "commit", after, line=split.instr.src)

    @_traced
    def wgmma_issue(self, cluster: Cluster, split: Split, columns: int, depth: int) -> int:
        self.role(split, "MMA")
        issue = self.by_warp(split, "issue", "wgmma")
        name = f"wgmma m64n{columns}k{depth}, a warp's share"
        return self.note(split.cta, TENSOR, "mma", name, [issue], amount=columns * 256, line=split.instr.src)

    @_traced
    def wgmma_wait(self, cluster: Cluster, split: Split, token) -> None:
        self.by_warp(split, "wait", "wgmma.wait_group", [token])

    @_traced
    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        if not write:
            self.role(split, "write-back")
        kind = "TMEM write" if write else "TMEM read"
        self.by_warp(split, kind, kind, amount=4 * cells.lanes.size)

    # ---- copies ----

    @_traced
    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> int:
        self.role(split, "TMA" if copy.kind == "load" else "write-back")
        issue = self.by_warp(split, "issue", f"TMA {copy.kind}")
        lane, way = (LOADS, "{0} to {1}") if copy.kind == "load" else (STORES, "{1} to {0}")
        name = way.format(copy.tensor.name or "bytes", self._part(copy.offset, copy.size))
        name += f" of CTAs {', '.join(map(str, copy.ranks))}" if len(copy.ranks) > 1 else ""
        number = self.note(
            split.cta, lane, copy.kind, name, [issue],
            amount=copy.size, line=split.instr.src, box=copy.tensor.box_text(copy.start),
        )  # fmt: skip
        if copy.kind == "store":
            self.groups[split.thread][-1].append(number)
        return number

    def _part(self, offset: int, size: int) -> str:
        """`Asmem, part 1 of 2`: the place in a buffer, counted in parts as large as the copy."""
        for name, _, first, total in self.reporter.names:
            if first <= offset < first + total and size and not (offset - first) % size and total > size:
                return f"{name}, part {(offset - first) // size} of {total // size}"
        return self.reporter.shared_name(offset)

    @_traced
    def bulk_commit(self, cluster: Cluster, split: Split) -> None:
        for lane in split.lanes.tolist():
            self.groups[split.warp * 32 + lane].append([])

    @_traced
    def bulk_wait(self, cluster: Cluster, split: Split, allowed: int, reading: bool) -> None:
        covered = []
        for lane in split.lanes.tolist():
            closed = self.groups[split.warp * 32 + lane][:-1]
            covered += [n for group in closed[: max(0, len(closed) - allowed)] for n in group]
        if covered:
            name = "wait_group.read" if reading else "wait_group"
            read, after = (covered, []) if reading else ([], covered)
            self.by_warp(split, "wait", name, after, read=read)

    @_traced
    def cp_async_issue(self, cluster: Cluster, split: Split, reads: np.ndarray, writes: np.ndarray) -> int:
        self.role(split, "cp.async")
        issue = self.by_warp(split, "issue", "cp.async")
        size = int(bytes_of(reads).sum())
        return self.note(split.cta, COPIES, "load", "cp.async", [issue], amount=size, line=split.instr.src)

    @_traced
    def cp_async_wait(self, cluster: Cluster, split: Split, token) -> None:
        self.by_warp(split, "wait", "cp.async.wait_group", [token])

    # ---- the result ----

    def timeline(self, costs: Costs) -> Timeline:
        """The events, scheduled with these costs."""
        ticks = schedule(self.events, costs)
        lanes = [summarise(self.events, ticks, lane) for lane in self.lanes()]
        own = any(i.name.startswith(("mma.", "wmma.mma")) for i in self.program.by_row.values())
        notes = [_NO_MMA_SYNC] if own else []
        notes += [_POLLS] if talks(self.program) else []
        return Timeline(self.events, lanes, ticks, costs, self.finished, self.index, notes)

    def lanes(self) -> list[Lane]:
        """Warps and units that have events, in the order of the data path."""
        found = {(e.cta, e.lane) for e in self.events if e.lane != BARRIERS}
        lanes = [self._lane(cta, lane) for cta, lane in found]
        return sorted(lanes, key=self._rank)

    def _lane(self, cta: int, lane: str) -> Lane:
        front = f"CTA {cta} " if self.ctas > 1 else ""
        if lane in UNITS:
            return Lane(cta, lane, front + lane, ())
        number = int(lane.split()[1])
        mine = self.roles[cta * self.warps_per_cta + number]
        roles = tuple(role for role in _ROLES if role in mine)
        grouped = self.warps_per_cta > 4 and self.warps_per_cta % 4 == 0
        name = f"WG{number // 4} warp {number % 4}" if grouped else lane
        return Lane(cta, lane, f"{front}{name}" + (f" ({', '.join(roles)})" if roles else ""), roles)

    def _rank(self, lane: Lane) -> tuple:
        """Position in the data path: loading warps, loads, MMA warps, products, write-back, stores."""
        if lane.lane in UNITS:
            return lane.cta, 2 * _STAGE[lane.lane] + 1, 0
        first = _ROLES.index(lane.roles[0]) if lane.roles else len(_ROLES)
        return lane.cta, 2 * first, int(lane.lane.split()[1])


def bytes_of(log: np.ndarray) -> np.ndarray:
    """Bytes of each access in a log."""
    return (log[:, bytecode.LOG_SIZE] & bytecode.LOG_SIZE_MASK) >> 1


def _bar_name(number: int) -> str:
    return "cta_sync" if number == 0 else f"barrier {number}"
