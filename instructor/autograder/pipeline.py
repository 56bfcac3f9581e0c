"""How far the loads of a kernel run ahead of its MMAs, all through the run and not only at its start.

A load needs room: when it is issued, all bytes that came before it and may not have been multiplied yet lie
in shared memory too. Counted in stages, the bytes that one MMA waits for, that is the load's depth: a ring of
d stages reaches d with every load but the first ones of a tile, which have nothing before them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from instructor.autograder.flow import Traced

Sequence = tuple[int, int, str]  # CTA of the product, CTA and warp that issue the MMA


@dataclass
class Load:
    """A TMA load that some MMA reads."""

    number: int
    size: int  # bytes
    last: dict[Sequence, int]  # of the MMAs that read it, by their place in the sequence
    first: tuple[Sequence, int]  # that reads it
    known: dict[Sequence, int]  # MMAs that had ended when it was issued, as the program orders it
    depth: float = 0.0  # in stages
    early: bool = False  # nothing of its tile had been multiplied: it could not be deeper


@dataclass
class Depths:
    """Of all loads that are multiplied."""

    loads: list[Load]

    @property
    def most(self) -> float:
        return max((load.depth for load in self.loads), default=0.0)

    def reached(self, wanted: float) -> float:
        """The part of the bytes that reach a depth, of those that could: 1 if none could."""
        able = [load for load in self.loads if not load.early]
        whole = sum(load.size for load in able)
        return sum(load.size for load in able if load.depth >= wanted) / whole if whole else 1.0


def depths(timeline: Traced) -> Depths:
    """Those of each CTA of the cluster, together."""
    sequences, places = _sequences(timeline)
    known = _known(timeline, places)
    rounds = {key: _rounds(timeline, numbers) for key, numbers in sequences.items()}
    readers = defaultdict(list)
    for mma in sorted(timeline.read_out):
        for load in timeline.fed.get(mma, ()):
            readers[load, timeline.events[mma].cta].append(mma)
    phases = _phases(timeline)
    found = []
    for cta in sorted({cta for _, cta in readers}):
        mine = {load: mmas for (load, where), mmas in readers.items() if where == cta}
        found += _of_cta(timeline, mine, places, known, rounds, phases)
    return Depths(found)


def _sequences(timeline: Traced):
    """The useful MMAs in order of issue, by who issues them; and the place of each."""
    sequences, places = defaultdict(list), {}
    for number in sorted(timeline.read_out):
        event = timeline.events[number]
        issue = timeline.events[event.after[0]]
        key = event.cta, issue.cta, issue.lane
        places[number] = key, len(sequences[key])
        sequences[key].append(number)
    return sequences, places


def _known(timeline: Traced, places: dict) -> list[dict[Sequence, int]]:
    """For each event the last MMA of each sequence that has ended before it begins."""
    known: list[dict[Sequence, int]] = []
    for event in timeline.events:
        mine: dict[Sequence, int] = {}
        for before in (*event.after, *event.read):
            if before < len(known):
                _join(mine, known[before])
            if before in places:
                _join(mine, dict([places[before]]))
        known.append(mine)
    return known


def _join(mine: dict, other: dict) -> None:
    for key, place in other.items():
        if mine.get(key, -1) < place:
            mine[key] = place


def _rounds(timeline: Traced, numbers: list[int]) -> list[int]:
    """For each MMA of a sequence the number of its tile: a tile begins as tensor memory is overwritten."""
    large = max((timeline.events[n].amount for n in numbers), default=0) / 4
    found, tile, before = [], 0, False
    for number in numbers:
        fresh = number in timeline.fresh and timeline.events[number].amount >= large
        tile += fresh and not before
        found.append(tile)
        before = fresh
    return found


def _phases(timeline: Traced) -> dict[int, set[int]]:
    """Load -> all loads that complete a barrier's phase with it, itself among them."""
    found = defaultdict(set)
    for event in timeline.events:
        if event.kind == "phase":
            loads = {n for n in event.after if timeline.events[n].kind == "load"}
            for load in loads:
                found[load] |= loads
    return found


def _of_cta(
    timeline: Traced, mine: dict, places: dict, known: list, rounds: dict, phases: dict
) -> list[Load]:
    loads = []
    for number in sorted(mine):
        read = [places[mma] for mma in mine[number]]
        last: dict[Sequence, int] = {}
        for one in read:
            _join(last, dict([one]))
        loads.append(Load(number, timeline.events[number].amount, last, read[0], known[number]))
    for at, load in enumerate(loads):
        held = [one for one in loads[: at + 1] if not _consumed(one, load)]
        stage = {
            other for n in timeline.fed[mine[load.number][0]] for other in phases[n] | {n} if other in mine
        }
        load.depth = sum(one.size for one in held) / sum(timeline.events[n].amount for n in stage)
        sequence, place = load.first
        ended = load.known.get(sequence, -1)
        load.early = ended < 0 or rounds[sequence][ended] != rounds[sequence][place]
    _deepest_of_a_phase(loads, phases)
    return loads


def _consumed(one: Load, by: Load) -> bool:
    """Whether all MMAs that read one load had ended before another was issued."""
    return all(by.known.get(sequence, -1) >= place for sequence, place in one.last.items())


def _deepest_of_a_phase(loads: list[Load], phases: dict) -> None:
    """Loads of one phase count together: the last of them fills the stage."""
    found = {load.number: load.depth for load in loads}
    for load in loads:
        load.depth = max(found.get(n, 0.0) for n in phases[load.number] | {load.number})
