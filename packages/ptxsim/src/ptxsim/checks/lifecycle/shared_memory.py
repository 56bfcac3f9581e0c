"""Shared memory that is read before anything has written it.

Every byte of every CTA's window has a flag. An unwritten byte that the tensor core or TMA reads, or that an
atomic changes, is an error. One that a thread loads is a `review`: compilers may load early what a predicate
then discards. The flag also says by which swizzle TMA has arranged the byte: the descriptor of the product
that reads it names it, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.lifecycle.written_parts import short_copies, told_of
from ptxsim.checks.race.async_work import spans_of
from ptxsim.checks.race.idle_results import IdleResults
from ptxsim.events.observer import Observer, observer_of
from ptxsim.events.records import BulkCopy, SharedSpan, TensorWork
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.isa.address_map import OFFSET_MASK, RANK_SHIFT, SHARED_BASE, SHARED_END
from ptxsim.isa.layouts.swizzle import XORS, Mode, swizzle
from ptxsim.jit import bytecode
from ptxsim.jit.compiled import compiled
from ptxsim.lowering.emit import Program
from ptxsim.report.findings import Finding, Reporter
from ptxsim.units.tma_boxes import box_index

_MODES = list(XORS)
_TILED = 2  # flags of bytes that a tiled TMA load has written: this + the number of its swizzle; of others: 1
_LIMIT = 16  # unwritten loads noted per piece of log
_WRITE_FIRST = (
    "fill everything that is read, and wait until it is: does every thread write its own part, at the place "
    "that is read?"
)
_ELSEWHERE = (
    "is it read before its writers arrive? Does every thread write its own part, at the place that is read? "
    "A variable that only one thread advances, such as a stage, has a different value in all the others"
)
_ROW, _THREAD, _PLACE, _SIZE = bytecode.LOG_ROW, bytecode.LOG_THREAD, bytecode.LOG_PLACE, bytecode.LOG_SIZE
_BASE, _END, _SHIFT, _MASK = SHARED_BASE, SHARED_END, RANK_SHIFT, OFFSET_MASK


@compiled()
def follow_log(log, written, adds, found):
    """Marks the stores of a log; notes loads of unwritten bytes as (log index, byte) in `found`, and stores
    at the rows that `adds` marks: atomics that begin with what is there.
    """
    count = 0
    for i in range(len(log)):
        place, row = log[i, _PLACE], log[i, _ROW]
        if place < _BASE or place >= _END:
            continue
        rank, offset = (place - _BASE) >> _SHIFT, place & _MASK
        size, stores = (log[i, _SIZE] & bytecode.LOG_SIZE_MASK) >> 1, log[i, _SIZE] & 1
        for b in range(0 if stores and not adds[row] else size):
            if not written[rank, offset + b]:
                if count < len(found) and (count == 0 or log[found[count - 1, 0], _ROW] != row):
                    found[count, 0], found[count, 1] = i, offset + b
                    count += 1
                break
        for b in range(size * stores):
            written[rank, offset + b] = 1
    return count


@functools.lru_cache(maxsize=16)
def _adding_rows(program: Program) -> np.ndarray:
    """Per row, and for no row: whether it is an atomic that begins with what is in memory."""
    adds = [i is not None and i.op in ("atom", "red") and "exch" not in i.mods for i in program.instrs]
    return np.array([*adds, False])


@dataclass
class Unread:
    """Tensor cores or TMA that read unwritten bytes, in one cluster."""

    finding: Finding
    shares: set[tuple[int, int]] = field(default_factory=set)  # as for IdleResults.in_vain
    results: np.ndarray | None = None  # cells of tensor memory that depend on them


class SharedMemory(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.launch, self.reporter = launch, reporter
        window = launch.shared_window
        self.written = np.zeros((launch.ctas_per_cluster, window), np.uint8)
        self.chunks = self.written.view(np.complex128)  # the same flags by 16 bytes
        flags = np.arange(_TILED + len(_MODES), dtype=np.uint8)
        self.full = np.repeat(flags, 16).view(np.complex128)
        self.found = np.zeros((_LIMIT, 2), np.int64)
        self.adds = _adding_rows(launch.program)
        self.good: set[SharedSpan] = set()  # known to be written, and looked at for their swizzle
        self.flags: dict[tuple[int, int], int] = {}  # (rank, first byte) of a copy -> what it has last set
        self.matters: list[Finding] = []  # in some cluster, what was read is of use

    def start(self, cluster: Cluster) -> None:
        self.written[:] = 0
        self.good.clear()
        self.flags.clear()
        self.unread: list[Unread] = []
        self.results = observer_of(cluster.bus, IdleResults)

    # ---- writes ----

    def accesses(self, cluster: Cluster, log: np.ndarray) -> None:
        for i, byte in self.found[: follow_log(log, self.written, self.adds, self.found)].tolist():
            self._loaded(cluster, log[i], byte)

    def copy_write(self, cluster: Cluster, token, copy: BulkCopy) -> None:
        mode = copy.tensor.swizzle
        flag = _TILED + _MODES.index(mode) if mode or len(copy.tensor.dims) > 1 else 1
        for span in copy.targets:
            place = span.rank, span.first
            if self.flags.setdefault(place, flag) != flag:
                self.flags[place] = flag
                self.good.clear()  # what is there may be arranged in another way now
            if span.inside:
                self.written[span.rank, span.first : span.last + 1] = flag
            else:
                self.chunks[span.rank][span.chunks] = self.full[flag]

    def cp_async_issue(
        self, cluster: Cluster, split: Split, reads: np.ndarray, writes: np.ndarray
    ) -> np.ndarray:
        return writes

    def cp_async_copy(self, cluster: Cluster, token) -> None:
        follow_log(token, self.written, self.adds, self.found)

    def mbarrier_init(self, cluster: Cluster, split: Split, lane: int, place) -> None:
        self.written[place[0], place[1] : place[1] + 8] = 1

    def tmem_alloc(self, cluster: Cluster, split: Split, start: int, columns: int, place, group: int) -> None:
        if place is not None:
            self.written[place[0], place[1] : place[1] + 4] = 1

    # ---- reads ----

    def copy_issue(self, cluster: Cluster, split: Split, copy: BulkCopy):
        return split.at()

    def copy_read(self, cluster: Cluster, token, copy: BulkCopy) -> None:
        span, tensor = copy.source, copy.tensor
        if span is None or span in self.good:
            return
        if copy.kind == "load" or tensor.holds(copy.start):
            self.chunks_read(token, span, "a TMA store")
            return
        inside = box_index(tensor, copy.start)[1]  # what lies outside the tensor is not stored
        inside = inside[:, :1] if tensor.padded else inside  # whole rows are
        width = tensor.dtype.itemsize
        flags = self.chunks[span.rank][span.chunks].view(np.uint8).reshape(len(inside), -1, width)
        bad = ((flags.min(2) == 0) & inside).reshape(-1)
        if bad.any():
            first = int(np.argmax(bad)) * width
            byte = int(span.chunks.reshape(-1)[first // 16]) * 16 + first % 16
            missing_of = int(bad.sum()) * width, bad.size * width
            self._unread(token, "a TMA store", missing_of, (span.rank, byte)).shares.add((token.row, -1))

    def tensor_execute(self, cluster: Cluster, works: list) -> None:
        for work in works:
            who = "the tensor core" if work.footprint.tile else work.name
            for span in work.footprint.reads:
                if span not in self.good and span.last < self.written.shape[1]:
                    self.chunks_read(work.where, span, who, work)

    def wgmma_issue(self, cluster: Cluster, split: Split, columns: int, depth: int):
        return split.at()

    def wgmma_read(self, cluster: Cluster, token, span) -> None:
        if span not in self.good:
            self.chunks_read(token, span, "the tensor core")

    def chunks_read(self, where, span: SharedSpan, who: str, work: TensorWork | None = None) -> None:
        flags = self.chunks[span.rank][span.chunks].view(np.uint8).reshape(-1)
        if flags.all():
            self.good.add(span)
            if span.swizzle is not None:
                self._arranged(where, span, span.swizzle, flags[::16])
            return
        first = int(np.argmin(flags))
        byte = int(span.chunks.reshape(-1)[first // 16]) * 16 + first % 16
        found = self._unread(where, who, (int((flags == 0).sum()), len(flags)), (span.rank, byte))
        if work is None or self.results is None:
            found.shares.add((where.row, where.warp * 32 if where.instr.op == "wgmma" else -1))
            return
        bare = span.chunks.reshape(-1)[flags.reshape(-1, 16).min(1) == 0]
        cells = self.results.fed([work], spans_of(bare, span.rank * self.written.shape[1]))
        found.results = cells if found.results is None else found.results | cells

    def chunks_written(self, rank: int) -> np.ndarray:
        """bool: whether all 16 bytes of each piece have been written."""
        whole = self.written[rank][: self.written.shape[1] // 16 * 16]
        return whole.reshape(-1, 16).all(axis=1)

    # ---- findings ----

    def _arranged(self, where, span: SharedSpan, read: Mode, flags: np.ndarray) -> None:
        """Reports an operand that TMA has arranged by another swizzle than its descriptor names (`read`)."""
        chunks = span.chunks.reshape(-1)
        for flag in set(flags.tolist()) - {1, _TILED + _MODES.index(read)}:
            mode, places = _MODES[flag - _TILED], chunks[flags == flag] * 16
            if not (moved := swizzle(places, mode) != swizzle(places, read)).any():
                continue
            buffer = self.reporter.shared_buffer(int(places[np.argmax(moved)]))
            cause = CAUSES["two-swizzles"]
            message = cause.tell(buffer=buffer, read=_told(read), written=_told(mode))
            message += "" if mode else ", unless global memory already holds the data in that order"
            level = "error" if mode else "review"
            self.reporter.add("descriptor", level, message, cause, where, key=("swizzle", buffer))

    def _unread(self, where, who: str, missing_of: tuple[int, int], place: tuple[int, int]) -> Unread:
        """missing_of: (bytes not written, bytes of the operand); place: (rank, offset) of the first one
        missing.
        """
        (missing, size), (rank, byte) = missing_of, place
        name = self.reporter.shared_name(byte)
        buffer = self.reporter.shared_buffer(byte)
        of_cta = f" of CTA {rank}" if self.launch.ctas_per_cluster > 1 else ""
        start, length = self.reporter.shared_extent(byte)
        flags = self.written[rank, start : start + length]
        elsewhere = told_of(flags, buffer + of_cta, "bytes") if length > size else ""
        found = self.reporter.add(
            "uninitialized", "error",
            f"{who} reads {name}{of_cta}, which nobody has written: {missing} of {size} B of this operand"
            + elsewhere + short_copies(self.launch.program, flags, byte - start),
            _ELSEWHERE if elsewhere and flags.any() else _WRITE_FIRST, where, key=("shared", buffer),
            buffer=buffer, reader=who,
        )  # fmt: skip
        known = next((one for one in self.unread if one.finding is found), None)
        if known is None:
            known = Unread(found)
            self.unread.append(known)
        return known

    def finish(self, cluster: Cluster) -> None:
        """Finds reads that change nothing. For others, names a barrier that nobody waits for as the cause:
        the data may arrive there.
        """
        names = Case(cluster, self.reporter).never_waited() if self.unread else []
        for one in self.unread:
            found = one.finding
            if self._in_vain(one):
                found.severity = "review"
                cause = CAUSES["beside-tile"]
                self.reporter.blame(found, cause, f"{found.message}; {cause.text}")
            elif names and "cause" not in found.evidence:
                told = f"{found.message}, and nobody waits for {' or '.join(names)}"
                self.reporter.blame(found, CAUSES["read-unawaited"], told)

    def _in_vain(self, one: Unread) -> bool:
        if any(one.finding is known for known in self.matters):
            return False
        if self.results is not None and self.results.in_vain(one.shares, one.results):
            return one.finding.severity == "error"
        self.matters.append(one.finding)
        return False

    def _loaded(self, cluster: Cluster, entry: np.ndarray, byte: int) -> None:
        thread, row = int(entry[_THREAD]), int(entry[_ROW])
        where = cluster.splits[thread // 32 * 32].at(1 << thread % 32, row)
        name = self.reporter.shared_name(byte)
        start, length = self.reporter.shared_extent(byte)
        flags = self.written[(int(entry[_PLACE]) - _BASE) >> _SHIFT, start : start + length]
        copies = short_copies(cluster.program, flags, byte - start)
        adds = bool(self.adds[row])
        self.reporter.add(
            "uninitialized", "error" if adds else "review",
            f"{'an atomic changes' if adds else 'a thread loads'} {name}, which nobody has written{copies}",
            _WRITE_FIRST, where, key="atomic" if adds else "load", buffer=name.split(" + ")[0],
        )  # fmt: skip


def _told(mode: Mode) -> str:
    """`the 128 B swizzle`, `no swizzle`."""
    span, _, atom = str(mode).partition("_")
    return f"the {span} B swizzle{f' ({atom})' if atom else ''}" if mode else "no swizzle"
