"""Whether what a matrix product reads as A and B fits what TMA loaded there (PTX ISA 9.7.15.5, 9.7.16.4,
9.7.16.10): the type of its elements, the axis along which K runs, and each element once.

No bit is proof that a program means something else: all that is found here is a review. The first products
of a launch are looked at, as a loop repeats them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.observer import Observer
from ptxsim.events.records import BulkCopy, Operand, TensorWork, TmemCells
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

_MOST = 256  # products that are looked at
_FLOATS = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32"}  # what a tensor map says -> of a product
_NONE = -1  # the number of no box


@dataclass
class _Box:
    """A place to which TMA loads, and its last load."""

    copy: BulkCopy
    chunks: np.ndarray
    loads: int = 1


@dataclass
class _Sum:
    """What has been added up in one D since it was overwritten."""

    where: Split
    negated: set[tuple[bool, bool]] = field(default_factory=set)  # (A is, B is)
    begun_empty: bool = True
    starts: dict[tuple, set[tuple[int, ...]]] = field(
        default_factory=dict
    )  # of loads, by operand, CTA and map
    reads: dict[tuple[int, int], tuple[int, np.ndarray, str]] = field(default_factory=dict)


class Operands(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter, self.left = reporter, _MOST
        shape = launch.ctas_per_cluster, launch.shared_window // 16 + 1
        self.owner = np.full(shape, _NONE)  # the box that has last been loaded there
        self.touched = np.zeros(shape, bool)  # by any product
        self.looked: set[tuple[Operand, object]] = set()

    def start(self, cluster: Cluster) -> None:
        self.owner[:], self.touched[:] = _NONE, False
        self.boxes: list[_Box] = []
        self.numbers: dict[tuple[int, int, int], int] = {}
        self.sums: dict[tuple, _Sum] = {}

    def copy_write(self, cluster: Cluster, token, copy: BulkCopy) -> None:
        tiled = copy.tensor.swizzle or len(copy.tensor.dims) > 1
        if not self.left or copy.kind != "load" or not tiled:
            return
        for span in copy.targets:
            chunks = span.chunks.reshape(-1)
            number = self.numbers.setdefault((span.rank, span.first, len(chunks)), len(self.boxes))
            if number == len(self.boxes):
                self.boxes.append(_Box(copy, chunks, 0))
            box = self.boxes[number]
            box.copy, box.loads = copy, box.loads + 1
            if self.owner[span.rank, chunks[0]] != number:
                self.owner[span.rank, chunks] = number

    def tensor_execute(self, cluster: Cluster, works: list[TensorWork]) -> None:
        for work in works if self.left else ():
            made = work.footprint
            if made.tile:
                into = work.where.thread, made.cells_written
                self.wgmma_product(cluster, work.where, made.factors, into, not work.accumulates)

    def wgmma_product(
        self, cluster: Cluster, split: Split, operands: tuple[Operand, ...], into: tuple, fresh: bool
    ) -> None:
        if not self.left:
            return
        self.left -= 1
        found = self.sums.get(into)
        if fresh or found is None:
            self._close(found)
            found = self.sums[into] = _Sum(split, begun_empty=fresh)
        negated = [any(o.negated for o in operands if o.side == side) for side in "ab"]
        found.negated.add((negated[0], negated[1]))
        for operand in operands:
            self._read(split, operand, found)
        if not self.left:
            self.sums.clear()  # they are cut short

    def tmem_access(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        """What threads store may be a D that is cleared."""
        for into in [into for into in self.sums if write and into[1]]:
            self._close(self.sums.pop(into))

    def finish(self, cluster: Cluster) -> None:
        for one in self.sums.values():
            self._close(one)

    def _read(self, split: Split, operand: Operand, into: _Sum) -> None:
        chunks = operand.chunks.reshape(-1)
        if chunks.max() >= self.owner.shape[1]:
            return  # the unit reports it
        number = int(self.owner[operand.rank, chunks[0]])
        self.touched[operand.rank, chunks] = True
        if number == _NONE:
            return
        copy = self.boxes[number].copy
        if (operand, copy.tensor) not in self.looked:
            self.looked.add((operand, copy.tensor))
            self._repeats(split, operand, chunks)
            self._type(split, operand, copy)
        self._along(split, operand, copy, into)
        for box in np.unique(self.owner[operand.rank, chunks]).tolist():
            if box != _NONE:
                self._count(box, operand, chunks, into)

    def _repeats(self, split: Split, operand: Operand, chunks: np.ndarray) -> None:
        """Reports an operand of which different elements are the same bytes."""
        again = chunks.size - len(np.unique(chunks))
        if again:
            self._add(split, operand, "operand-repeats", again=again * 16, size=chunks.size * 16)

    def _type(self, split: Split, operand: Operand, copy: BulkCopy) -> None:
        held = _FLOATS.get(copy.tensor.dtype.name, operand.kind)
        if held != operand.kind and operand.kind in _FLOATS.values():
            self._add(split, operand, "operand-type", read=operand.kind, held=copy.tensor.dtype.name)

    def _along(self, split: Split, operand: Operand, copy: BulkCopy, into: _Sum) -> None:
        """Reports loads that go on along M or N while the products add them up along K."""
        tensor, box, axis = copy.tensor, copy.tensor.box, 0 if operand.mn else 1
        if len(box) != 2 or tensor.dims[0] <= box[0]:
            return
        starts = into.starts.setdefault((operand.side, operand.rank, tensor.name), set())
        if copy.start in starts:
            return
        starts.add(copy.start)
        ranges = [max(at) - min(at) for at in zip(*starts, strict=True)]
        if ranges[axis] >= operand.rows and not ranges[1 - axis]:
            self._add(split, operand, "operand-axis", axis=axis, reach=ranges[axis] + box[axis])

    def _count(self, number: int, operand: Operand, chunks: np.ndarray, into: _Sum) -> None:
        """Counts how often the sum has read each piece of a box since it was loaded."""
        key, box = (number, operand.rank), self.boxes[number]
        loads, counts, _ = into.reads.get(key, (0, np.zeros(0), ""))
        if loads != box.loads:
            if loads:
                self._unequal(into, number, operand.rank, counts)
            counts = np.zeros(self.owner.shape[1], np.int32)
        np.add.at(counts, chunks, 1)
        into.reads[key] = box.loads, counts, operand.side

    def _close(self, one: _Sum | None) -> None:
        if one is None:
            return
        for (number, rank), (_, counts, _) in one.reads.items():
            self._unequal(one, number, rank, counts)
        sides = one.negated.pop() if len(one.negated) == 1 else (False, False)
        if one.begun_empty and sides[0] != sides[1]:
            message = CAUSES["operand-negated"].tell(side="AB"[sides[1]])
            self.reporter.add("descriptor", "review", message, CAUSES["operand-negated"], one.where)

    def _unequal(self, into: _Sum, number: int, rank: int, counts: np.ndarray) -> None:
        """Reports a box of which one sum reads parts repeatedly, and nobody other parts."""
        chunks = self.boxes[number].chunks
        again, never = int((counts[chunks] > 1).sum()), int((~self.touched[rank, chunks]).sum())
        if again and never:
            cause, buffer = CAUSES["operand-part"], self.reporter.shared_buffer(int(chunks.min()) * 16)
            message = cause.tell(size=len(chunks) * 16, buffer=buffer, again=again * 16, never=never * 16)
            self.reporter.add("descriptor", "review", message, cause, into.where, key=("part", buffer))

    def _add(self, split: Split, operand: Operand, name: str, **facts) -> None:
        buffer = self.reporter.shared_buffer(int(operand.chunks.min()) * 16)
        side, cause = operand.side.upper(), CAUSES[name]
        message = cause.tell(buffer=buffer, side=side, **facts)
        self.reporter.add("descriptor", "review", message, cause, split, key=(name, side, buffer))
