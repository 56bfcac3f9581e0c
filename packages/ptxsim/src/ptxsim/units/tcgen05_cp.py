"""tcgen05.cp (PTX ISA 9.7.16.9.2): shared memory -> tensor memory, in order with the MMAs of its thread.

A matrix descriptor locates the rows, as for a K-major operand; a row is 128 or 256 bits: four or eight
columns. Source formats of 4 and 6 bits have every 16 elements padded to 16 bytes. Each element becomes an
8-bit container: 6-bit elements in the low bits, 4-bit ones in bits 2-5, where tcgen05.mma expects them
(9.7.16.10.4.3).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ptxsim.events.records import Footprint, SharedSpan, TensorWork, rectangles
from ptxsim.isa.address_map import SHARED_START
from ptxsim.isa.layouts.descriptors import decode_matrix_descriptor, operand_addresses
from ptxsim.isa.number_formats import unpack_bits
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES, split_address
from ptxsim.units.registry import unit
from ptxsim.units.tcgen05_alloc import group_of
from ptxsim.units.tcgen05_product import pair
from ptxsim.units.tensor_queue import issue

# (shape, multicast) -> (bits of a row, lane of each row, lane offset of each copy)
_WARP = np.arange(32)
SHAPES = {
    ("128x256b", ""): (256, np.arange(128), (0,)),
    ("128x128b", ""): (128, np.arange(128), (0,)),
    ("4x256b", ""): (256, 32 * np.arange(4), (0,)),
    ("64x128b", "warpx2::02_13"): (128, np.arange(64), (0, 64)),
    ("64x128b", "warpx2::01_23"): (128, np.concatenate([_WARP, _WARP + 64]), (0, 32)),
    ("32x128b", "warpx4"): (128, _WARP, (0, 32, 64, 96)),
}
_BITS = {"b4x16_p64": (4, 2), "b6x16_p32": (6, 0)}  # source format -> bits of an element, shift in its byte


class TmemCopy(NamedTuple):
    """The decoded operands of a tcgen05.cp."""

    form: tuple[str, str]
    packed: str  # source format, "" for none
    descriptor: int
    lane: int
    column: int
    footprint: Footprint

    @property
    def columns(self) -> int:
        return SHAPES[self.form][0] // 32


_FORMATS: dict[str, Any] = {"to": "b8x16", "from": " ".join(_BITS)}


@unit(
    *[f"tcgen05.cp .group.{shape}{'.' * bool(cast)}{cast}{{.to.from}} [a], d" for shape, cast in SHAPES],
    **_FORMATS,
    section="9.7.16.9.2",
    fire_and_forget=True,
    tensor_core=True,
)
def copy(instr):
    form = next(key for key in SHAPES if set(filter(None, key)) <= set(instr.mods))
    packed = next((m for m in instr.mods if m in _BITS), "")
    group = group_of(instr)

    def run(cluster: Cluster, split: Split, args):
        address, descriptor = cluster.address(split, args[0]), cluster.scalar(split, args[1])
        lane, column = split_address(address & 0xFFFF_FFFF)
        footprint = _footprint(form, descriptor, lane, column, pair(group, split.cta, cluster.ctas))
        task = TmemCopy(form, packed, descriptor, lane, column, footprint)
        issue(cluster, split, "tcgen05.cp", group, task, "the tile is copied as many times", _execute)

    return run


@functools.lru_cache(maxsize=256)
def source_chunks(descriptor: int, form: tuple[str, str]) -> np.ndarray:
    """Numbers of the 16-byte chunks of shared memory that a copy reads, shape (rows, chunks per row)."""
    bits, lanes, _ = SHAPES[form]
    addresses = operand_addresses(decode_matrix_descriptor(descriptor), len(lanes), bits // 8, 1, False)
    return np.ascontiguousarray(addresses[:, ::16]) >> 4


def target_lanes(form: tuple[str, str], lane: int) -> np.ndarray:
    """Lanes of tensor memory that a copy to `lane` writes, (copies, rows); may exceed the last lane."""
    _, lanes, copies = SHAPES[form]
    return lane + lanes[None, :] + np.array(copies)[:, None]


@functools.lru_cache(maxsize=256)
def _footprint(form: tuple[str, str], descriptor: int, lane: int, column: int, ranks: tuple) -> Footprint:
    cells = [
        r
        for rank in ranks
        for lanes in target_lanes(form, lane)
        for r in rectangles(rank, lanes, column, SHAPES[form][0] // 32)
    ]
    try:
        reads = tuple(SharedSpan.of(rank, source_chunks(descriptor, form)) for rank in ranks)
    except ValueError:
        reads = ()  # reported when the copy executes
    return Footprint(ranks, reads, cells_written=tuple(cells))


def _execute(cluster: Cluster, work: TensorWork) -> None:
    op = work.task
    lanes = target_lanes(op.form, op.lane)
    try:
        chunks = source_chunks(op.descriptor, op.form)
        problem = _problem(cluster, op, lanes, chunks)
    except ValueError as error:
        problem = ("descriptor", str(error), "")
    if problem is not None:
        kind, message, hint = problem
        cluster.reporter.add(kind, "error", f"tcgen05.cp: {message}", hint, work.where)
        return
    cluster.bus.tensor_execute(cluster, [work])
    if cluster.dry:
        return
    for rank in op.footprint.ranks:
        data = cluster.shared_chunks[rank][chunks].view(np.uint8).reshape(len(chunks), -1)
        if op.packed:
            data = _containers(data, *_BITS[op.packed])
        words = np.ascontiguousarray(data).view(np.uint32)
        for copy_lanes in lanes:
            cluster.tmem[rank].cells[copy_lanes, op.column : op.column + op.columns] = words


def _containers(rows: np.ndarray, bits: int, shift: int) -> np.ndarray:
    """Expands rows of padded 16-byte groups to one byte per element."""
    groups = rows.reshape(len(rows), -1, 16)
    return (unpack_bits(groups[..., : 2 * bits], bits) << shift).reshape(len(rows), -1)


def _problem(
    cluster: Cluster, op: TmemCopy, lanes: np.ndarray, chunks: np.ndarray
) -> tuple[str, str, str] | None:
    """(kind, message, hint) of the finding if the copy is not possible, else None."""
    first, last = int(chunks.min()) * 16, int(chunks.max()) * 16 + 15
    if first < SHARED_START or last >= cluster.launch.shared_end:
        window = f"{SHARED_START}..{cluster.launch.shared_end - 1}"
        return "descriptor", f"the descriptor reaches bytes {first}..{last} of a window of {window}", ""
    end = op.column + op.columns
    if lanes.max() >= LANES or end > COLUMNS:
        return "illegal", f"lane {op.lane}, column {op.column}: the tile passes the end of tensor memory", ""
    for rank in op.footprint.ranks:
        if not cluster.tmem[rank].allocated(op.column, op.columns):
            have, hint = cluster.tmem[rank].shortage(op.column, op.columns)
            tail = f"but {have}" if have else "which are not (all) allocated"
            message = f"writes TMEM columns {op.column}..{end - 1} of CTA {rank}, {tail}"
            return "tmem-alloc", message, hint or "allocate before the copy, free after the last read"
    return None
