"""Runs one cluster of a launch and records its execution.

The simulator has no clock, so a execution holds what was done and in which order, not when. Only control flow
matters, not the values in arrays, which may be zeros. The cluster runs alone; therefore kernels whose
clusters wait for each other are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim.events.records import Arrival, BulkCopy
from ptxsim.events.views import Cluster, Split
from ptxsim.grid.single import single_cluster
from ptxsim.jit import bytecode
from ptxsim.jit.translate import is_shared
from ptxsim.machine import cluster as machine
from ptxsim.machine.blas import one_thread
from ptxsim.machine.launch_view import Launch
from ptxsim.machine.local_log import without_local
from ptxsim.timing.accesses import copied, global_sectors, parted_rows, scattered, shared_passes
from ptxsim.timing.execution import Execution, MemoryAccess, Multiplied, Run, Transfer, Unit
from ptxsim.timing.listening import listens
from ptxsim.timing.machine_code import Code
from ptxsim.timing.neighbours import variable_parts
from ptxsim.timing.sass_count import Counted
from ptxsim.timing.sass_guess import guess
from ptxsim.trace.recorder import Recorder, bytes_of

_PLAIN = (bytecode.JOIN, bytecode.BRA, bytecode.BRX, bytecode.EXIT)


PAIR = 64  # bytes that HBM sends at a time: a pair of sectors
SINCE = 4096  # bytes; the distance between reads of a line is rounded to multiples of this
DRY = True  # tensor cores and TMA move no data; the execution is the same either way


def _targets(reads, writes):
    """Where each lane of `reads` of a cp.async writes in shared memory; lanes with ignore-src do not read."""
    found = dict(
        zip(writes[:, bytecode.LOG_THREAD].tolist(), writes[:, bytecode.LOG_PLACE].tolist(), strict=True)
    )
    return np.array([found[thread] for thread in reads[:, bytecode.LOG_THREAD].tolist()])


class Unpredictable(ValueError):
    """The kernel cannot be recorded; the message says why."""


def record(launch: Launch, index: int = 0, code: Code | None = None) -> Execution:
    """The execution of cluster number `index`. Raises Unpredictable if the cluster does not run to its end.

    code: the machine code that ptxas made of the program; if None, its instructions are guessed.
    """
    recorder = TapeRecorder(launch, index)
    cluster = single_cluster(launch, recorder)
    cluster.loop, cluster.dry = _stepping(cluster, recorder), DRY
    with one_thread():
        cluster.start(index)
        done = cluster.run(alone=not listens(launch.program))
    if not done or not recorder.finished:
        raise Unpredictable(
            "the cluster does not run to its end by itself: a checked run reports what it waits for"
        )
    recorder.count_again()
    execution = recorder.execution
    execution.lanes = recorder.lanes()
    execution.patched = 32 * sum(size < 32 for size in recorder.patches.values())
    execution.assembled = code is not None
    if code:
        made = Counted(launch.program, code)
        execution.sass_counts, execution.places, execution.stalls = made.counts, made.places, made.stalls
    else:
        execution.sass_counts = guess(launch.program)
    execution.parts = variable_parts(launch.program)
    return execution


def _count(counts: dict[int, int], key: int, size: int) -> None:
    counts[key] = counts.get(key, 0) + size


def _stepping(cluster: machine.Cluster, recorder: TapeRecorder):
    """The main loop, run one instruction at a time so that the recorder sees each instruction."""
    control, places = cluster.control, cluster.split_table
    run, kinds = cluster.launch.loop, cluster.program.code[:, bytecode.OP].tolist()

    def loop(words) -> int:
        budget, g = int(control[bytecode.BUDGET]), int(control[bytecode.SPLIT])
        warp, reason = g // 32, bytecode.REASON_BUDGET
        control[bytecode.BUDGET] = 1
        while budget > 0 and reason == bytecode.REASON_BUDGET and control[bytecode.NEW_COUNT] < 24:
            budget -= 1
            row = int(places[g, bytecode.SP_PC])
            reason = run(words)
            kind = kinds[row]
            if kind in (bytecode.LD, bytecode.ST):
                log = cluster.access_log[: int(control[bytecode.LOG_USED])]
                recorder.access(cluster, warp, row, without_local(cluster, log))
                control[bytecode.LOG_USED] = 0
            elif kind == bytecode.UNIT:
                recorder.unit(warp, row)
            elif kind != bytecode.JOIN and reason != bytecode.REASON_COLD:
                recorder.plain(warp, row)
        control[bytecode.BUDGET] = budget
        return reason

    return loop


class TapeRecorder(Recorder):
    """Records every event separately, and what warps did between events."""

    def __init__(self, launch: Launch, index: int):
        super().__init__(launch, index)
        self.memory = launch.memory
        warps = self.ctas * self.warps_per_cta
        self.execution = Execution(
            launch.program.instrs, self.ctas, self.warps_per_cta, [[] for _ in range(warps)], self.events
        )
        # per CTA: line of global memory -> (its last reader, bytes that this warp had read by then)
        self.seen: list[dict] = [{} for _ in range(self.ctas)]
        self.read = [0] * warps  # bytes of global memory that a warp has read
        self.patches: dict[int, int] = {}  # sector that an instruction wrote in part -> bytes
        self.copier = -1  # thread that issued the last copy
        self.lanes_before: Any = None  # log of the last access by a handler; for an atomic: its lanes so far

    def merges(self, last, kind: str, name: str, phase) -> bool:
        return kind == "wait" and super().merges(last, kind, name, phase)

    # ---- instructions of the main loop ----

    def plain(self, warp: int, row: int) -> None:
        steps = self.execution.warps[warp]
        if steps and type(steps[-1]) is Run and steps[-1].last == row - 1:
            steps[-1].last = row
        else:
            steps.append(Run(row, row))

    def unit(self, warp: int, row: int) -> None:
        """Records a unit instruction once; an instruction that waits is reported again with each retry."""
        steps = self.execution.warps[warp]
        last = steps[-1] if steps else None
        if not (type(last) is Unit and last.row == row and last.event < 0):
            steps.append(Unit(row))

    def access(self, cluster: Cluster, warp: int, row: int, log) -> None:
        if not len(log):  # parameters and constants
            self.plain(warp, row)
            return
        self.execution.warps[warp].append(self._access(row, log, warp))

    def _access(self, row: int, log, warp: int) -> MemoryAccess:
        place = log[:, bytecode.LOG_PLACE]
        size = bytes_of(log)
        write, total = bool(log[0, bytecode.LOG_SIZE] & 1), int(size.sum())
        if is_shared(place[:1])[0]:
            plain = write and self.execution.instrs[row].op not in ("atom", "red")
            passes, lanes = shared_passes(place, size), b"" if plain else (place - place[0]).tobytes()
            return MemoryAccess(
                row, True, write, total, passes, at=int(place[0]), lanes=lanes, width=int(size[0])
            )
        sectors, lines = global_sectors(place, size)
        segment = self._array_at(int(place[0]))
        if write:
            self._written(segment, sectors, place, total)
            return MemoryAccess(row, False, True, total, len(sectors), segment, lines=len(lines))
        known, since = self._known(lines, len(sectors), warp)
        new = len(sectors) - known
        fetched = PAIR * len({sector // 2 for sector in sectors}) * new // len(sectors)
        _count(self.execution.reads, segment, 32 * new)
        _count(self.execution.fetched, segment, fetched)
        if scattered(place):
            _count(self.execution.scattered, segment, 32 * new)
        banks = shared_passes(place, size)
        return MemoryAccess(row, False, False, total, len(sectors), segment, known, since, banks, fetched)

    def _array_at(self, place: int) -> int:
        """The number of the array that an access touched."""
        found = self.memory.find(place)
        assert found is not None
        return found

    def _written(self, segment: int, sectors: list[int], place, total: int) -> None:
        """Counts the bytes written to an array, and in `patches` those of partly written sectors."""
        _count(self.execution.writes, segment, 32 * len(sectors))
        if total < 32 * len(sectors):
            share = total // len(place)
            for sector in (place // 32).tolist():
                _count(self.patches, sector, share)

    def _known(self, lines: list[int], sectors: int, warp: int) -> tuple[int, int]:
        """(sectors in lines that the CTA has read before, bytes that this warp has read since).

        On a chip the warps of a CTA progress together, but here one after another. Therefore what another
        warp has read counts as read just now.
        """
        seen, now = self.seen[warp // self.warps_per_cta], self.read[warp]
        before = [seen[line] for line in lines if line in seen]
        since = max((now - then for reader, then in before if reader == warp), default=0)
        self.read[warp] = now + 32 * sectors
        seen.update(dict.fromkeys(lines, (warp, self.read[warp])))
        return len(before) * sectors // len(lines), since

    def count_again(self) -> None:
        """After the recording, scales the bytes that a warp has read "since" to about those of its whole CTA.

        Warps read at the same time, each its share of what the CTA reads. A warp that loads much beside warps
        that load little (one that fills a ring beside an epilogue) keeps its lines in the cache for longer.
        """
        size = self.warps_per_cta
        for warp, steps in enumerate(self.execution.warps):
            first = warp // size * size
            together = sum(self.read[first : first + size])
            for step in steps:
                if type(step) is MemoryAccess and step.cached:
                    step.since = step.since * together // self.read[warp] // SINCE * SINCE
                    again = self.execution.again.setdefault(step.segment, {})
                    _count(again, step.since, 32 * step.cached)

    # ---- events of units ----

    def accesses(self, cluster: Cluster, log) -> None:
        """Accesses of ldmatrix, stmatrix and atomics, reported by their handlers; an atomic's lane by lane.

        The lanes of an atomic on global memory are combined here, those on shared memory in atomics.py.
        """
        if len(log) and cluster.index == self.index:
            warp, row = int(log[0, bytecode.LOG_THREAD]) // 32, int(log[0, bytecode.LOG_ROW])
            steps = self.execution.warps[warp]
            if type(steps[-1]) is Unit and steps[-1].row == row:
                steps.pop()
            elif (before := self._same_instruction(steps[-1], row, log)) is not None:
                log = np.concatenate([self.lanes_before, log])
                self.execution.writes[before.segment] -= 32 * before.passes
                steps.pop()
            self.lanes_before = log
            steps.append(self._access(row, log, warp))

    def _same_instruction(self, last, row: int, log) -> MemoryAccess | None:
        """The warp's last atomic on global memory if this lane continues it, else None."""
        if type(last) is not MemoryAccess or last.shared or not last.write or last.row != row or len(log) > 1:
            return None
        follows = int(self.lanes_before[-1, bytecode.LOG_THREAD]) < int(log[0, bytecode.LOG_THREAD])
        return last if follows else None

    def by_warp(self, split: Split, kind, name, after=(), amount=0, read=(), phase=None) -> int:
        before = self.last.get(split.warp)
        number = super().by_warp(split, kind, name, after, amount, read, phase)
        if number != before:
            steps = self.execution.warps[split.warp]
            last = steps[-1] if steps else None
            if type(last) is Unit and last.event < 0:
                last.event = number
            else:
                steps.append(Unit(-1, number))
        return number

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy) -> int:
        number = super().copy_issue(cluster, split, copy)
        if number is not None:
            if self.execution.warps[split.warp][-1].row < 0 and split.thread == self.copier:
                self.execution.further.add(self.last[split.warp])
            self.copier = split.thread
            self._copied(number, copy)
        return number

    def _copied(self, number: int, copy: BulkCopy) -> None:
        tensor, write, segment = copy.tensor, copy.kind == "store", copy.tensor.segment
        item, size = tensor.dtype.itemsize, tensor.box_bytes
        address = tensor.offset_of(copy.start)
        lines = size // tensor.box[0] // item
        narrow, parted = lines if 128 * lines > size else 0, 0
        if lines and not write and tensor.strides:
            parted = parted_rows(address, (tensor.box[0] * item, *tensor.box[1:]), tensor.strides)
        self.execution.copies[number] = Transfer(
            write, size, segment, tuple(copy.ranks), address, True, narrow, parted=parted
        )
        traffic = self.execution.writes if write else self.execution.reads
        _count(traffic, segment, size)
        if not write:
            _count(self.execution.fetched, segment, size)

    def cp_async_issue(self, cluster: Cluster, split: Split, reads, writes) -> int:
        number = super().cp_async_issue(cluster, split, reads, writes)
        if number is not None and len(reads):
            place = reads[:, bytecode.LOG_PLACE]
            _, lines = global_sectors(place, bytes_of(reads))
            segment, first = self._array_at(int(place[0])), int(place[0])
            pieces, parted, passes = copied(place, _targets(reads, writes))
            self.execution.copies[number] = Transfer(
                False, 32 * pieces, segment, (split.cta,), first, False, len(lines), passes, 32 * parted
            )
            _count(self.execution.reads, segment, 32 * pieces)
            _count(self.execution.fetched, segment, 32 * pieces - 16 * parted)
        return number

    def tensor_issue(self, cluster: Cluster, split: Split, work) -> None:
        first, group, (m, n) = len(self.events), work.group, work.footprint.tile or (0, 0)
        super().tensor_issue(cluster, split, work)
        for number in range(first, len(self.events)):
            if self.events[number].kind == "mma":
                stored = len(work.footprint.descriptors) < 2
                self.execution.products[number] = Multiplied(m // group, n, n // group, group > 1, stored)

    def tmem_alloc(self, cluster: Cluster, split: Split, start, columns, place, group) -> None:
        if cluster.index == self.index and split.cta == 0:
            self.execution.columns += columns

    def mbarrier_arrive(self, cluster: Cluster, split: Split, arrival: Arrival) -> None:
        super().mbarrier_arrive(cluster, split, arrival)
        if arrival.place[0] != split.cta and cluster.index == self.index:
            self.execution.remote.add(self.last[split.warp])

    def cluster_arrive(self, cluster: Cluster, split: Split, relaxed) -> None:
        super().cluster_arrive(cluster, split, relaxed)
        if relaxed and cluster.index == self.index:
            self.execution.relaxed.add(self.last[split.warp])
