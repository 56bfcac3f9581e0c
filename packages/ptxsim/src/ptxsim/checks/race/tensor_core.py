"""Accesses of the tensor cores: tcgen05.mma with its commits, and wgmma."""

from __future__ import annotations

import itertools

import numpy as np

from ptxsim.checks.race.async_work import Issued, byte_ranges, spans_of
from ptxsim.checks.race.clock_rows import joined, most, with_epoch
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.shadow_bytes import SHARED
from ptxsim.checks.race.shadow_order import SERIAL
from ptxsim.checks.race.shadow_tmem import rectangle
from ptxsim.checks.race.vector_clocks import Stamp
from ptxsim.events.records import Commit, Footprint, Rectangle, SharedSpan
from ptxsim.events.views import Cluster, Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES

_IN_FLIGHT = 64  # wgmma instructions of a warpgroup that can be waited for
_SHARES = 256  # wgmma instructions of a warpgroup whose operands are remembered
_NOTHING = np.zeros(0, np.int32)


class Tcgen05(Part):
    """Part of the RaceDetector: what tensor cores execute in the order of the issuing thread, and
    tcgen05.commit.
    """

    def __init__(self, races):
        super().__init__(races)
        self.history, self.tmem = races.history, races.tensor_memory
        self.operands: dict[tuple, np.ndarray] = {}  # footprints -> byte ranges of shared memory
        self.cells: dict[tuple, np.ndarray] = {}  # rectangles -> cells of the shadow

    def start(self, cluster: Cluster) -> None:
        self.clocks, self.transfers = self.races.clocks, self.races.transfers
        self.issued: dict[int, Issued] = {}
        self.signalled: dict[int, np.ndarray] = {}  # thread -> thread_clock of the phases its commits ended
        self.last: Issued | None = None  # the last MMA with clocks of its own
        self.state: tuple | None = None  # state of its thread after it

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        item = self._item(split)
        queue = self.clocks.queue(item.queue)
        queue.count += 1
        item.epoch = queue.count
        if work.name == "tcgen05.mma" and not work.accumulates:
            self.transfers.begun.setdefault(item.queue, []).append(item.epoch)
        self.clocks.tcgen05_clock[item.thread, item.queue + 1 - self.clocks.threads] = queue.count
        self.issued[id(work)] = item
        self.transfers.remember(item)

    def _item(self, split: Split) -> Issued:
        """The record of an MMA. If it comes after the same events as the one before it, it shares that
        one's clocks: its thread has learnt nothing and handed over nothing since, and nobody has stored
        what it could read.
        """
        clocks, thread, stores = self.clocks, self.clocks.agent_of(split.thread), self.history.stores()
        state = thread, clocks.clock.item(thread, thread), clocks.changes, stores
        last = self.last
        if state == self.state and last is not None:
            known = last.clock, last.thread_clock, last.tcgen05_clock
            return Issued(
                "mma", split.row, thread, *known, last.queue, 0, last.flags, stores=stores, at=last.at
            )
        item = self.last = Issued.of("mma", split, clocks)
        item.flags |= SERIAL
        item.queue, item.stores = self.tmem.mma_queue(thread), stores
        self.state = thread, state[1] + 1, clocks.changes, stores
        return item

    def commit_issue(self, cluster: Cluster, split: Split, commit: Commit) -> Issued:
        item = Issued.of("commit", split, self.clocks)
        threads, queue = self.clocks.threads, self.tmem.mma_queue(item.thread)
        item.queue, item.epoch = queue, self.clocks.queue(queue).count
        item.clock = with_epoch(item.clock, queue, item.epoch)
        item.thread_clock = with_epoch(item.thread_clock, queue - threads, item.epoch)
        for place in commit.barriers:
            self.races.barrier_init.used(split, 1 << split.leader, place, "tcgen05.commit")
        known = self.transfers.commits.setdefault(queue, [])
        known += [(item.epoch, place) for place in commit.barriers]
        return item

    def async_arrive(self, cluster: Cluster, place, token) -> None:
        if token is None:
            return
        told = self.signalled.get(token.thread, _NOTHING)
        stamp = Stamp(token.clock, joined(token.thread_clock, told))
        self.races.synchronization.arrive_later(cluster, place, stamp, stamp, token.row)
        if cluster.mbarriers[place].expected == 1:  # this signal ends the phase, before the thread's next one
            column = self.clocks.thread_column("bytes", place)
            phase = cluster.mbarriers[place].phase + 1
            self.signalled[token.thread] = with_epoch(told, column, phase)

    def tensor_execute(self, cluster: Cluster, works: list) -> None:
        """MMAs that know the same read as one: whoever knows that the last one is done knows it of all."""
        items = [self.issued.pop(id(work)) for work in works]
        for work, item in zip(works, items, strict=True) if works[0].footprint.cells_read else ():
            for _, cells in itertools.groupby(work.footprint.cells_read, lambda r: r.rank):
                self.tmem.touch(self._cells_of(tuple(cells)), False, item)
        start = 0
        for i in range(1, len(works) + 1):
            if i == len(works) or not _alike(items[start], items[i]):
                items[i - 1].works = works[start:i]
                self._reads(works[start:i], items[i - 1])
                start = i
        written = works[0].footprint.cells_written
        columns = min(r.column for r in written), max(r.column + r.columns for r in written)
        for item in (items[0], items[-1]):
            item.columns, item.descriptors = columns, works[0].footprint.descriptors
            self.tmem.result(written, self._cells_of(written), columns, item)

    def _reads(self, works: list, item: Issued) -> None:
        key = tuple([work.footprint for work in works])
        spans = self.operands.get(key)
        if spans is None:
            spans = self.operands[key] = self._operands(key)
        if len(spans):
            self.history.spans(SHARED, spans, False, item)

    def _operands(self, footprints: tuple[Footprint, ...]) -> np.ndarray:
        """Spans of shared memory that these instructions read."""
        window = self.history.window
        inside = [s for f in footprints for s in f.reads if s.first >= 0 and s.last < window]
        if not inside:
            return np.zeros((0, 2), np.int64)
        return spans_of(np.concatenate([s.chunks.reshape(-1) + s.rank * window // 16 for s in inside]))

    def _cells_of(self, parts: tuple[Rectangle, ...]) -> np.ndarray:
        """Cells of the shadow for the parts that lie within tensor memory."""
        known = self.cells.get(parts)
        if known is None:
            found = [
                rectangle(rank, lane, min(lanes, LANES - lane), column, min(columns, COLUMNS - column))
                for rank, lane, lanes, column, columns in parts
                if lane < LANES and column < COLUMNS
            ]
            known = self.cells[parts] = np.concatenate(found) if found else np.zeros(0, np.int64)
        return known


def _alike(first: Issued, other: Issued) -> bool:
    """Whether two MMAs of one thread come after the same events, apart from their issuer's own epoch."""
    same = first.stores == other.stores and len(first.clock) == len(other.clock)
    return first.clock is other.clock or same and int(np.count_nonzero(first.clock != other.clock)) <= 1


class Wgmma(Part):
    """Part of the RaceDetector. Each warp of a warpgroup issues its share; wgmma-groups, and so completion,
    belong to the warpgroup (PTX ISA 9.7.15.7.2): the shares of one instruction are one epoch of one queue.
    """

    def __init__(self, races):
        super().__init__(races)
        self.history = races.history
        self.spans: dict[SharedSpan, np.ndarray] = {}  # -> byte ranges in the shadow

    def start(self, cluster: Cluster) -> None:
        self.issued: dict[int, int] = {}  # warp -> wgmma instructions issued
        self.reached: dict[tuple, np.ndarray] = {}  # (queue, epoch) -> thread_clock of those who issued it
        self.known: dict[tuple, np.ndarray] = {}  # (queue, epoch) -> their clock
        self.shares: dict[tuple, dict[int, np.ndarray]] = {}  # (queue, epoch) -> bytes that each warp reads

    def wgmma_issue(self, cluster: Cluster, split: Split, columns: int, depth: int) -> Issued:
        """One warp's share: it comes after what any lane knows, because all lanes have reached it
        (.sync.aligned).
        """
        clocks, agents = self.clocks, self.clocks.agents(split)
        op = Issued("wgmma", split.row, int(agents[0]), most(clocks.clock, agents), _NOTHING, _NOTHING)
        clocks.begin_epochs(agents)
        op.queue = clocks.column("wgmma", split.warp - split.warp % cluster.warps_per_cta % 4)
        op.epoch = self.issued[split.warp] = self.issued.get(split.warp, 0) + 1
        known, reached = most(clocks.thread_clock, agents), self.reached.get((op.queue, op.epoch))
        self.reached[op.queue, op.epoch] = known if reached is None else joined(reached, known)
        this, old = (op.queue, op.epoch), (op.queue, op.epoch - _IN_FLIGHT)
        self.known[this] = joined(self.known[this], op.clock) if this in self.known else op.clock
        self.reached.pop(old, None)
        self.known.pop(old, None)
        if reached is None:  # the first warp of the group
            self.races.transfers.remember(op)
        return op

    def all_knew(self, queue: int, epoch: int, agent: int, then: int) -> bool:
        """Whether some warp knew of an access when it issued its share: a chip then has all four wait."""
        known = self.known.get((queue, epoch))
        return known is not None and agent < len(known) and bool(known[agent] >= then)

    def all_passed(self, by: int, agent: int, then: int, clock) -> bool:
        """Whether a thread has waited for a wgmma that a warp of its group issued after an access. `clock`:
        what it knows.
        """
        queue = self.queue_of(by)
        return queue is not None and self.all_knew(queue, int(clock[queue]), agent, then)

    def queue_of(self, by: int) -> int | None:
        """The queue of the wgmma of a thread's warpgroup; None: it has issued none."""
        warp, per_cta = self.clocks.warp_of(by), self.races.cluster.warps_per_cta
        return self.clocks.columns.get(("wgmma", warp - warp % per_cta % 4))

    def wgmma_read(self, cluster: Cluster, token: Issued, span: SharedSpan) -> None:
        known = self.spans.get(span)
        if known is None:
            known = self.spans[span] = byte_ranges(span, self.history.window)
        self.shares.setdefault((token.queue, token.epoch), {})[token.thread] = known
        self.shares.pop((token.queue, token.epoch - _SHARES), None)
        self.history.spans(SHARED, known, False, token)

    def readers(self, queue: int, epoch: int, written: np.ndarray | None) -> set[int]:
        """The first agent of each warp whose share reads some of these bytes; -1: nobody knows."""
        if written is None:
            return {-1}
        shares = self.shares.get((queue, epoch), {})
        return {agent for agent, own in shares.items() if _overlap(own, written)} or {-1}

    def wgmma_wait(self, cluster: Cluster, split: Split, token: Issued) -> None:
        """All warps of the group have reached the instruction, but that hands over no memory access."""
        agents = self.clocks.agents(split)
        self.clocks.learn(agents, token.queue, token.epoch)
        reached = self.reached.get((token.queue, token.epoch))
        if reached is not None:
            self.clocks.acquire(agents, Stamp(_NOTHING, reached))


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two lists of spans have a byte in common."""
    return bool(((one[:, :1] < other[:, 1]) & (one[:, 1:] > other[:, 0])).any())
