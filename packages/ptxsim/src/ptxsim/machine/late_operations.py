"""Operations whose order is visible to warps, and launch orders that delay chosen ones as long as possible.

An atomic or an arrival may come before or after that of another warp; a run shows one of the two orders.
`Late` names operations that wait until nothing else can make progress, so that the others come first. It
cannot delay plain loads and stores; for these it ranks the warps: of the warps that can run, the first one
runs up to its next barrier, copy or atomic. grid/every_order.py tries many such orders.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from ptxsim.isa.memory_access import ASKS, ELSEWHERE
from ptxsim.machine.cluster_view import Cluster
from ptxsim.machine.forward_progress import MOST_UNITS
from ptxsim.machine.split import Split

_MEETINGS = {"bar", "barrier", "fence", "membar"}  # where threads may hand on what they did before
Operation = tuple[int, int, int]  # cluster, warp, number of operations that the warp did before


@dataclass(frozen=True)
class Late:
    """A launch order: that of `order`, except that `operations` come last and warps run by their `ranks`."""

    order: str = "program"
    operations: frozenset[Operation] = frozenset()
    ranks: tuple[int, ...] = ()  # of each warp of a cluster; empty: the one that has waited longest runs
    seen: dict[Operation, int] = field(default_factory=dict, compare=False)  # all that were done -> row


Order = str | int | Late  # "program", "adverse", a seed, or an order with operations that come last


def base_of(order: Order) -> str | int:
    """The "program", "adverse" or seed of an order, without operations and ranks."""
    return order.order if isinstance(order, Late) else order


def is_operation(instr) -> bool:
    """Whether the order of this operation relative to those of other warps can change what the warps do."""
    if instr is None:
        return False
    arrival = instr.op == "mbarrier" and instr.mods[0].startswith("arrive")
    return instr.op in ("atom", "red") or arrival


def hangs_on_order(program) -> bool:
    """Whether threads can see which one came first, other than by waiting: by results of atomics, polls of
    memory, or waits that may time out.
    """
    return any(map(_tells, program.by_row.values()))


def _tells(instr) -> bool:
    if instr.op == "mbarrier":
        return instr.mods[0] == "test_wait" or instr.mods[0] == "try_wait" and len(instr.operands) > 3
    return instr.op == "atom" or instr.op == "ld" and bool(ASKS & set(instr.mods))


class LateOperations:
    """The delayed operations and the ranks of one cluster."""

    def __init__(self, order: Order):
        self.order = order if isinstance(order, Late) else None
        self.on = self.order is not None
        self.seen = self.order.seen if self.order else {}
        self.ranks = self.order.ranks if self.order else ()
        self.most_units = 1 if self.ranks else MOST_UNITS  # unit instructions in a row of a warp

    def start(self) -> None:
        self.counts: Counter[int] = Counter()  # operations of each warp so far
        self.held: deque[int] = deque()  # splits that wait at a delayed operation
        self.left: set[Operation] = set(self.order.operations) if self.order else set()
        self.in_vain: Counter[int] = Counter()  # turns of each split since it last made progress

    def takes(self, cluster: Cluster, split: Split) -> bool:
        """Whether the split must stay at its instruction until `release`."""
        if not is_operation(split.instr):
            return False
        operation = cluster.index, split.warp, self.counts[split.warp]
        if operation in self.left:
            self.left.remove(operation)
            self.held.append(split.index)
            return True
        self.counts[split.warp] += 1
        self.seen[operation] = split.row
        return False

    def first(self, queue: deque[int]) -> int:
        """Takes the next split to run from the queue: the one with the fewest turns in vain, then by rank."""
        chosen = min(queue, key=lambda g: (self.in_vain[g], self.ranks[g // 32]))
        queue.remove(chosen)
        return chosen

    def had_turn(self, g: int, work: int | None) -> None:
        """Notes a turn of split g. work: instructions without an effect, as in `Watchdog.gets_on`."""
        if self.ranks:
            self.in_vain[g] = self.in_vain[g] + 1 if work else 0

    def release(self, cluster: Cluster) -> bool:
        """Lets the operation that has waited longest run, as nothing else can; False if there is none."""
        if not self.on or not self.held:
            return False
        cluster.queue.append(self.held.popleft())
        cluster.effects += 1
        return True


class StepByStep(LateOperations):
    """Of a cluster beside others: what an atomic changes in global memory, they see before the next atomic of
    this cluster. So a poll acquires from the value that ends it, not from a later one.
    """

    def __init__(self, order: Order):
        super().__init__(order)
        self.on = True

    def start(self) -> None:
        super().start()
        self.known = 0  # of what the cluster has published, what the others have seen

    def takes(self, cluster: Cluster, split: Split) -> bool:
        if cluster.watchdog.alone or cluster.published == self.known or not _is_global(split.instr):
            return False
        self.held.append(split.index)
        return True

    def release(self, cluster: Cluster) -> bool:
        return False

    def go_on(self, cluster: Cluster) -> None:
        """The others have had a turn."""
        self.known = cluster.published
        cluster.queue.extend(self.held)
        self.held.clear()


class Alternating(StepByStep):
    """Of a cluster that alternates with others: it stops before each barrier, fence and atomic of a warp,
    until they have had a turn. So what comes before a signal is seen apart from the signal.
    """

    def start(self) -> None:
        super().start()
        self.may_pass: set[int] = set()  # splits that have stopped where they are

    def takes(self, cluster: Cluster, split: Split) -> bool:
        instr = split.instr
        if cluster.watchdog.alone or instr is None or not (_is_global(instr) or instr.op in _MEETINGS):
            return False
        if split.index in self.may_pass:
            self.may_pass.remove(split.index)
            return False
        self.held.append(split.index)
        return True

    def go_on(self, cluster: Cluster) -> None:
        self.may_pass.update(self.held)
        super().go_on(cluster)


def _is_global(instr) -> bool:
    """Whether this is an atomic that may be on global memory."""
    return instr is not None and instr.op in ("atom", "red") and not ELSEWHERE & set(instr.mods)
