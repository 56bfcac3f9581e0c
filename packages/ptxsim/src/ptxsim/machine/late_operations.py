"""Operations by which warps learn who came first, and orders in which chosen ones come as late as they may.

An atomic or an arrival of another warp may come before or after; a run shows one of the two. `Late` names
operations that wait until nothing else can move: so the others come first. What warps read and set without
an atomic it cannot hold back; for that it ranks them: of the warps that can go on, the first one does, up to
its next barrier, copy or atomic. grid/every_order.py tries many.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from ptxsim.isa.memory_access import ASKS
from ptxsim.machine.cluster_view import Cluster
from ptxsim.machine.forward_progress import MOST_UNITS
from ptxsim.machine.split import Split

Operation = tuple[int, int, int]  # cluster, warp, how many operations the warp did before it


@dataclass(frozen=True)
class Late:
    """An order of a launch: `order`, but that these operations come last, and warps by their ranks."""

    order: str = "program"
    operations: frozenset[Operation] = frozenset()
    ranks: tuple[int, ...] = ()  # of each warp of a cluster; none: who waits longest goes on
    seen: dict[Operation, int] = field(default_factory=dict, compare=False)  # all that came -> row


Order = str | int | Late  # "program", "adverse" or a seed; with operations that come last


def base_of(order: Order) -> str | int:
    """ "program", "adverse" or a seed, whatever else an order says."""
    return order.order if isinstance(order, Late) else order


def is_operation(instr) -> bool:
    """May its place among those of other warps decide what they do?"""
    if instr is None:
        return False
    arrival = instr.op == "mbarrier" and instr.mods[0].startswith("arrive")
    return instr.op in ("atom", "red") or arrival


def hangs_on_order(program) -> bool:
    """Whether threads can tell who came first, other than by waiting: results of atomics, polls of memory,
    waits that may give up.
    """
    return any(_tells(instr) for instr in program.instrs if instr is not None)


def _tells(instr) -> bool:
    if instr.op == "mbarrier":
        return instr.mods[0] == "test_wait" or instr.mods[0] == "try_wait" and len(instr.operands) > 3
    return instr.op == "atom" or instr.op == "ld" and bool(ASKS & set(instr.mods))


class LateOperations:
    """Of one cluster."""

    def __init__(self, order: Order):
        self.order = order if isinstance(order, Late) else None
        self.on = self.order is not None
        self.seen = self.order.seen if self.order else {}
        self.ranks = self.order.ranks if self.order else ()
        self.most_units = 1 if self.ranks else MOST_UNITS  # that a warp does in a row

    def start(self) -> None:
        self.counts: Counter[int] = Counter()  # operations of each warp so far
        self.held: deque[int] = deque()  # splits that stand at one
        self.left: set[Operation] = set(self.order.operations) if self.order else set()
        self.in_vain: Counter[int] = Counter()  # turns of each split since it last got on

    def takes(self, cluster: Cluster, split: Split) -> bool:
        """Whether the split stays at its instruction until `release`."""
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
        """Takes from the queue who goes on: who polls in vain comes after the others."""
        chosen = min(queue, key=lambda g: (self.in_vain[g], self.ranks[g // 32]))
        queue.remove(chosen)
        return chosen

    def had_turn(self, g: int, work: int | None) -> None:
        """work: what the turn did without an effect."""
        if self.ranks:
            self.in_vain[g] = self.in_vain[g] + 1 if work else 0

    def release(self, cluster: Cluster) -> bool:
        """Nothing else can move: the operation that has waited longest comes. False if there is none."""
        if not self.on or not self.held:
            return False
        cluster.queue.append(self.held.popleft())
        cluster.effects += 1
        return True
