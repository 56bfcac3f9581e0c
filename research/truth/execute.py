"""One run of a program under one schedule, and the causal history of every access.

Each access is a node with a number; its history is the set of nodes that happen before it, kept as the bits
of an integer. Program order and synchronisation only ever unite such sets (PTX ISA 8.9: base causality
order), so the closure is complete by construction and needs no clocks. Threads are followed one by one;
arrivals of several lanes on an mbarrier, which the ISA does not order, come in random order.

Sections followed: 9.7.13.1-3 barriers, 9.7.13.15 mbarrier, 9.7.9.25 copies, 9.7.13.4 fences, 8.7-8.8 flags,
9.7.15.7 wgmma, 9.7.16.6 tcgen05.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from research.truth.model import COLLECTIVE, PATTERNS, SLOT, SLOTS, TILE, Op, Program, lane_paths, lanes_of

MMA_COLUMNS, QUADRANT = 16, 512


class Undefined(Exception):
    """The ISA gives this program no meaning, so it cannot serve as ground truth."""


@dataclass(eq=False)
class Node:
    """Accesses that one thread, or one asynchronous operation, makes at one moment."""

    op: Op
    thread: int
    know: int  # bits of the nodes that happen before it
    usable: int  # tensor memory accesses that it may rely on (9.7.16.6.4)
    unit: str  # "thread" | "copy" | "mma" | "tmem" | "cp.async"
    touches: list  # (space, rank, first word, words, mode): mode "r", "w" or ("strong", scope, "r" | "w")


@dataclass(eq=False)
class Async:
    """Work in flight. It completes after all of `after` have."""

    finish: object  # called at completion
    after: list = field(default_factory=list)
    done: bool = False


@dataclass
class Barrier:
    """An mbarrier."""

    count: int
    pending: int
    tx: int = 0
    phase: int = 0
    gathered: tuple = (0, 0)  # released into the current phase: (history, tensor memory part)
    published: tuple = (0, 0)  # the same at its last completion
    seen: int = -1  # last phase that a wait saw complete
    over: int = 0  # node of the end of the last phase


@dataclass
class Meeting:
    """One of the 16 barriers of a CTA."""

    expected: int = 0
    arrived: int = 0
    gathered: tuple = (0, 0)
    waiting: list = field(default_factory=list)  # (warp, op)
    over: int = 0  # node of the end of the last round


def union(a: tuple, b: tuple) -> tuple:
    return a[0] | b[0], a[1] | b[1]


class Run:
    """State of one schedule. `go` runs it until it ends or nothing can move."""

    def __init__(self, program: Program, rng: random.Random, habit: str = "random"):
        """habit: "eager" completes asynchronous work at once, "late" when nothing else can move; "together"
        keeps the lanes of a warp together: lanes that are ahead wait for the others, as long as anything can
        move.
        """
        self.program, self.rng, self.habit = program, rng, habit
        n = program.threads
        self.paths = [path for code in program.code for path in lane_paths(code)]
        self.pc = [0] * n
        self.know, self.known, self.usable = [0] * n, [0] * n, [0] * n
        self.nodes: list[Node] = []
        self.fences: dict[int, list] = {}  # thread -> (node number, history, space) of its proxy fences
        self.barriers = {place: Barrier(count, count) for place, count in program.bars.items()}
        self.meetings: dict[tuple, Meeting] = {}
        self.passed: set = set()  # (warp, op) that a barrier has released
        self.flags: dict[tuple, list] = {}  # place -> [value, releases]
        self.fence_release: dict[int, tuple] = {}
        self.fence_acquire: dict[int, tuple] = {}
        self.flight: list[Async] = []
        self.groups: dict[
            tuple, list
        ] = {}  # (kind, thread) -> groups: lists of (Async, node bits, read bits)
        self.cluster = [0, (0, 0), (0, 0), 0]  # arrived warps, gathered, published, phase
        self.cluster_seen: dict[int, int] = {}
        self.cluster_open: set[int] = set()  # warps that have arrived and not waited yet
        self.mmas: dict[int, list] = {}  # thread -> (Async, bit)
        self.wgmmas: dict[tuple, list] = {}
        self.joined: dict[int, int] = {}
        self.awaited: dict[int, tuple] = {}  # node -> (CTA or thread, history needed at exit)
        self.early: set = set()  # events that read a result before it is complete
        self.ahead = False  # whether a wait asked for a phase other than the last one (9.7.13.15.16)
        self.loose = False  # whether nothing ordered an arrival after the phase before its own
        self.stuck: frozenset | None = None

    # ---- schedule ----

    def go(self) -> Run:
        warps = list(range(len(self.program.code)))
        settles = {"eager": 1.0, "late": 0.0, "random": 0.3, "together": 0.3}[self.habit]
        stays = self.rng.choice([0.0, 0.7, 1.0])  # probability that a warp continues as long as it can
        moved = True
        while moved:
            moved = False
            self.rng.shuffle(warps)
            for warp in warps:
                while self.step(warp):
                    moved = True
                    if settles == 1.0:
                        self.settle(1.0)
                    if self.rng.random() >= stays:
                        break
                moved |= self.settle(settles)
            moved |= not moved and (self.settle(0.5) or self.settle(1.0) or self.part(warps))
        left = {self.paths[t][self.pc[t]].id for t in range(self.program.threads) if self.at(t)}
        self.stuck = frozenset(left) or None
        if not left and self.cluster_open:
            raise Undefined("a thread arrives twice at the cluster barrier")  # the one at the end
        return self

    def part(self, warps: list[int]) -> bool:
        """Lets lanes that are ahead continue when nothing else can move; False if nothing moves."""
        return self.habit == "together" and any(self.step(warp, apart=True) for warp in warps)

    def settle(self, chance: float) -> bool:
        """Completes some of the asynchronous work that can complete."""
        moved = False
        for work in list(self.flight):
            if self.rng.random() < chance and all(a.done for a in work.after):
                work.done = moved = True
                self.flight.remove(work)
                work.finish()
        return moved

    def at(self, thread: int) -> Op | None:
        path = self.paths[thread]
        return path[self.pc[thread]] if self.pc[thread] < len(path) else None

    def step(self, warp: int, apart: bool = False) -> bool:
        """One event by some lanes of a warp. apart: also by lanes that are ahead."""
        groups: dict[Op, list[int]] = {}
        for thread in range(warp * 32, warp * 32 + 32):
            op = self.at(thread)
            if op is not None:
                groups.setdefault(op, []).append(thread)
        order = sorted(groups.items(), key=lambda item: item[0].id)
        if self.habit == "together" and not apart:
            order = order[:1]
        else:
            self.rng.shuffle(order)
        for op, threads in order:
            if op.kind in COLLECTIVE and len(threads) != op.lanes.bit_count():
                continue
            if op.kind == "arrive" and self.habit == "random" and self.rng.random() < 0.3:
                most = self.rng.choice((4, len(threads)))  # a phase may need only a few
                threads = self.rng.sample(threads, self.rng.randint(1, min(most, len(threads))))
            if getattr(self, "do_" + op.kind)(warp, op, threads):
                for thread in threads:
                    self.pc[thread] += 1
                return True
        return False

    # ---- histories ----

    def rank(self, thread: int) -> int:
        return thread // 32 // self.program.warps

    def node(self, op, thread: int, unit: str, touches: list, know: int, usable: int = 0) -> int:
        """Adds a node; returns its bit."""
        self.nodes.append(Node(op, thread, know, usable, unit, touches))
        return 1 << len(self.nodes) - 1

    def released(self, threads) -> tuple:
        know = known = 0
        for t in threads:
            know |= self.know[t]
            known |= self.known[t]
        return know, known

    def handed(self, t: int, sem: str) -> tuple:
        """What a thread's signal releases. For tensor memory a relaxed one is enough (9.7.16.6.4)."""
        if sem == "release":
            return self.released([t])
        return self.fence_release.get(t, (0, 0))[0], self.known[t]

    def learn(self, threads, stamp: tuple) -> None:
        for t in threads:
            self.know[t] |= stamp[0]
            self.known[t] |= stamp[1]

    def words(self, op: Op, lane: int) -> tuple:
        a = op.a
        return a["space"], a.get("rank", 0), a["slot"] * SLOT + PATTERNS[a["at"]](lane), 1

    # ---- plain accesses, flags, fences ----

    def access(self, op, threads, mode) -> bool:
        for t in threads:
            self.know[t] |= self.node(op, t, "thread", [(*self.words(op, t % 32), mode)], self.know[t])
        return True

    def do_st(self, warp, op, threads):
        return self.access(op, threads, "w")

    def do_ld(self, warp, op, threads):
        return self.access(op, threads, "r")

    def do_red(self, warp, op, threads):
        return self.access(op, threads, ("strong", "gpu", "w"))

    def flag_touch(self, op, t: int, verb: str) -> None:
        mode = verb if op.a["sem"] == "weak" else ("strong", op.a["scope"], verb)
        place = ("f" + op.a["space"], op.a["rank"], op.a["flag"], 1)
        self.know[t] |= self.node(op, t, "thread", [(*place, mode)], self.know[t])

    def do_flag_set(self, warp, op, threads):
        flag = self.flags.setdefault(_flag(op), [0, []])
        for t in threads:
            self.flag_touch(op, t, "w")
            sem = op.a["sem"]
            stamp = self.handed(t, sem)
            mark = (self.rank(t), op.a["scope"], stamp if sem != "weak" else (0, 0))
            if op.a["rmw"]:
                flag[0] += 1
                flag[1].append(mark)
            else:
                flag[0], flag[1] = 1, [mark]
        return True

    def do_flag_wait(self, warp, op, threads):
        flag = self.flags.get(_flag(op), [0, []])
        if flag[0] < op.a["need"]:
            return False
        for t in threads:
            for rank, scope, stamp in flag[1]:
                if "cta" in (scope, op.a["scope"]) and rank != self.rank(t):
                    continue
                if op.a["sem"] == "acquire":
                    self.learn([t], stamp)
                elif op.a["sem"] == "relaxed":
                    self.fence_acquire[t] = union(self.fence_acquire.get(t, (0, 0)), stamp)
                    self.learn([t], (0, stamp[1]))
            self.flag_touch(op, t, "r")
        return True

    def do_fence(self, warp, op, threads):
        for t in threads:
            self.learn([t], self.fence_acquire.pop(t, (0, 0)))
            self.fence_release[t] = self.released([t])
        return True

    def do_fence_proxy(self, warp, op, threads):
        for t in threads:
            number = len(self.nodes)
            self.fences.setdefault(t, []).append((number, self.know[t], op.a["space"]))
            self.know[t] |= self.node(op, t, "fence", [], self.know[t])
        return True

    # ---- barriers of threads ----

    def meet(self, warp, op, threads) -> Meeting:
        key = self.rank(threads[0]), op.a["id"]
        meeting = self.meetings.setdefault(key, Meeting())
        if meeting.arrived and meeting.expected != op.a["count"]:
            raise Undefined("a barrier is used with two counts")
        meeting.expected = op.a["count"]
        meeting.arrived += 32
        stamp = self.released(threads)
        alone = op.a["count"] == 32
        self.loose |= bool(meeting.over and not alone and not meeting.over & (stamp[0] | stamp[1]))
        meeting.gathered = union(meeting.gathered, stamp)
        return meeting

    def complete(self, meeting: Meeting) -> None:
        if meeting.arrived >= meeting.expected:
            meeting.over = self.node(None, 0, "phase", [], 0)
            meeting.gathered = union(meeting.gathered, (meeting.over, meeting.over))
            for warp, op in meeting.waiting:
                self.learn(range(warp * 32, warp * 32 + 32), meeting.gathered)
                self.passed.add((warp, op))
            meeting.arrived, meeting.gathered, meeting.waiting = 0, (0, 0), []

    def do_bar_sync(self, warp, op, threads):
        if (warp, op) in self.passed:
            return True
        if (warp, op, "in") not in self.passed:
            self.passed.add((warp, op, "in"))
            meeting = self.meet(warp, op, threads)
            meeting.waiting.append((warp, op))
            self.complete(meeting)
        return (warp, op) in self.passed

    def do_bar_arrive(self, warp, op, threads):
        self.complete(self.meet(warp, op, threads))
        return True

    def do_warp_sync(self, warp, op, threads):
        self.learn(threads, self.released(threads))
        return True

    def do_cl_arrive(self, warp, op, threads):
        if warp in self.cluster_open:
            raise Undefined("a thread arrives twice at the cluster barrier")
        self.cluster_open.add(warp)
        self.cluster_seen[warp] = self.cluster[3]
        state = self.cluster
        state[0] += 1
        for t in threads:
            state[1] = union(state[1], self.handed(t, op.a["sem"]))
        if state[0] == len(self.program.code):
            state[0], state[2], state[3] = 0, state[1], state[3] + 1
        return True

    def do_cl_wait(self, warp, op, threads):
        if warp not in self.cluster_open:
            raise Undefined("a wait for the cluster barrier without an arrival")
        if self.cluster_seen[warp] == self.cluster[3]:
            return False
        self.learn(threads, self.cluster[2])
        self.cluster_open.remove(warp)
        return True

    # ---- mbarriers ----

    def check_phase(self, bar: Barrier, op: Op) -> None:
        if bar.pending == 0 and bar.tx == 0:
            bar.over = self.node(op, 0, "phase", [], 0)
            bar.gathered = union(bar.gathered, (bar.over, bar.over))
            bar.published, bar.pending, bar.phase = bar.gathered, bar.count, bar.phase + 1

    def signal(self, bar: Barrier, op: Op, stamp: tuple, arrivals: int = 1, tx: int = 0) -> None:
        self.loose |= bool(arrivals and bar.over and not bar.over & (stamp[0] | stamp[1]))
        bar.gathered = union(bar.gathered, stamp)
        bar.tx += tx
        bar.pending -= arrivals
        if bar.pending < 0:
            raise Undefined("more arrivals than a phase has left")
        self.check_phase(bar, op)

    def do_arrive(self, warp, op, threads):
        for t in self.shuffled(threads):
            self.signal(self.barriers[op.a["bar"]], op, self.handed(t, op.a["sem"]))
        return True

    def do_expect(self, warp, op, threads):
        for t in self.shuffled(threads):
            arrivals = op.a["arrive"]
            stamp = self.released([t]) if arrivals else (0, 0)
            self.signal(self.barriers[op.a["bar"]], op, stamp, arrivals, op.a["bytes"])
        return True

    def do_wait(self, warp, op, threads):
        bar = self.barriers[op.a["bar"]]
        if bar.phase & 1 == op.a["parity"]:
            self.ahead |= bar.seen < bar.phase - 2
            return False
        bar.seen = max(bar.seen, bar.phase - 1)
        self.learn(threads, bar.published)
        return True

    def shuffled(self, threads) -> list[int]:
        return self.rng.sample(threads, len(threads))


def _flag(op: Op) -> tuple:
    return op.a["space"], op.a["rank"], op.a["flag"]


def tile_words(tile: int) -> int:
    """First word of an operand tile."""
    return SLOTS * SLOT + tile * TILE


def mma_cells(rank: int, column: int) -> list:
    return [("t", rank, QUADRANT * q + column, MMA_COLUMNS, "w") for q in range(4)]


__all__ = ["Async", "Node", "Run", "Undefined", "lanes_of", "mma_cells", "tile_words"]
