"""Measures how well MMAs hide loads: replays the recorded events of a cluster with costs that show it.

In the replay an MMA takes time, but none for rows or columns of zeros; a load arrives `ahead` stages of MMAs
after its issue, however many are in flight; everything else is free. A ring of d stages then keeps the tensor
core busy for ahead = d - 1; any idle time is spent waiting for loads. The replay gives two figures: the part
of a tile's time in which the tensor core works, and the time lost between tiles. As write-back is free, a
loader that continues with the next tile loses nothing there; one that waits for write-back loses the latency
of a load.

A tile ends where no sum continues. Loads that an MMA reads together form one stage. A load takes at least as
long as a quarter of the ring: many small buffers that are refilled only once all are empty are not a ring.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations

from instructor.autograder.flow import Traced
from ptxsim.tracing import TENSOR, Event, schedule, spans

MACS = 1024  # 16-bit multiply-adds of the replay's tensor core in a tick
ROOM = 4  # a load takes at least as long as the MMAs on 1/ROOM of the shared memory that loads fill
Span = tuple[int, int]  # begin, end
Sequence = tuple[int, int, str]  # CTA of the product, CTA and warp that issue the MMA


@dataclass(frozen=True)
class Waiting:
    """Costs of the replay, as ptxsim's schedule takes them."""

    latency: int  # ticks from the issue of a load to its arrival

    def of(self, kind: str, amount: int) -> tuple[int, int]:
        if kind == "mma":
            return -(-amount // MACS), 0
        return 0, self.latency if kind == "load" else 0


@dataclass(frozen=True)
class Pace:
    """The figures of one replay."""

    inside: float  # the part of a tile's time, from its first MMA to its last, in which the tensor core works
    between: float  # time lost from one tile to the next, in load latencies; 0 with a single tile
    # Both are of the worst tile: a kernel's first tiles say nothing about the others.


@dataclass
class Replay:
    """The useful MMAs of one cluster and the loads that they read."""

    timeline: Traced

    @cached_property
    def tiles(self) -> dict[Sequence, list[list[int]]]:
        """The MMAs of each tile, tile after tile, by who issues them; a tile ends where no sum continues."""
        sequences: dict[Sequence, list[int]] = defaultdict(list)
        for number in sorted(self.timeline.read_out):
            event = self.timeline.events[number]
            issue = self.timeline.events[event.after[0]]
            sequences[event.cta, issue.cta, issue.lane].append(number)
        return {key: self._split(numbers) for key, numbers in sequences.items()}

    def _split(self, numbers: list[int]) -> list[list[int]]:
        mine, until = set(numbers), dict.fromkeys(numbers, 0)
        for one in self.timeline.sums:
            own = mine.intersection(one)
            until |= {number: max(until[number], max(own)) for number in own}
        tiles: list[list[int]] = []
        end = -1
        for number in numbers:
            if number > end:
                tiles.append([])
            tiles[-1].append(number)
            end = max(end, until[number])
        return tiles

    @cached_property
    def overwrites(self) -> bool:
        """Whether a tile's sums overwrite those of an earlier tile."""
        for tiles in self.tiles.values():
            places = [{self.timeline.events[n].name for n in tile} for tile in tiles]
            if any(one & other for one, other in combinations(places, 2)):
                return True
        return False

    @cached_property
    def stages(self) -> list[int]:
        """Bytes of each stage, ascending; a stage is the loads of a CTA that an MMA reads together."""
        events = self.timeline.events
        root: dict = {}
        for mma in self.timeline.read_out:
            keys = [(events[mma].cta, load) for load in self.timeline.fed.get(mma, ())]
            for key in keys:
                root[_root(root, key)] = _root(root, keys[0])
        held: dict[tuple, int] = defaultdict(int)
        for key in root:
            held[_root(root, key)] += events[key[1]].amount
        return sorted(held.values())

    @cached_property
    def stage_bytes(self) -> int:
        """Bytes of the stage that holds the median byte, so that a few small stages do not matter."""
        half = sum(self.stages) / 2
        return next(
            (size for size, sofar in zip(self.stages, accumulate(self.stages), strict=True) if sofar >= half),
            0,
        )

    @cached_property
    def macs(self) -> int:
        """Useful multiply-adds."""
        return sum(map(self._macs, self.timeline.read_out))

    def _macs(self, mma: int) -> int:
        """The multiply-adds of an MMA without those of zeros, which take no time."""
        return round(self.timeline.events[mma].amount * self.timeline.full[mma])

    @cached_property
    def stage_macs(self) -> float:
        """A stage's share of all multiply-adds, including those on bytes that no load brought."""
        return self.macs * self.stage_bytes / sum(self.stages)

    def pace(self, ahead: float) -> Pace:
        """The figures if loads arrive `ahead` stages of MMAs after their issue."""
        if not self.stages:
            return Pace(0.0, 0.0)
        ahead = max(ahead, self.timeline.room / self.stage_bytes / ROOM)
        latency = max(1, round(ahead * self.stage_macs / MACS))
        events = [_alike(event) for event in self.timeline.events]
        for number in self.timeline.full:
            events[number].amount = self._macs(number)
        schedule(events, Waiting(latency))  # type: ignore[arg-type]  # it calls of() alone
        ctas = {key[0] for key in self.tiles}
        useful = [events[number] for number in self.timeline.read_out]
        busy = {cta: spans([e for e in useful if (e.cta, e.lane) == (cta, TENSOR)]) for cta in ctas}
        inside, lost = 1.0, 0
        for (cta, *_), tiles in self.tiles.items():
            when = [(min(events[n].begin for n in tile), max(events[n].end for n in tile)) for tile in tiles]
            for span in when:
                inside = min(inside, _covered(busy[cta], span) / max(span[1] - span[0], 1))
            for (_, end), (begin, _) in zip(when, when[1:], strict=False):
                lost = max(lost, begin - end - _covered(busy[cta], (end, begin)))
        return Pace(inside if self.tiles else 0.0, lost / latency)


def _alike(event: Event) -> Event:
    """A copy of the event, to be scheduled anew."""
    own = event.cta, event.lane, event.kind, event.name, event.amount, event.after, event.read
    return Event(*own, event.line, event.phase, box=event.box)


def _root(parents: dict, key: tuple) -> tuple:
    while parents.setdefault(key, key) != key:
        parents[key] = parents[parents[key]]
        key = parents[key]
    return key


def _covered(busy: list[Span], span: Span) -> int:
    """Ticks of `span` that the `busy` spans cover."""
    return sum(max(0, min(end, span[1]) - max(begin, span[0])) for begin, end in busy)
