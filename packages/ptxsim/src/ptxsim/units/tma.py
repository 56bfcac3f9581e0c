"""TMA: bulk and tensor copies, their groups and reductions (PTX ISA 9.7.9.25 - 9.7.9.27)."""

from __future__ import annotations

import functools

import numpy as np

from ptxsim.isa.number_formats import canonical_nans
from ptxsim.jit.simd_matrix import store_chunks
from ptxsim.jit.translate import shared_place
from ptxsim.machine.async_queue import Work
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.bulk_groups import each_lane, notify, open_group
from ptxsim.units.mbarrier import bytes_arrive, place_of
from ptxsim.units.registry import unit
from ptxsim.units.tensormap import find_map
from ptxsim.units.tma_im2col import mode_of, pieces

_ELEMENT_BITS = {0: 0, 32: 1, 64: 3, 128: 7}  # address bits 7.. that a swizzle folds onto bits 4..


@functools.lru_cache(maxsize=1024)
def _box_chunks(offset: int, rows: int, inner: int, swizzle: int) -> tuple[np.ndarray, int]:
    address = offset + np.arange(rows)[:, None] * inner + np.arange(0, inner, 16)[None, :]
    chunks = (address ^ (((address >> 7) & _ELEMENT_BITS[swizzle]) << 4)) >> 4
    return chunks, int(chunks.max()) * 16 + 16


def shared_chunks(offset: int, tmap: TensorMap) -> tuple[np.ndarray, int]:
    """Where the box of a tensor map lies in shared memory: numbers of its 16-byte chunks (rows, chunks of a
    row), and where the last one ends.
    """
    inner = -(-tmap.box[0] // tmap.element_strides[0]) * tmap.dtype.itemsize
    return _box_chunks(offset, tmap.box_bytes // inner, inner, tmap.swizzle)


def box_index(tmap: TensorMap, start: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(byte offsets, inside?) of every row of a box, and of elements along the innermost dimension.

    Returns offsets (rows, inner elements) into the tensor's memory and a mask of the same shape.
    """
    size = tmap.dtype.itemsize
    offsets, inside = np.zeros(1, np.int64), np.ones(1, bool)
    for axis in reversed(range(tmap.rank)):
        position = start[axis] + np.arange(0, tmap.box[axis], tmap.element_strides[axis])
        step = size if axis == 0 else tmap.strides[axis - 1]
        good = (position >= 0) & (position < tmap.dims[axis])
        offsets = (offsets[:, None] + position * step).reshape(-1)
        inside = (inside[:, None] & good).reshape(-1)
    inner = -(-tmap.box[0] // tmap.element_strides[0])
    return offsets.reshape(-1, inner), inside.reshape(-1, inner)


def read_box(cluster, tmap: TensorMap, start: tuple[int, ...]) -> np.ndarray:
    """complex128 (rows, chunks of a row), 16 bytes each, of a box in global memory; outside elements are the
    map's fill value.
    """
    memory, size = cluster.launch.memory.arrays[tmap.segment], tmap.dtype.itemsize
    if tmap.element_strides == (1, 1) and tmap.holds(start):
        shape, step = (tmap.box[1], tmap.box[0] * size // 16), tmap.strides[0]
        first = tmap.byte_offset + start[1] * step + start[0] * size
        return np.ndarray(shape, np.complex128, memory, first, (step, 16))
    memory = memory[tmap.byte_offset :]
    offsets, inside = box_index(tmap, start)
    elements = np.zeros(offsets.shape, f"u{size}")
    if tmap.fill == "nan":
        elements[:] = _nan_bits(tmap.dtype)
    flat = memory[: len(memory) // size * size].view(f"u{size}")
    elements[inside] = flat[offsets[inside] // size]
    return elements.view(np.complex128)


def _nan_bits(dtype) -> int:
    """The special NaN that CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN writes for floating types.

    An H200 fills with 0x7FF7, whatever the type (seen with float16 and float32).
    """
    return {2: 0x7FF7, 4: 0x7FF7_7FF7, 8: 0x7FF7_7FF7_7FF7_7FF7}.get(np.dtype(dtype).itemsize, 0x7F)


def write_box(cluster, tmap: TensorMap, start: tuple[int, ...], data: np.ndarray, reduce=None) -> None:
    """Writes uint8 (rows, bytes of a row) to a box of global memory; outside elements are dropped."""
    memory = cluster.launch.memory.arrays[tmap.segment][tmap.byte_offset :]
    size = tmap.dtype.itemsize
    offsets, inside = box_index(tmap, start)
    flat = memory[: len(memory) // size * size].view(tmap.dtype if reduce else f"u{size}")
    values = np.ascontiguousarray(data).view(flat.dtype).reshape(offsets.shape)
    index = offsets[inside] // size
    flat[index] = canonical_nans(reduce(flat[index], values[inside])) if reduce else values[inside]


# ---- operands ----


def _tensor(
    cluster, split, arg, rows: bool = False, im2col: bool = False
) -> tuple[TensorMap | None, tuple[int, ...]]:
    """The tensor map at an address operand `[map, {coordinates}]` and the signed coordinates.

    rows: of .tile::gather4 or scatter4: a column and four rows of a matrix whose box is one row.
    """
    address = cluster.address(split, arg)
    tmap = find_map(cluster, split, address)
    if tmap is None:
        return None, ()
    if isinstance(tmap, Im2colMap) != im2col:
        message = "a tiled tensor map in an im2col copy" if im2col else "an im2col tensor map in a tiled copy"
        cluster.reporter.add("descriptor", "error", message, "", split)
        return None, ()
    coordinates = cluster.scalars(split, arg.parts[0])
    if rows and (tmap.rank != 2 or tmap.box[1] != 1):
        message = (
            f"four rows of a tensor map of rank {tmap.rank} with box {tmap.box}; it takes rank 2 and one row"
        )
        cluster.reporter.add("descriptor", "error", message, "", split)
        return None, ()
    if len(coordinates) != (5 if rows else len(tmap.dims)):
        message = f"{len(coordinates)} coordinates for a tensor map of rank {tmap.rank}"
        cluster.reporter.add("descriptor", "error", message, "", split)
        return None, ()
    return tmap, tuple([(c + (1 << 31) & 0xFFFF_FFFF) - (1 << 31) for c in coordinates])


_ALIGNMENT = {0: 128, 32: 128, 64: 512, 128: 1024}  # by swizzle


def _check_alignment(cluster, split, offset: int, tmap: TensorMap) -> None:
    """Shared addresses of tensor copies are aligned to 128 B, swizzled ones to their pattern (5.5.7)."""
    need = _ALIGNMENT[tmap.swizzle]
    if offset % 128:
        message = f"TMA at {cluster.reporter.shared_name(offset)}: shared address is not a multiple of 128 B"
        cluster.reporter.add("misaligned", "error", message, "", split)
    elif offset % need:
        message = f"TMA with {tmap.swizzle} B swizzle at {cluster.reporter.shared_name(offset)}, which is "
        message += f"not {need}-byte aligned: the swizzle pattern is cut in the middle"
        cluster.reporter.add("misaligned", "review", message, "", split)


def _check_barrier(cluster, split, place, bar, multicast: bool, pair: bool) -> None:
    """The barrier of a load lies in the CTA that it writes to; .cta_group::2: in its pair (9.7.9.27.1)."""
    near = place[0] // 2 == bar[0] // 2 if pair else place[0] == bar[0]
    if not near and not multicast:
        message = f"a TMA load to CTA {place[0]} signals {cluster.reporter.shared_name(bar[1])} of CTA "
        message += f"{bar[0]} without cta_group 2"
        hint = "give every load that reports to the other CTA's barrier the cta_group of the pair"
        cluster.reporter.add("cluster", "error", message, hint, split, key=("load-group", place[1]))


def _warn_lanes(cluster, split, shared, what: str, severity: str = "error") -> None:
    if not split.alone:
        name = cluster.reporter.shared_name(shared_place(cluster.address(split, shared))[1])
        message = f"TMA {what} {name} issued by {len(split.lanes)} lanes: the tile is copied as many times"
        hint = "one elected thread issues a TMA copy"
        cluster.reporter.add("illegal", severity, message, hint, split, key="tma-lanes")


# ---- tensor copies ----


_LOAD = "cp.async.bulk.tensor .dim.to.global{.tile}.mbarrier::complete_tx::bytes"
_COLUMNS = "cp.async.bulk.tensor .deep.to.global.columns.mbarrier::complete_tx::bytes"
_GATHER = "cp.async.bulk.tensor .2d.to.global.tile::gather4.mbarrier::complete_tx::bytes"


@unit(
    f"{_LOAD}{{.group}}{{.hint}} [d], [map], [bar]{{, policy}}",
    f"{_LOAD}.multicast::cluster{{.group}}{{.hint}} [d], [map], [bar], mask{{, policy}}",
    f"{_GATHER}{{.group}}{{.hint}} [d], [map], [bar]{{, policy}}",
    f"{_GATHER}.multicast::cluster{{.group}}{{.hint}} [d], [map], [bar], mask{{, policy}}",
    f"{_COLUMNS}{{.group}}{{.hint}} [d], [map], [bar], offsets{{, policy}}",
    f"{_COLUMNS}.multicast::cluster{{.group}}{{.hint}} [d], [map], [bar], offsets, mask{{, policy}}",
    "cp.async.bulk.tensor .deep.global.shared::cta.im2col_no_offs.bulk_group{.hint} [map], [s]{, policy}",
    "cp.async.bulk.tensor .dim.global.shared::cta{.tile}.bulk_group{.hint} [map], [s]{, policy}",
    "cp.async.bulk.tensor .2d.global.shared::cta.tile::scatter4.bulk_group{.hint} [map], [s]{, policy}",
    to="shared::cluster shared::cta",
    deep="3d 4d 5d",
    columns="im2col im2col::w im2col::w::128",
    section="9.7.9.27.1",
    fire_and_forget=True,
)
def tensor_copy(instr):
    return _tensor_store(instr, None) if "bulk_group" in instr.mods else _tensor_load(instr)


def _tensor_load(instr):
    mods, im2col = set(instr.mods), mode_of(instr)
    multicast, pair, rows = "multicast::cluster" in mods, "cta_group::2" in mods, "tile::gather4" in mods

    def run(cluster, split, args):
        _warn_lanes(cluster, split, args[0], "load to")
        for thread in each_lane(split):
            _load_one(cluster, thread, args, multicast, pair, rows, im2col)

    return run


def boxes(
    tmap: TensorMap, start: tuple[int, ...], offset: int
) -> list[tuple[TensorMap, tuple[int, ...], np.ndarray, int]]:
    """(map, coordinates, chunks of shared memory, end) of what an instruction copies: a box, or four rows."""
    if len(start) == tmap.rank:
        return [(tmap, start, *shared_chunks(offset, tmap))]
    inner = tmap.box[0] * tmap.dtype.itemsize
    chunks, end = _box_chunks(offset, 4, inner, tmap.swizzle)
    column, *rows = start
    return [(tmap, (column, row), chunks[i : i + 1], end) for i, row in enumerate(rows)]


def columns(cluster, split, tmap: Im2colMap, start: tuple[int, ...], offset: int, mode: str, offsets) -> list:
    """The same of an im2col copy: the runs of pixels that it takes; none after a finding."""
    found = pieces(cluster, split, tmap, start, mode, offsets) or []
    rows = sum(count for _, _, count in found)
    if not rows:
        return []
    chunks, end = _box_chunks(offset, rows, tmap.box[0] * tmap.dtype.itemsize, tmap.swizzle)
    parts, first = [], 0
    for tiled, at, count in found:
        parts.append((tiled, at, chunks[first : first + count], end))
        first += count
    return parts


def _load_one(cluster, split, args, multicast: bool, pair: bool, rows: bool, im2col: str) -> None:
    tmap, start = _tensor(cluster, split, args[1], rows, bool(im2col))
    place = place_of(cluster, split, cluster.address(split, args[0]), False)
    bar = place_of(cluster, split, cluster.address(split, args[2]), False)
    if tmap is None or place is None or bar is None:
        return
    _check_alignment(cluster, split, place[1], tmap)
    _check_barrier(cluster, split, place, bar, multicast, pair)
    mask = cluster.scalar(split, args[4 if im2col else 3]) if multicast else 0
    ranks = [r for r in range(cluster.ctas) if mask >> r & 1] if multicast else [place[0]]
    if isinstance(tmap, Im2colMap):
        offsets = [value & 0xFFFF for value in cluster.scalars(split, args[3])]
        parts = columns(cluster, split, tmap, start, place[1], im2col, offsets)
    else:
        parts = boxes(tmap, start, place[1])
    if parts and parts[0][3] > cluster.launch.shared_end:
        name = cluster.reporter.shared_name(place[1])
        text = f"TMA load of {tmap.box_bytes} B to {name} passes the end of shared memory"
        cluster.reporter.add("out-of-bounds", "error", text, "", split)
        return
    targets = [_signalled(rank, bar, multicast, pair) for rank in ranks]
    for tiled, at, chunks, _ in parts:
        _load_box(cluster, split, tiled, at, chunks, ranks, targets, place[1])


def _load_box(cluster, split, tmap, start, chunks, ranks: list[int], targets: list, offset: int) -> None:
    cluster.watchdog.rounds.copies("load", tmap, start)
    token = cluster.bus.tma_issue(cluster, split, "load", tmap, start, ranks, offset)
    cluster.bus.will_signal(cluster, split, "load", targets)
    size = tmap.box_bytes

    def finish():
        data = None if cluster.dry else read_box(cluster, tmap, start)
        for rank in ranks:
            if data is not None:
                store_chunks(cluster.shared_chunks[rank], chunks, data)
            cluster.bus.tma_write(cluster, token, rank, chunks)
        cluster.tma_bytes += size
        for target in targets:
            bytes_arrive(cluster, split, target, size, token)

    cluster.engine.submit(Work(None, finish, f"TMA load of {tmap.name or 'a tensor'}"))


def _signalled(rank: int, bar: tuple[int, int], multicast: bool, pair: bool) -> tuple[int, int]:
    """The barrier that hears of the bytes which arrive in CTA `rank`."""
    if not multicast:
        return bar
    return (rank & ~1 | bar[0] & 1 if pair else rank, bar[1])


_REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_REDUCE = "cp.reduce.async.bulk.tensor"


@unit(
    f"{_REDUCE} .dim.global.shared::cta.op{{.tile}}.bulk_group{{.hint}} [map], [s]{{, policy}}",
    f"{_REDUCE} .deep.global.shared::cta.op.im2col_no_offs.bulk_group{{.hint}} [map], [s]{{, policy}}",
    deep="3d 4d 5d",
    op=" ".join(_REDUCTIONS),
    section="9.7.9.27.2",
    fire_and_forget=True,
)
def tensor_reduce(instr):
    return _tensor_store(instr, next(m for m in instr.mods if m in _REDUCTIONS))


def _tensor_store(instr, reduction: str | None):
    operation = _REDUCTIONS[reduction] if reduction else None
    rows, im2col = "tile::scatter4" in instr.mods, bool(mode_of(instr))

    def run(cluster, split, args):
        copies = _copies(cluster, split, args, operation is None, rows, im2col)
        # the same bytes to the same place, as CuTe DSL 4.8 has it: slow, but right
        severity = "review" if operation is None and len(copies) == 1 else "error"
        _warn_lanes(cluster, split, args[1], "store from", severity)
        for what, lanes in copies:
            _store_one(cluster, split, what, lanes, operation)

    return run


def _copies(cluster, split, args, merge: bool, rows: bool, im2col: bool) -> list[tuple[tuple, list[int]]]:
    """((tensor map, coordinates, shared place), lanes) of what lanes store; equal ones are merged."""
    found: list[tuple[tuple, list[int]]] = []
    for lane in [int(x) for x in split.lanes]:
        one = split.at(1 << lane)
        tmap, start = _tensor(cluster, one, args[0], rows, im2col)
        place = place_of(cluster, one, cluster.address(one, args[1]), False)
        if tmap is None or place is None:
            continue
        same = (lanes for what, lanes in found if what[0] is tmap and what[1:] == (start, place))
        lanes = next(same, None) if merge else None
        if lanes is None:
            found.append(((tmap, start, place), [lane]))
        else:
            lanes.append(lane)
    return found


def _store_one(cluster, split, what: tuple, lanes: list[int], operation) -> None:
    """One copy, in the bulk group of each of the lanes; the first of them issues it."""
    tmap, start, place = what
    first = split.at(1 << lanes[0])
    _check_alignment(cluster, first, place[1], tmap)
    if isinstance(tmap, Im2colMap):
        parts = columns(cluster, first, tmap, start, place[1], "im2col_no_offs", [])
    else:
        parts = boxes(tmap, start, place[1])
    if parts and parts[0][3] > cluster.launch.shared_end:
        cluster.reporter.add(
            "out-of-bounds", "error", "a TMA store reads past the end of shared memory", "", first
        )
        return
    for tiled, at, chunks, _ in parts:
        _store_box(cluster, split, first, tiled, at, chunks, place, lanes, operation)


def _store_box(cluster, split, first, tmap, start, chunks, place, lanes: list[int], operation) -> None:
    groups = [open_group(cluster, split.at(1 << lane)) for lane in lanes]
    cluster.watchdog.rounds.copies("store", tmap, start)
    token = cluster.bus.tma_issue(cluster, first, "store", tmap, start, [place[0]], place[1])

    def read():
        data = cluster.shared_chunks[place[0]][chunks].view(np.uint8)
        cluster.bus.tma_read(cluster, token, place[0], chunks)
        for group in groups:
            group.reads -= 1
        notify(cluster, split)
        cluster.engine.submit(Work(None, lambda: write(data), "TMA store (write)"))

    def write(data):
        if not cluster.dry:
            write_box(cluster, tmap, start, data, operation)
        cluster.bus.tma_global(cluster, token, tmap, start)
        cluster.tma_bytes += tmap.box_bytes
        for group in groups:
            group.writes -= 1
        notify(cluster, split)

    cluster.engine.submit(Work(None, read, "TMA store (read)"))
