"""What held each time that two accesses met which nothing orders. One pair of lines may meet thousands of
times, and some causes and excuses need a property of every meeting, not only of the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ptxsim.checks.race.async_work import Issued, byte_ranges
from ptxsim.checks.race.shadow_order import (
    AGENT,
    AGENT_SHIFT,
    CODE,
    EPOCH,
    EPOCH_MASK,
    EPOCH_SHIFT,
    OPEN_READ,
    POSITION,
    PREVIOUS,
    PREVIOUS_CLUSTER,
    READ_WRITE,
    ROW,
    ROW_MASK,
    WRITE_READ,
)
from ptxsim.events.records import Place
from ptxsim.machine.register_files import WHOLE_WARP


class Side(NamedTuple):
    agent: int  # -1: in another cluster
    epoch: int
    row: int


def sides(line: list[int]) -> tuple[Side, Side]:
    """(earlier access, later access) of a conflict that the shadows recorded; each cluster numbers its own
    agents.
    """
    previous = line[PREVIOUS]
    earlier = Side(previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK, previous & ROW_MASK)
    return earlier, Side(line[AGENT], line[EPOCH], line[ROW])


@dataclass(frozen=True)
class Meeting:
    """One conflict that the shadows recorded."""

    code: int
    position: int  # in the shadow
    earlier: Side
    later: Side
    by: int | None  # the thread that did or issued the later access
    work: Issued | None  # the asynchronous work of the later access
    known: np.ndarray | None  # epochs that the later access comes after

    @classmethod
    def of(cls, races, line: list[int], by: int | None, work: Issued | None, clock) -> Meeting:
        """clock: of the later access; None: its thread's own."""
        earlier, later = sides(line)
        if line[PREVIOUS_CLUSTER] not in (0, races.history.now):
            earlier = earlier._replace(agent=-1)
        known = races.clocks.clock[by] if clock is None and by is not None else clock
        return cls(line[CODE], line[POSITION], earlier, later, by, work, known)


@dataclass
class Meetings:
    """The first three hold of every meeting so far."""

    of_warp: bool = True  # both accesses are by threads of one warp
    in_warp: bool = True  # both are by threads, and a lane of the later one's warp knows of the earlier one
    in_group: bool = True  # a wgmma issued by a warp after the earlier one is the later one, or done by then
    # (barrier, row) of a lane's arrival for the reading warp, if there was one at every meeting
    handed_back: tuple[Place, int] | None = None
    readers: set[tuple[int, int]] = field(default_factory=set)  # (row, agent); -1: it is not known who
    met: set[tuple[int, int]] = field(default_factory=set)  # rows (read, write) of a CTA's threads; -1: else
    results: np.ndarray | None = None  # cells of tensor memory that depend on what MMAs read there
    _any: bool = False

    def note(self, races, one: Meeting, space: str) -> None:
        if self.handed_back or not self._any:
            found = _handed_back(races, one)
            self.handed_back = found and (self.handed_back or found)
        self._any = True
        self.of_warp = self.of_warp and _of_one_warp(races, one)
        self.in_warp = self.in_warp and _known_in_warp(races, one)
        self.in_group = self.in_group and _known_in_group(races, one)
        if one.code in (WRITE_READ, READ_WRITE, OPEN_READ):
            self._note_reader(races, one, space)

    def _note_reader(self, races, one: Meeting, space: str) -> None:
        """Adds who reads here: threads, shares of a wgmma, or the results of MMAs."""
        reads_later = one.code != READ_WRITE
        reader, writer = (one.later, one.earlier) if reads_later else (one.earlier, one.later)
        kind = races.clocks.kind_of(reader.agent) if reader.agent >= 0 else "other"
        self.met.add((reader.row, writer.row) if _of_one_cta(races, one) else (-1, -1))
        written = None
        if kind in ("wgmma", "mma") and space == "shared":
            written = _written(races, writer, one.position, None if reads_later else one.work)
        agents = {reader.agent}
        if kind == "wgmma":
            agents = races.wgmma.readers(reader.agent, reader.epoch, written)
        elif kind == "mma":
            work = one.work if reads_later else races.transfers.find(*reader)
            agents = self._multiplied(races, work, written)
        self.readers |= {(reader.row, agent) for agent in agents}

    def _multiplied(self, races, work: Issued | None, written: np.ndarray | None) -> set[int]:
        """Adds the results of MMAs that read what is written; {-1}: they are not known."""
        if work is None or not work.works or written is None:
            return {-1}
        cells = races.results.fed(work.works, written)
        self.results = cells if self.results is None else self.results | cells
        return set()


def _is_thread(races, side: Side) -> bool:
    return 0 <= side.agent < races.clocks.threads


def _by_threads(races, one: Meeting) -> bool:
    return _is_thread(races, one.earlier) and _is_thread(races, one.later)


def _of_one_warp(races, one: Meeting) -> bool:
    warps = {races.clocks.warp_of(side.agent) for side in (one.earlier, one.later)}
    return _by_threads(races, one) and len(warps) == 1


def _of_one_cta(races, one: Meeting) -> bool:
    ctas = {side.agent // races.clocks.per_cta for side in (one.earlier, one.later)}
    return _by_threads(races, one) and len(ctas) == 1


def _known_in_warp(races, one: Meeting) -> bool:
    if not _by_threads(races, one):
        return False
    lanes = races.clocks.agents_of(races.clocks.warp_of(one.later.agent), WHOLE_WARP)
    return bool(races.clocks.clock[lanes, one.earlier.agent].max() >= one.earlier.epoch)


def _known_in_group(races, one: Meeting) -> bool:
    """Whether a wgmma reads what a thread wrote, or copied by cp.async and waited for, before a warp of that
    warpgroup issued its own share; or a thread writes what another one read before a warp issued its share of
    a wgmma that this thread waited for.
    """
    agent, epoch, _ = one.earlier
    copied = one.code == WRITE_READ and agent >= 0 and races.clocks.kind_of(agent) == "cp.async"
    if not copied and not _is_thread(races, one.earlier):
        return False
    if one.code == WRITE_READ:
        return races.wgmma.all_knew(one.later.agent, one.later.epoch, agent, epoch)
    if one.code != READ_WRITE or one.by is None or not _is_thread(races, one.later):
        return False
    return races.wgmma.all_passed(one.by, agent, epoch, one.known)


def _handed_back(races, one: Meeting) -> tuple[Place, int] | None:
    """Where another lane of a reading thread's warp has told the writer that the place is free, if so."""
    if one.code != READ_WRITE or not _is_thread(races, one.earlier) or one.by is None:
        return None
    return races.handshakes.handed_for_warp(one.earlier, one.by, one.known)


def _written(races, writer: Side, position: int, work: Issued | None) -> np.ndarray | None:
    """The bytes of shared memory that one side of a conflict writes, as spans; None: not known."""
    if _is_thread(races, writer):
        return np.array([[position, position + 1]])
    known = [work] if work is not None else races.transfers.all_of(*writer)
    copies = [one.copy for one in known if one.copy is not None]
    spans = [byte_ranges(target, races.history.window) for copy in copies for target in copy.targets]
    return np.concatenate(spans) if spans else None
