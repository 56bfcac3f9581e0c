"""What the warps have done on mbarriers lately, for the words of a race report: it orders nothing itself."""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.checks.observer import Observer

Place = tuple[int, int]


@dataclass
class Seen:
    """The waits of one warp on one mbarrier. Phase -1 is the one before the first."""

    phase: int  # that its last wait saw complete
    lanes: int  # that have seen it
    again: tuple[int, int] | None = None  # (phase, row): the first wait that a phase let pass a second time


@dataclass
class Handed:
    """The last arrival of one warp on one mbarrier."""

    tick: int
    agent: int  # the first of those that arrived
    epoch: int  # of this agent, that the arrival ended
    row: int


class Handshakes(Observer):
    """Part of the RaceDetector. Stands before Synchronization: it wants epochs as an arrival finds them."""

    def __init__(self, races):
        self.races = races

    def start(self, cluster) -> None:
        self.clocks = self.races.clocks
        self.tick = 0
        self.seen: dict[tuple[int, Place], Seen] = {}
        self.handed: dict[int, dict[Place, Handed]] = {}
        self.waited: dict[int, int] = {}  # warp -> tick of its last wait

    def mbarrier_init(self, cluster, split, lane: int, place) -> None:
        self.seen = {key: seen for key, seen in self.seen.items() if key[1] != place}

    def mbarrier_arrive(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        if "expect_tx" in split.instr.mods:
            return  # this one announces bytes, it hands nothing over
        self.tick += 1
        agent = self.clocks.agent_of(split.warp * 32 + (lanes & -lanes).bit_length() - 1)
        handed = Handed(self.tick, agent, self.clocks.epoch(agent), split.row)
        self.handed.setdefault(split.warp, {})[place] = handed

    def mbarrier_wait(self, cluster, split, lanes: int, place, relaxed: bool) -> None:
        self.tick += 1
        self.waited[split.warp] = self.tick
        phase = cluster.mbarriers[place].phase - 1
        seen = self.seen.get((split.warp, place))
        if seen is None:
            self.seen[split.warp, place] = Seen(phase, lanes)
        elif seen.phase != phase:
            seen.phase, seen.lanes = phase, lanes
        else:
            seen.again = seen.again or ((phase, split.row) if seen.lanes & lanes else None)
            seen.lanes |= lanes

    def handed_early(self, agent: int, guest: int, clock) -> tuple[Place, int] | None:
        """(barrier, row) of what this agent's warp has signalled since its last wait, if warp `guest` waits
        for it and its `clock` knows of this signal: it was let in while the other was still at work.
        """
        warp = self.clocks.warp_of(agent)
        since = self.waited.get(warp, 0)
        for place, handed in self.handed.get(warp, {}).items():
            known = (guest, place) in self.seen and clock[handed.agent] >= handed.epoch
            if known and handed.tick > since:
                return place, handed.row
        return None
