"""Predicts the time of a launch on a chip: replays the sampled cluster and extends the result to the grid.

The cluster with the most work is the sample and determines the time. An SM (or a group of SMs as large as a
cluster) runs ceil(clusters / groups) clusters, as many at a time as fit. Up to MOST waves are replayed; each
further cluster costs as much as one of the second half. If clusters differ, the time is scaled by the result
of a schedule of them (scheduling.py). The launch adds a constant. Traffic and energy are those of the whole
grid: of all clusters, each with its share of the work (spread.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

from ptxsim.grid.processes import only_new_garbage
from ptxsim.machine.launch_view import Launch
from ptxsim.timing.chip import Chip
from ptxsim.timing.costed_execution import CostedExecution, with_costs
from ptxsim.timing.critical import critical
from ptxsim.timing.execution import Execution
from ptxsim.timing.locality import Locality, evicted, locality
from ptxsim.timing.machine_code import code, refills
from ptxsim.timing.occupancy import RESERVED, resident
from ptxsim.timing.power import PowerUse, settled_clock, start_clock, watts
from ptxsim.timing.record import record
from ptxsim.timing.replay import Played, Replay
from ptxsim.timing.scheduling import stretch
from ptxsim.timing.sharing import sharers, tiles_of
from ptxsim.timing.spread import spread

COUNTED = "instructions are counted in what ptxas makes of the PTX"
GUESSED = "no machine code of this PTX here (ptxas is missing, or refuses it): instructions are a guess at it"
MOST = 8  # waves that are replayed at most
STEPS = 400_000  # steps of all warps that are replayed at most; two waves are replayed in any case


@dataclass
class Sample:
    """What was recorded of a launch. The same for all chips with the same number of SMs."""

    execution: Execution
    sharers: dict[int, float]
    sizes: dict[int, int]  # array -> bytes
    clusters: int
    mean: float  # mean work of a cluster, as a share of the sampled one's
    ctas: int
    threads: int
    shared_bytes: int
    registers: int
    columns: int
    shares: tuple[float, ...] = ()  # work of each cluster in grid order, as such a share; () if all are equal


@dataclass
class Prediction:
    """The predicted time of a launch, and how it came about. Nothing in it was measured."""

    seconds: float
    cycles: float
    ghz: float
    watts: float
    tensor_busy: float  # share of the time in which the tensor cores multiply; mean over the SMs in use
    waves: int
    resident: int
    sms: int  # SMs in use
    work: PowerUse
    locality: Locality
    played: Played
    costed: CostedExecution
    spent: dict[str, float]  # time on the critical path: kind -> share, largest first
    notes: list[str] = field(default_factory=list)


@only_new_garbage()
def sample(
    launch: Launch, registers: int = 0, cubin: bytes = b"", *, sms: int, assembly: bytes = b""
) -> Sample:
    """Records a cluster of a prepared launch (LoadedModule.prepare): the one with the most work.

    registers: per thread in the machine code; 0 if unknown. cubin: the machine code, for its spills; b"" if
    unknown. sms: SMs of the chip, that is, how many CTAs are examined for reads that they share. assembly:
    the result of assembler.assembled(), in which instructions are counted.
    """
    if sms < launch.ctas_per_cluster:
        raise ValueError(f"a cluster of {launch.ctas_per_cluster} CTAs does not run on {sms} SMs")
    even = spread(launch)
    execution = record(launch, even.largest, code(assembly))
    execution.refills = refills(cubin)
    arrays = launch.memory.arrays
    sizes = {s: int(arrays[s].nbytes) for s in {*execution.reads, *execution.writes} if s >= 0}
    count = math.prod(launch.clusters)
    reads = {s: n for s, n in execution.reads.items() if s >= 0}
    groups = max(1, sms // launch.ctas_per_cluster)
    return Sample(
        execution, sharers(launch, reads, groups), sizes, count, even.mean, launch.ctas_per_cluster,
        launch.threads, launch.shared_end, registers or launch.program.function.registers, execution.columns,
        even.shares,
    )  # fmt: skip


@only_new_garbage()
def predict(taken: Sample, chip: Chip) -> Prediction:
    """The predicted time of a sample on a chip."""
    if not isinstance(chip, Chip):
        raise ValueError(f'chip is a Chip, such as forecasting.chip("h200") (got {chip!r:.80})')
    made = with_costs(taken.execution, chip)
    groups = max(1, int(chip.sms) // taken.ctas)
    slots = resident(chip, taken.threads, taken.shared_bytes, taken.registers, taken.columns)
    working, each = min(groups, taken.clusters), math.ceil(taken.clusters / groups)
    near = _near(taken, chip, groups, slots)
    work = _work(made, taken, near)
    start = start_clock(work, chip)
    ghz = settled = _likely_clock(work, made, chip, each)
    cycles = 0.0
    for _ in range(2):  # time and clock depend on each other: at most one correction
        cycles, played = _play(made, chip, near, ghz, each, slots)
        cycles = max(cycles, _ahead(made, chip, near, ghz, each))
        cycles *= stretch(taken.shares, groups, slots, partial(_together, made, chip, near, ghz))
        seconds = cycles / ghz / 1e9
        settled = settled_clock(work, seconds * ghz / start, start, chip)
        if abs(settled / ghz - 1) < 0.05:
            break
        ghz = settled
    ghz = settled
    total = max(cycles / ghz / 1e9 + chip.launch, chip.launch_floor)
    return Prediction(
        total, cycles, ghz, chip.idle_power + sum(watts(work, total, ghz, chip)),
        _tensor_cycles(made, chip) * taken.clusters * taken.mean / working / (total * ghz * 1e9),
        math.ceil(each / slots), slots,
        working * taken.ctas, work, near, played, made, _shares(taken, played, chip),
        [COUNTED if taken.execution.assembled else GUESSED],
    )  # fmt: skip


def _near(taken: Sample, chip: Chip, groups: int, slots: int) -> Locality:
    """The Locality of a launch on `groups` groups of SMs, each with room for `slots` clusters at a time."""
    execution, each = taken.execution, math.ceil(taken.clusters / groups)
    sms = min(groups, taken.clusters) * taken.ctas
    together = min(taken.clusters, groups * min(slots, each))
    written = sum(execution.writes.values())
    near = locality(
        chip, sms, execution.reads, taken.sizes, taken.sharers, taken.clusters, together,
        tiles_of(execution), taken.mean, _gathered(execution),
    )  # fmt: skip
    near.once = _once(taken)
    near.patched = execution.patched / max(1, written)
    near.behind = _behind(taken.clusters, groups, each) if each <= slots else 1.0
    near.slots = min(slots, each)
    near.l1_bytes = chip.l1_whole - near.slots * (taken.shared_bytes + RESERVED)
    near.evicted = evicted(chip, _missed(taken, near), written * taken.clusters * taken.mean)
    return near


def _behind(clusters: int, groups: int, each: int) -> float:
    """Share of the clusters on SMs that hold `each` clusters, not one less, if all run at the same time."""
    most = clusters - groups * (each - 1)
    return most * each / clusters if each > 1 else 1.0


def _likely_clock(work: PowerUse, made: CostedExecution, chip: Chip, each: int) -> float:
    """The clock (GHz) with which to start: as if only the tensor cores or only memory took time."""
    ghz = start_clock(work, chip)
    least = _tensor_cycles(made, chip) * each / ghz / 1e9
    least = max(least, work.hbm_bytes / chip.hbm_rate, work.l2_bytes / chip.l2_shared_rate)
    return settled_clock(work, 1.1 * least + chip.launch, ghz, chip)


def _play(
    made: CostedExecution, chip: Chip, near: Locality, ghz: float, each: int, slots: int
) -> tuple[float, Played]:
    """(cycles that an SM takes for its `each` clusters, the replay)."""
    steps = sum(len(warp) for warp in made.warps)
    waves = max(2, min(MOST, STEPS // max(1, steps * slots)))
    played = Replay(made, chip, near, ghz).play(min(each, waves * slots), slots)
    ends = sorted(played.ends)
    left = each - len(ends)
    if left <= 0:
        return ends[-1], played
    first = waves // 2 * slots
    return ends[-1] + (ends[-1] - ends[first - 1]) / (len(ends) - first) * left, played


def _ahead(made: CostedExecution, chip: Chip, near: Locality, ghz: float, each: int) -> float:
    """Cycles of the SMs that hold one cluster less: they wait for HBM for what the others then find in L2."""
    if near.behind == 1.0:
        return 0.0
    return _together(made, chip, replace(near, behind=1.0), ghz, each - 1)


def _together(made: CostedExecution, chip: Chip, near: Locality, ghz: float, count: int) -> float:
    """Cycles that `count` clusters take that start together on an SM."""
    return max(Replay(made, chip, near, ghz).play(count, count).ends)


def _work(made: CostedExecution, taken: Sample, near: Locality) -> PowerUse:
    """The work of all clusters. A multicast to several CTAs takes the energy of as many copies."""
    count = taken.clusters * taken.mean
    again = sum(c.bytes * (len(c.ranks) - 1) for c in taken.execution.copies.values() if not c.write) * count
    written = sum(taken.execution.writes.values()) * count
    back = sum(size * near.reaches_hbm(s) for s, size in taken.execution.writes.items()) * count
    passed, _ = _read_again(taken.execution.again, near)
    return PowerUse(
        made.unit_flops * count, made.product_flops * count,
        sum(taken.execution.reads.values()) * count + again + written + passed * count,
        _missed(taken, near) * (1.0 + near.evicted) + back * (1.0 + near.patched),
        made.shared_bytes * count, made.slots * count, made.half,
    )  # fmt: skip


def _missed(taken: Sample, near: Locality) -> float:
    """Bytes that all clusters together read from HBM."""
    missed = sum(
        n * near.miss.get(s, 0.0) / max(1.0, near.sharers.get(s, 1.0))
        for s, n in taken.execution.fetched.items()
    )
    return (missed + _read_again(taken.execution.again, near)[1]) * taken.clusters * taken.mean


def _once(taken: Sample) -> dict[int, float]:
    """Array -> share of the sectors written to it that reaches HBM.

    Stores of single bytes write a sector many times, from one CTA or several. L2 holds the sector and
    combines the stores, so that no more bytes reach HBM than the array has.
    """
    clusters = taken.clusters * taken.mean
    asked = {s: size * clusters for s, size in taken.execution.writes.items() if s >= 0 and size}
    return {s: min(1.0, taken.sizes[s] / size) for s, size in asked.items()}


def _gathered(execution) -> set[int]:
    """Arrays that are mostly read by gathers."""
    return {s for s, size in execution.scattered.items() if 2 * size > execution.reads[s]}


def _read_again(again: dict[int, dict[int, int]], near: Locality) -> tuple[float, float]:
    """(bytes that a cluster reads again and that L1 no longer holds, how many of them L2 no longer holds)."""
    passed = gone = 0.0
    for segment, found in again.items():
        for since, size in found.items():
            late = size * (1.0 - near.in_l1(since))
            passed += late
            gone += late * (1.0 - near.in_l2(since)) / max(1.0, near.sharers.get(segment, 1.0))
    return passed, gone


def _tensor_cycles(made: CostedExecution, chip: Chip) -> float:
    """Cycles for which one instance of the cluster keeps the tensor cores of an SM busy."""
    by_warps = made.product_flops / 4096 * chip.mma_sync_cycles / 4
    return (made.unit_flops / 2 / chip.mma_macs + by_warps) / made.execution.ctas


def _shares(taken: Sample, played: Played, chip: Chip) -> dict[str, float]:
    """Time on the critical path of the instance that ended last: kind -> share, largest first."""
    last = max(range(len(played.ends)), key=played.ends.__getitem__)
    slow = chip.tma_latency + 512
    spent = critical(taken.execution, played.paths[last], played.starts[last], slow)
    total = sum(spent.values()) or 1.0
    return {kind: cycles / total for kind, cycles in spent.most_common()}
