"""Derives the truth about a program from the histories of a run: races, missing fences, endless waits."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from research.truth.asynchronous import FullRun
from research.truth.execute import Node, Run, Undefined
from research.truth.model import Program

HABITS = ("eager", "late", "random", "together")  # one schedule each; more where ptxsim disagrees
PROXY = {"copy", "mma"}  # units that access memory through the async proxy


@dataclass
class Facts:
    """What one schedule shows. Pairs are (smaller id, larger id)."""

    races: set = field(default_factory=set)  # conflicting accesses that nothing orders
    fences: set = field(
        default_factory=set
    )  # a generic write read by a copy, with no proxy fence: wrong data
    late: set = field(default_factory=set)  # the same for reviews: MMA operands, overwrites, others' fences
    open: set = field(default_factory=set)  # by one warp's tcgen05.ld / st, which the ISA leaves open
    tcgen05: set = field(default_factory=set)  # ordered, but without tcgen05.fence: review
    unset: set = field(default_factory=set)  # reads of tensor memory that nothing has written
    pending: set = field(default_factory=set)  # asynchronous work that nobody waits for
    kept: set = field(default_factory=set)  # stores that still read after their CTA has ended, as chips allow
    half: bool = False  # an mbarrier is left in the middle of a phase
    ahead: bool = field(
        default=False, compare=False
    )  # a wait asks for a phase before the last one, but still passes: review
    loose: bool = field(
        default=False, compare=False
    )  # arrivals that could have completed another phase, harmlessly: may be a review
    stuck: frozenset | None = None

    @property
    def wrong(self) -> bool:
        return bool(self.races or self.fences or self.unset or self.pending or self.stuck)

    @property
    def odd(self) -> bool:
        """Whether a run without an error must show a review."""
        return bool(self.late or self.tcgen05 or self.kept)


@dataclass
class Truth:
    """The facts over several schedules: what all of them show, and what some do."""

    runs: list[Facts]
    elect: bool = False  # lanes that do not lead wait at the election for those that do

    @property
    def must(self) -> bool:
        return all(f.wrong for f in self.runs)

    @property
    def may(self) -> bool:
        return any(f.wrong for f in self.runs)

    @property
    def review(self) -> bool:
        return any(f.odd or f.open or f.ahead or f.loose for f in self.runs)

    @property
    def luck(self) -> bool:
        """Whether schedules differ in what they show, so that the pairs seen are a sample."""
        return any(f != self.runs[0] for f in self.runs)

    def some(self, name: str) -> set:
        return set().union(*(getattr(f, name) for f in self.runs))

    def kinds(self) -> set[str]:
        """The kinds of faults that some schedule shows."""
        names = {n for n in ("races", "fences", "unset", "pending") if self.some(n)}
        return names | ({"stuck"} if any(f.stuck for f in self.runs) else set())

    def stuck(self) -> set[int]:
        return set().union(*(f.stuck or () for f in self.runs))


def truth_of(program: Program, rounds: int = 1) -> Truth:
    """The truth about a program. Raises Undefined for a program that the ISA gives no meaning."""
    if not program.same_blocks():
        raise Undefined("warps of a warpgroup execute different wgmma instructions")
    rng = random.Random(program.seed)
    runs = [facts(FullRun(program, rng, habit).go()) for habit in HABITS * rounds]
    return Truth(runs, program.elect)


def facts(run: Run) -> Facts:
    found = Facts(stuck=run.stuck, pending=set(run.early), ahead=run.ahead, loose=run.loose)
    accesses: dict[tuple, list] = {}
    for number, node in enumerate(run.nodes):
        for space, rank, first, words, mode in node.touches:
            for word in range(first, first + words):
                accesses.setdefault((space, rank, word), []).append((number, mode))
    alike = {tuple(them): place for place, them in accesses.items()}  # words with the same accesses
    for them, (space, _, _) in alike.items():
        _pairs(run, found, space, them)
    if run.stuck is None:
        _left_over(run, found)
    return found


def _pairs(run: Run, found: Facts, space: str, them: tuple) -> None:
    for i, (later, mode) in enumerate(them):
        y = run.nodes[later]
        if space == "t" and mode == "r" and not any(_writes(m) for n, m in them if n < later):
            found.unset.add(y.op.id)
        for earlier, before in them[:i]:
            x = run.nodes[earlier]
            if not _conflict(run, x, before, y, mode):
                continue
            pair = (min(x.op.id, y.op.id), max(x.op.id, y.op.id))
            fenced = space == "t" and y.usable >> earlier & 1
            if not y.know >> earlier & 1 and not fenced:
                if _overwritten(run, them[:i], earlier, later):
                    continue
                silent = x.unit == y.unit == "tmem" and x.thread == y.thread and _writes(mode)
                (found.open if silent else found.races).add(pair)
            elif space == "t":
                apart = x.thread // 32 != y.thread // 32 or "mma" in (x.unit, y.unit)
                if apart and not y.usable >> earlier & 1:
                    found.tcgen05.add(pair)
            elif y.unit in PROXY and x.unit not in PROXY and _writes(before):
                _proxy(run, found, space, earlier, later, pair, mode)


def _overwritten(run: Run, before: tuple, earlier: int, later: int) -> bool:
    """Whether a copy between the two accesses has overwritten the place. The copy comes after what its thread
    did, and the later access after the copy; only the copy's signal releases no more than the copy itself
    (8.9.1.1).
    """
    know = run.nodes[later].know
    return any(
        _writes(mode) and run.nodes[z].unit in ("copy", "cp.async")
        and know >> z & 1 and run.nodes[z].know >> earlier & 1
        for z, mode in before
    )  # fmt: skip


def _writes(mode) -> bool:
    return mode[-1] == "w"


def _conflict(run: Run, x: Node, before, y: Node, mode) -> bool:
    if not (_writes(before) or _writes(mode)):
        return False
    if x.op is y.op and x.op.a.get("at") == "one" and x.thread // 32 == y.thread // 32:
        return False  # one value from several lanes
    if x.unit == y.unit == "cp.async" and x.thread == y.thread and x.op.a["from"] == y.op.a["from"]:
        return False  # the same word twice
    strong = isinstance(before, tuple) and isinstance(mode, tuple)
    return not (strong and ("cta" not in (before[1], mode[1]) or run.rank(x.thread) == run.rank(y.thread)))


def _proxy(run: Run, found: Facts, space: str, earlier: int, later: int, pair: tuple, mode) -> None:
    """Which fence lies between a generic write and an access of the async proxy (9.7.13.4); records a missing
    one.
    """
    x, y = run.nodes[earlier], run.nodes[later]
    own, other = False, False
    for thread, fences in run.fences.items():
        for number, know, spaces in fences:
            if y.know >> number & 1 and know >> earlier & 1 and spaces in ("all", space):
                good = thread == x.thread or x.unit == "cp.async"  # any thread that waited for a copy will do
                own, other = own or good, other or not good
    if own:
        return
    strict = not _writes(mode) and y.unit == "copy" and not other
    (found.fences if strict else found.late).add(pair)


def _left_over(run: Run, found: Facts) -> None:
    """Records work that is still under way when threads end."""
    for bit, (who, number) in run.awaited.items():
        warps = run.program.warps * 32
        threads = range(number * warps, number * warps + warps) if who == "cta" else (number,)
        if not any(run.know[t] & bit for t in threads):
            op = run.nodes[bit.bit_length() - 1].op
            (found.kept if op.kind == "bulk_store" else found.pending).add(op.id)
    found.half = any(b.pending != b.count or b.tx for b in run.barriers.values())
