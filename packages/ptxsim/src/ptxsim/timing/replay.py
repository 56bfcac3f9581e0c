"""Replays the execution of a cluster on the SMs of a chip: which step waits for what, in cycles.

A warp does its steps in order. A step waits for registers that are not ready; a run of instructions waits for
a register only when its first reader is due. Pipes of an SM (issue slots, tensor cores, TMA, ports) serve
requests in order of arrival; of the chip's bandwidth an SM has its share (servers.py). An event ends when
its unit has served it, a phase of a barrier when all events that it follows have ended. The earliest step
is always played next, so requests reach a pipe in order of time.

Several instances of the cluster run one after another, `resident` at a time, as CTAs do on an SM.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptxsim.timing.accesses import SECTOR
from ptxsim.timing.chip import Chip
from ptxsim.timing.costed_execution import CostedExecution
from ptxsim.timing.instance import SUBS, Instance
from ptxsim.timing.locality import Locality
from ptxsim.timing.servers import Pipe, Scheduler, Share
from ptxsim.timing.steps import (
    Global,
    Issue,
    Other,
    Product,
    Shared,
    Slots,
    Tmem,
    TmemWait,
    Wait,
)
from ptxsim.trace.schedule import COPIES, LOADS, TENSOR

PORT = 128  # bytes per cycle of shared memory
ROWS = 128  # of a tcgen05.mma of one CTA; one with 64 rows takes as long
ATOMIC = 2  # times the cost of a store to the same sectors (ports.cu: 2.9 cycles a sector, in a line)
LINE = 128  # bytes that L2 fetches for a tensor map with L2 promotion of 128 B
STORED = 8  # stores to shared memory that may queue for its port before a warp waits with the next one
ALL_THREADS = "cta_sync", "barrier "  # how the names of bar.sync events start


class Sm:
    """The servers of one SM."""

    def __init__(self, chip: Chip, locality: Locality, ghz: float):
        cycle = ghz * 1e9 * locality.sms
        self.issue = [Scheduler() for _ in range(SUBS)]
        self.tensor = [Pipe() for _ in range(SUBS)]
        self.tmem = [Pipe() for _ in range(SUBS)]
        self.port, self.loads, self.stores, self.memory, self.copies = (Pipe() for _ in range(5))
        self.lines = Pipe()  # load unit: cp.async pass through it in order, and later accesses wait
        self.l2 = Share(1.0 / cycle, 600)  # requests are given as seconds of the whole chip, not as bytes
        self.hbm = Share(1.0 / cycle, 600, chip.hbm_queue, chip.hbm_drain)
        self.out = Share(chip.write_rate / cycle, 600)

    def busy(self) -> dict[str, float]:
        """Cycles for which each kind of pipe is busy."""
        single = {"shared memory": self.port, "TMA loads": self.loads, "stores": self.stores}
        split: dict[str, Sequence[Pipe]] = {
            "issue": self.issue, "tensor core": self.tensor, "TMEM": self.tmem,
        }  # fmt: skip
        return {name: pipe.busy for name, pipe in single.items()} | {
            name: sum(p.busy for p in pipes) / SUBS for name, pipes in split.items()
        }


@dataclass
class Played:
    """The result of a replay. Times are in cycles."""

    ends: list[float]  # of every instance, in order of starts
    starts: list[float]
    busy: dict[str, float]  # of SM 0
    paths: list = field(default_factory=list)  # of every instance: Path


class Replay:
    def __init__(self, costed: CostedExecution, chip: Chip, locality: Locality, ghz: float):
        self.costed, self.chip, self.locality = costed, chip, locality
        self.execution = costed.execution
        self.sms = [Sm(chip, locality, ghz) for _ in range(self.execution.ctas)]
        self.heap: list[tuple] = []  # (cycle, instance, warp)
        self.launches = Pipe()  # the chip starts CTAs one after the other
        self.count = 0
        self.do: dict[type, Callable] = {
            Slots: self._run,
            Shared: self._shared,
            Global: self._global,
            Product: self._product,
            Other: self._other,
            Issue: self._issue,
            Wait: self._wait,
            Tmem: self._tmem,
            TmemWait: self._tmem_wait,
        }

    def play(self, instances: int, resident: int) -> Played:
        """Plays `instances` instances of the cluster, `resident` at a time."""
        self.left = instances
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.paths: list = []
        self.resident = resident
        self.instances: list[Instance] = []
        for _ in range(min(instances, resident)):
            self._begin(0.0)
        while self.heap:
            at, _, instance, warp = heapq.heappop(self.heap)
            self._advance(instance, warp, at)
        stuck = [i for i in self.instances if i.alive]
        if stuck:
            raise RuntimeError(f"the replay is stuck: {len(stuck)} instances wait for events that never end")
        return Played([i.end for i in self.instances], self.starts, self.sms[0].busy(), self.paths)

    def _begin(self, at: float) -> None:
        self.left -= 1
        paced = self.launches.serve(at, self.chip.cta_pace * self.locality.sms)
        at = paced if len(self.instances) >= self.resident else at  # the first ones start together
        instance = Instance(self.costed, self.locality, len(self.instances))
        self.instances.append(instance)
        self.starts.append(at)
        self.paths.append(instance.path)
        for warp in range(len(self.costed.warps)):
            self._push(at, instance, warp)

    def _push(self, at: float, instance, warp: int) -> None:
        self.count += 1
        heapq.heappush(self.heap, (at, self.count, instance, warp))

    def _advance(self, instance, warp: int, at: float) -> None:
        """Plays steps of a warp until another warp's step may be earlier, or until it waits for an event."""
        steps, place, ready = self.costed.warps[warp], instance.place, instance.ready[warp]
        heap, do = self.heap, self.do
        sm, sub = self.sms[warp // self.execution.warps_per_cta], instance.sub(warp)
        while place[warp] < len(steps):
            does, waits, fills = steps[place[warp]]
            begin = at
            for name, later in waits:
                begin = max(begin, ready.get(name, 0.0) - later)
            if begin > at:
                instance.path.waits[warp].append((at, begin, "operands", -1))
            if heap and begin > heap[0][0]:
                self._push(begin, instance, warp)
                return
            then = do[type(does)](instance, warp, sm, sub, begin, does, fills)
            if then is None:
                return
            place[warp] += 1
            at = then
        self._finish(instance, warp, at)

    def _finish(self, instance, warp: int, at: float) -> None:
        instance.alive -= 1
        if at >= instance.end:
            instance.end, instance.path.last = at, (warp, at)
        if not instance.alive:
            instance.end = max(instance.end, instance.stored)
            if self.left:
                self._begin(instance.end + self.chip.cta_start)

    # ---- steps: each returns the cycle at which the warp continues, or None if it sleeps ----

    def _run(self, instance, warp, sm, sub, at, does: Slots, fills):
        slots, branches, refills, timed = does
        begin = sm.issue[sub].take_turns(at, slots)
        ready = instance.ready[warp]
        for name, late in timed:
            ready[name] = begin + late
        ends = begin + slots + refills  # the warp waits for each refill
        return instance.issued(warp, ends) if branches else ends

    def _shared(self, instance, warp, sm, sub, at, does: Shared, fills):
        passes, late, write = does
        begin = sm.port.serve(max(sm.issue[sub].now(at, 1), sm.lines.free), passes)
        for name in fills:
            instance.ready[warp][name] = begin + passes - 1 + late
        return max(at + 1, begin - STORED * passes) if write else at + 1

    def _global(self, instance, warp, sm, sub, at, does: Global, fills):
        sectors, cached, segment, write, lines, since, fetched, atomic = does
        begin = sm.issue[sub].now(at, 1)
        if write:
            begin = sm.memory.serve(begin, lines * self.chip.store_line)
            sm.out.serve(begin, 32 * sectors * (ATOMIC if atomic else 1))
            due = sm.hbm.serve(begin, 32 * sectors * self.locality.written_seconds(segment), True)
            begin = max(begin, due - self.chip.store_queue)
            for name in fills:  # of an atomic
                instance.ready[warp][name] = begin + self.chip.hbm_latency
            return max(at + 1, begin - self.chip.store_ahead)
        begin = sm.port.serve(sm.memory.serve(begin, max(lines, 0.5 * sectors)), lines)
        ends = begin + self.chip.l1_latency
        if sectors > cached:
            missed = instance.misses(segment, "ld")
            ends = self._loaded(instance, warp, sm, begin, sectors - cached, segment, missed, fetched)
        if cached and not instance.finds("L1", segment, self.locality.in_l1(since)):
            missed = not instance.finds("L2", segment, self.locality.in_l2(since))
            size = SECTOR * cached
            ends = max(ends, self._loaded(instance, warp, sm, begin, cached, segment, missed, size))
        for name in fills:
            instance.ready[warp][name] = ends
        return begin + 1

    def _loaded(self, instance, warp, sm, at, sectors, segment, missed, fetched) -> float:
        """When sectors that miss L1 have arrived; those of one warp arrive one line after the other.

        fetched: bytes that HBM sends for them.
        """
        last = instance.paced(warp, at, sectors * SECTOR / LINE * self.chip.load_pace) - self.chip.load_pace
        seconds = SECTOR * sectors * self.locality.l2_seconds(segment)
        hit, miss = (max(0.0, last - at) + late for late in (self.chip.l2_latency, self.chip.hbm_latency))
        return self._fetch(sm, at, fetched, seconds, segment, missed, hit, miss)

    def _fetch(self, sm, at: float, size: float, seconds: float, segment: int, missed: bool, hit: float,
               miss: float, part: float = 1.0) -> float:  # fmt: skip
        """When `size` bytes that an SM requests at `at` have arrived. seconds: time of all of L2; part: share
        of the bytes in the lines that HBM sends for them.
        """
        due = sm.l2.serve(at, seconds)
        if not missed:
            return max(at + hit, due)
        size /= part
        due = max(due, sm.hbm.serve(at, size * self.locality.hbm_seconds(segment)))
        if self.locality.evicted:
            due = max(due, sm.hbm.serve(at, size * self.locality.evicted_seconds(segment), True))
        return max(at + miss + sm.hbm.waits(), due)

    def _product(self, instance, warp, sm, sub, at, does: Product, fills):
        cycles, late = does
        begin = sm.tensor[sub].serve(sm.issue[sub].now(at, 1), cycles)
        for name in fills:
            instance.ready[warp][name] = begin + late
        instance.products[warp] = begin
        return at + 1

    def _other(self, instance, warp, sm, sub, at, does: Other, fills):
        slots, late, stays = does
        begin = sm.issue[sub].take_turns(at, slots)
        for name in fills:
            instance.ready[warp][name] = begin + late
        return begin + (late if stays and not fills else slots)

    def _tmem(self, instance, warp, sm, sub, at, does: Tmem, fills):
        event, cycles, late = does
        begin = sm.tmem[sub].serve(at, cycles)
        ends = begin + cycles + late
        instance.tmem[warp] = max(instance.tmem[warp], ends)
        for name in fills:
            instance.ready[warp][name] = ends
        self._end(instance, event, ends)
        return at + 4

    def _tmem_wait(self, instance, warp, sm, sub, at, does: TmemWait, fills):
        until = max(at, instance.tmem[warp])
        instance.path.waits[warp].append((at, until, "TMEM", -1))
        return until

    def _issue(self, instance, warp, sm, sub, at, does: Issue, fills):
        event, cost = does
        if self.execution.events[event].name.startswith(ALL_THREADS):
            at = instance.issued(warp, at)
        begin = sm.issue[sub].now(at, min(2, cost))
        instance.path.issued[event] = warp, begin
        for work in self.costed.late[event]:
            self._serve(instance, work, begin + 2, warp)
        self._end(instance, event, begin + cost)
        if self.execution.events[event].name == "cp.async":  # the load unit's queue is short
            return max(begin + cost, sm.lines.free - self.chip.copy_queue)
        return begin + cost

    def _wait(self, instance, warp, sm, sub, at, does: Wait, fills):
        event, cost = does
        noted = self.execution.events[event]
        until, cause = at + cost, -1
        for other in noted.after:
            if self.execution.events[other].lane.startswith("warp"):
                continue  # the warp's own previous step
            ended = instance.ended[other]
            if ended is None:
                instance.sleepers.setdefault(other, []).append((warp, at))
                return None
            if ended > until:
                until, cause = ended, other
        for other in noted.read:
            read = instance.path.served[other][1]
            if read > until:
                until, cause = read, other
        if cause >= 0:
            instance.path.waits[warp].append((at, until, "event", cause))
        instance.path.issued[event] = warp, at
        self._end(instance, event, until)
        return until

    # ---- work of units ----

    def _serve(self, instance, number: int, at: float, warp: int) -> None:
        """A unit starts work that was issued at `at`."""
        event = self.execution.events[number]
        instance.path.issued[number] = warp, at
        sm = self.sms[event.cta]
        if event.lane == TENSOR and event.kind == "mma":
            begin, served, end = self._multiply(sm, number, event, at, instance.sub(warp))
        elif event.lane == TENSOR:
            begin = served = end = max([at, *(self._multiplied(instance, n) for n in event.after[1:])])
        elif event.lane == LOADS:
            begin, served, end = self._load(instance, number, at)
        elif event.lane == COPIES:
            begin, served, end = self._copy(instance, sm, number, event, at)
        else:
            begin, served, end = self._store(sm, number, event, at)
            instance.stored = max(instance.stored, served)
        instance.path.served[number] = begin, served, end
        self._end(instance, number, end)

    def _multiply(self, sm, number: int, event, at: float, sub: int) -> tuple:
        product = self.execution.products.get(number)
        if product is None:  # wgmma: a warp's share, on its own sub-partition
            cycles = max(4 * event.amount / self.chip.mma_macs, self.chip.mma_least)
            begin = sm.tensor[sub].serve(at, cycles)
            sm.copies.serve(at, cycles / SUBS)  # its operands use the port to which cp.async writes
            return begin, begin + cycles, begin + cycles + self.chip.mma_latency
        rows = product.rows if product.pair else max(ROWS, product.rows)
        passed = product.own + (0 if product.stored else product.rows)
        cycles = max(16 * product.columns * rows / self.chip.mma_macs, 32 * passed / PORT)
        for pipe in sm.tensor:
            begin = pipe.serve(at, cycles)
        return begin, begin + cycles, begin + cycles

    def _multiplied(self, instance, number: int) -> float:
        """The earliest cycle at which a wait for an MMA can end."""
        product, chip = self.execution.products[number], self.chip
        late = chip.mma_stored_latency if product.stored else chip.mma_latency
        return instance.ended[number] + late + chip.mma_pair_latency * product.pair

    def _load(self, instance, number: int, at: float) -> tuple:
        """A TMA load; a multicast passes through L2 once and through the port of each CTA."""
        copy = self.execution.copies[number]
        part = copy.bytes / (LINE * copy.lines) if copy.lines else 1.0  # share of the lines fetched into L2
        missed = instance.misses(copy.segment, "TMA", part)
        cycles = copy.bytes / self.chip.l2_port
        own = self.sms[self.execution.events[number].cta]
        begin = max(self.sms[r].loads.serve(at, cycles) for r in copy.ranks)
        late = self.chip.tma_hbm_latency if missed else self.chip.tma_latency
        seconds = self.locality.copy_seconds(copy.segment, copy.bytes, copy.parted)
        late += cycles
        end = self._fetch(own, begin, copy.bytes, seconds, copy.segment, missed, late, late, part)
        return begin, begin + cycles, end

    def _copy(self, instance, sm, number: int, event, at: float) -> tuple:
        copy = self.execution.copies.get(number)
        if copy is None:
            return at, at, at
        missed = instance.misses(copy.segment, "cp.async")
        sm.port.serve(at, max(copy.bytes / PORT, copy.passes * self.chip.copy_line))
        through = sm.lines.serve(at, copy.passes * self.chip.copy_pass)
        begin = max(through, sm.copies.serve(at, copy.bytes / self.chip.copy_port))
        seconds = self.locality.copy_seconds(copy.segment, copy.bytes, copy.parted)
        whole = copy.bytes - copy.parted / 2
        end = self._fetch(sm, begin, whole, seconds, copy.segment, missed, self.chip.copy_latency,
                          self.chip.copy_hbm_latency)  # fmt: skip
        return begin, begin + 4, end

    def _store(self, sm, number: int, event, at: float) -> tuple:
        copy = self.execution.copies[number]
        cycles = copy.bytes / self.chip.store_port
        begin = sm.stores.serve(at, cycles)
        done = max(begin + cycles + self.chip.store_latency, sm.out.serve(begin, copy.bytes))
        sm.hbm.serve(begin, copy.bytes * self.locality.written_seconds(copy.segment), True)
        return begin, done, done + 6

    # ---- ends of events ----

    def _end(self, instance, number: int, at: float) -> None:
        """Ends event `number` at `at`, and phases that it completes; wakes the warps that wait for these."""
        instance.ended[number] = at
        instance.path.ended[number] = at
        for phase in self.costed.heirs[number]:
            hop = at + self._hop(number, self.costed.follows[phase])
            if hop >= instance.phase_end.get(phase, -1.0):
                instance.phase_end[phase] = hop
                instance.path.cause[phase] = number
            instance.missing[phase] -= 1
            if not instance.missing[phase]:
                self._end(instance, phase, instance.phase_end[phase])
        for warp, since in instance.sleepers.pop(number, ()):
            self._push(since, instance, warp)

    def _hop(self, number: int, arrivals: int) -> float:
        """Cycles from one of `arrivals` arrivals to the warps that wait for the phase they complete."""
        event, chip = self.execution.events[number], self.chip
        if not event.lane.startswith("warp"):
            return 0.0
        if event.name.startswith("cluster_sync"):
            return chip.cluster_relaxed_cost if number in self.execution.relaxed else chip.cluster_cost
        if event.name.startswith(ALL_THREADS):
            return chip.bar_cost + arrivals * chip.bar_warp
        return chip.remote_hop if number in self.execution.remote else chip.arrive_hop
