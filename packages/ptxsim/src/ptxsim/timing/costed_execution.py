"""Prepares a execution for replay: gives every step of a warp its costs (steps.py).

Only registers that arrive late (from memory, tensor cores, other lanes) are kept. Plain arithmetic is part of
a run, which waits for a register when its first reader is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxsim.timing.atomics import Atomic, played, whole_warps
from ptxsim.timing.chip import Chip
from ptxsim.timing.execution import Execution, MemoryAccess, Run, Unit
from ptxsim.timing.instructions import Rows
from ptxsim.timing.merging import merged
from ptxsim.timing.ordering import among_products, hoisted
from ptxsim.timing.sass_order import SassOrder
from ptxsim.timing.steps import (
    JOINED,
    Global,
    Issue,
    Move,
    Other,
    Product,
    Shared,
    Slots,
    Step,
    Stretch,
    Tmem,
    TmemWait,
    Wait,
)
from ptxsim.timing.unrolling import joined, renamed
from ptxsim.trace.schedule import BARRIERS, UNITS, WAITS

LEAST = 0.01  # fewer instructions than this are ignored
_PRODUCTS = ("mma.", "wmma.mma")  # products in registers, for which a warp waits
_ASYNC = ("shfl", "vote", "match", "redux", "elect", "movmatrix", "atom")  # the warp waits only at a reader
_FENCES = ("fence", "membar", "setmaxnreg", "tcgen05.alloc", "wgmma.fence", "wgmma.commit", "bar")


@dataclass
class CostedExecution:
    execution: Execution
    warps: list[list[Move]]
    late: list[list[int]]  # event -> events of units' work that it starts
    follows: list[int]  # event of a barrier's phase -> number of events that it follows
    heirs: list[list[int]]  # event -> phases that follow it
    slots: float = 0  # issue slots of all warps
    shared_bytes: int = 0  # through the shared-memory port, 128 per pass
    product_flops: float = 0.0  # by mma.sync
    unit_flops: float = 0.0  # by wgmma and tcgen05.mma
    half: float = 0.0  # share of the tensor instructions with float16 operands


def with_costs(execution: Execution, chip: Chip) -> CostedExecution:
    """The execution of one cluster with this chip's costs."""
    late: list[list[int]] = [[] for _ in execution.events]
    heirs: list[list[int]] = [[] for _ in execution.events]
    follows = [0] * len(execution.events)
    for number, event in enumerate(execution.events):
        if event.lane in UNITS:
            late[event.after[0]].append(number)
        elif event.lane == BARRIERS:
            follows[number] = len(event.after)
            for other in event.after:
                heirs[other].append(number)
    made = CostedExecution(execution, [], late, follows, heirs)
    writer = _Writer(made, chip)
    made.warps = [writer.warp(steps) for steps in execution.warps]
    made.unit_flops = sum(2.0 * e.amount for e in execution.events if e.kind == "mma")
    made.half = _half_share(execution)
    return made


class _Writer:
    """Writes the steps of a costed execution, and adds up in it what they take."""

    def __init__(self, made: CostedExecution, chip: Chip):
        execution = made.execution
        self.made, self.execution, self.chip = made, execution, chip
        counts = execution.sass_counts or [1] * len(execution.instrs)
        self.rows = Rows(execution.instrs, counts, chip.alu_latency, execution.stalls)
        self.order = SassOrder(self.rows, execution.places, self._plain)

    def warp(self, steps: list) -> list[Move]:
        """The steps of one warp in ptxas's order, without registers for which no step waits."""
        steps = whole_warps(steps, self.execution.instrs)
        out: list[Any] = [self._step(step) for step in steps]
        places = set() if self.execution.places else joined(steps, self.rows.sass_counts)
        for place in places:
            out[place] = out[place]._replace(does=out[place].does._replace(branches=JOINED))
        out = merged(steps, out, self.made)
        if self.execution.places:
            steps, out = self.order.reordered(steps, out)
        out = [one for step, does in zip(steps, out, strict=True) for one in self._whole(step, does)]
        out = renamed(out) if places else out
        if not self.execution.refills:  # with spills there are no registers for early loads
            out = among_products(out if self.execution.places else hoisted(out), self.execution.events)
        read = {name for step in out for name in step.reads}
        late = {name for step in out for name in step.writes if _is_late(step.does, name)}
        wanted = read & late
        return [_played(step, wanted) for step in out]

    def _plain(self, uses: tuple, branches: bool) -> Stretch:
        """The Stretch of plain rows in machine-code order; spills are among the counted instructions."""
        slots, waits, needed, ready = self.rows.in_order(uses)
        waits += slots * self.execution.refills * self.chip.l1_latency
        return Stretch(slots, ready, branches, {}, waits, needed)

    def _whole(self, step, does) -> list[Step]:
        """The steps for one step: first the other instructions that ptxas made of its row, then its own.

        does: its costs; None if it was merged into another. Those of an atomic are of all its instructions.
        """
        found = does if type(does) is list else [does] if does is not None else []
        row = step.row if type(step) in (MemoryAccess, Unit) else -1
        counted = row >= 0 and self.rows.row(row).name not in ("atom", "red")
        more = self.rows.sass_counts[row] - 1 if counted else 0.0
        if more < LEAST:
            return found
        self.made.slots += more
        return [Step(Stretch(more, {})), *found]

    def _step(self, step) -> Step | list[Step]:
        if type(step) is Run:
            slots, needed, ready = self.rows.run(step.first, step.last)
            refills = slots * self.execution.refills
            slots += 0.0 if self.execution.assembled else 2 * refills  # each comes with a store
            self.made.slots += slots
            last = self.execution.instrs[step.last]
            branches = last is not None and last.op in ("bra", "brx")
            roots = self.rows.roots(step.first, step.last)
            does = Stretch(slots, ready, branches, roots, refills * self.chip.l1_latency, needed)
            return Step(does, tuple(needed), tuple(ready))
        if type(step) is Atomic:
            self.made.slots += max(1, 5 * step.iterations)
            self.made.shared_bytes += 128 * max(step.passes, (step.passes + 1) * step.iterations)
            return played(step, self.rows.row(step.row), self.chip.shared_latency)
        if type(step) is MemoryAccess:
            row = self.rows.row(step.row)
            self.made.slots += 1
            return Step(self._access(step, row), row.reads, row.writes)
        return self._unit(step)

    def _access(self, step: MemoryAccess, row) -> Shared | Global:
        if step.shared:
            self.made.shared_bytes += 128 * step.passes
            late = self.chip.shared_latency + (10 if row.name == "ldmatrix" else 0)
            return Shared(step.passes, late, step.write)
        seen = step.lines, step.since, step.fetched
        return Global(step.passes, step.cached, step.segment, step.write, *seen, row.name in ("atom", "red"))

    def _unit(self, step) -> Step:
        row = self.rows.row(step.row) if step.row >= 0 else None
        self.made.slots += row is not None
        if step.event < 0:
            return self._other(step.row, row)
        event = self.execution.events[step.event]
        if event.kind in WAITS:
            return Step(Wait(step.event, _wait_cost(event, self.chip)))
        if event.kind in ("TMEM read", "TMEM write"):
            return self._tensor_memory(step.event, event, row)
        reads = row.reads if row and event.kind == "issue" and event.name != "wgmma" else ()
        cost = 0 if step.event in self.execution.further else _issue_cost(event, self.chip)
        return Step(Issue(step.event, cost), reads)

    def _tensor_memory(self, number: int, event, row) -> Step:
        """The step of a tcgen05.ld or st. Readers of its registers wait, with or without a wait::ld."""
        write = event.kind == "TMEM write"
        port, late = self.chip.tmem_costs(write)
        reads, writes = (row.reads, row.writes) if row else ((), ())
        if write:  # the first operand is the address
            reads, writes = reads + writes, ()
        return Step(Tmem(number, event.amount / port, late), reads, writes)

    def _other(self, number: int, row) -> Step:
        instr = self.execution.instrs[number]
        name = instr.name
        if name.startswith(_PRODUCTS):
            macs = _macs(instr.mods)
            self.made.product_flops += 2.0 * macs
            cycles = self.chip.mma_sync_cycles * macs / 2048
            return Step(Product(cycles, self.chip.mma_sync_latency), row.reads, row.writes)
        if name.startswith("cp.async.commit"):
            return Step(Stretch(1, {}))
        if name.startswith("tcgen05.wait"):
            return Step(TmemWait())
        costs = (cost for start, *cost in self.chip.other_instructions if name.startswith(start))
        slots, late = next(costs, (1, 0))
        stays = not name.startswith(_ASYNC)
        releases = {"acq_rel", "release"}.intersection(instr.mods)
        if name.startswith("atom") and "gpu" in instr.mods and releases:
            return Step(Other(slots, self.chip.release_latency, True))
        if name.startswith(_FENCES):
            return Step(Other(slots, late, True))
        return Step(Other(slots, late, stays), row.reads, row.writes)


def _half_share(execution: Execution) -> float:
    """Share of the program's tensor instructions that have float16 operands."""
    starts = ("wgmma.mma_async", *_PRODUCTS)
    products = [i for i in execution.instrs if i is not None and i.name.startswith(starts)]
    return sum(map(_of_halves, products)) / len(products) if products else 0.0


def _of_halves(instr) -> bool:
    """Whether a tensor instruction has float16 operands; such a wmma.mma names only the types of D and C."""
    return "f16" in instr.mods[-3:] or instr.op == "wmma" and instr.mods[-3][0] == "m"


def _is_late(does, name: str) -> bool:
    return type(does) is not Stretch or does.ready[name] > does.slots + 4


def _played(step: Step, wanted: set[str]) -> Move:
    """A step as the replay takes it: each register that it waits for has the cycles from the start of the
    step until it is needed. In a run, each register that it fills also has the cycles until it is ready.
    """
    does = step.does
    reads, writes = (tuple(name for name in names if name in wanted) for names in step[1:])
    if type(does) is not Stretch:
        return Move(does, tuple((r, 0) for r in reads), writes)
    fills = tuple((w, does.ready[w]) for w in writes)
    return Move(
        Slots(does.slots, does.branches, does.refills, fills), tuple((r, does.needed[r]) for r in reads)
    )


def _wait_cost(event, chip: Chip) -> float:
    plain = event.name.startswith(("wgmma", "wait_group", "cp.async", "cta_sync", "barrier ", "cluster_sync"))
    return 4 if plain else chip.wait_cost


def _issue_cost(event, chip: Chip) -> float:
    if event.name.startswith("TMA"):
        return chip.tma_issue
    if event.name.startswith("arrive on"):
        return chip.arrive_cost
    return 4 if event.name in ("tcgen05.mma", "tcgen05.commit") else 2


def _macs(mods) -> float:
    """Number of 16-bit multiply-adds that would take as long as an mma.sync."""
    shape = next(m for m in mods if m[0] == "m" and "n" in m)
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    width = 2 if "tf32" in mods else 0.5 if any(x in mods for x in ("e4m3", "e5m2", "s8", "u8")) else 1
    return int(m) * int(n) * int(k) * width
