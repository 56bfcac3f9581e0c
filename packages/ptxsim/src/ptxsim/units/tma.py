"""TMA: tensor copies and reductions (PTX ISA 9.7.9.27)."""

from __future__ import annotations

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import BulkCopy
from ptxsim.isa.layouts.swizzle import SPAN
from ptxsim.isa.number_formats import canonical_nans, pack_bits
from ptxsim.jit.translate import shared_place
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.split import Lanes, Split
from ptxsim.machine.tensor_box import ALIGNMENT, move
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.bulk_groups import each_lane, open_group, store
from ptxsim.units.mbarrier import bytes_arrive, place_of
from ptxsim.units.registry import FastForm, unit
from ptxsim.units.tensormap import find_map
from ptxsim.units.tma_boxes import Part, boxes, columns, end_of, span_of, spans_of
from ptxsim.units.tma_called import copy_box, fast_copy
from ptxsim.units.tma_im2col import mode_of
from ptxsim.units.tma_start import check_start, leaves_array

REDUCTIONS = {
    **{"add": np.add, "min": np.minimum, "max": np.maximum},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
}


def write_box(cluster: Cluster, tmap: TensorMap, start: tuple[int, ...], data: np.ndarray, reduce) -> None:
    """Writes uint8 (rows, bytes per row) to a box of global memory, without elements outside the tensor.

    reduce: combines the elements with those in memory.
    """
    array = cluster.launch.memory.rows[tmap.segment][2]
    if tmap.padded:  # .b6p2x16: the upper two bits of each byte are padding
        data = pack_bits(data, 6)
    rows: np.ndarray = np.ascontiguousarray(data).reshape(-1)
    if reduce:
        held = np.empty_like(rows)
        move(tmap, start, array, held, None, loads=True)
        found = reduce(held.view(tmap.dtype), rows.view(tmap.dtype))
        rows = canonical_nans(found).view(np.uint8)
    move(tmap, start, array, rows, None, loads=False)


# ---- operands ----


def _tensor(
    cluster: Cluster, split: Lanes, arg, rows: bool = False, im2col: bool = False
) -> tuple[TensorMap | None, tuple[int, ...]]:
    """(tensor map, signed coordinates) of an operand `[map, {coordinates}]`; (None, ()), with a finding, if
    they are not legal.

    rows: for .tile::gather4 or scatter4, whose coordinates are a column and four rows of a matrix with a box
    of one row.
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
            f"four rows of a tensor map of rank {tmap.rank} with box {tmap.box}; expected rank 2 and one row"
        )
        cluster.reporter.add("descriptor", "error", message, "", split)
        return None, ()
    if len(coordinates) != (5 if rows else len(tmap.dims)):
        message = f"{len(coordinates)} coordinates for a tensor map of rank {tmap.rank}"
        cluster.reporter.add("descriptor", "error", message, "", split)
        return None, ()
    start = tuple([(c + (1 << 31) & 0xFFFF_FFFF) - (1 << 31) for c in coordinates])
    if tmap.packed == 1 and not tmap.padded:
        return tmap, start
    try:
        return tmap, tmap.place(start)
    except ValueError as error:
        cluster.reporter.add("misaligned", "error", str(error), "move the start of the copy", split)
        return None, ()


def _check_alignment(
    cluster: Cluster, split: Lanes, offset: int, tmap: TensorMap, start: tuple[int, ...]
) -> None:
    """Reports a tensor copy whose shared address is not aligned to 128 B or its swizzle pattern (5.5.7). Four
    rows at a time (gather4, scatter4) fill a pattern of eight rows in parts.
    """
    need = ALIGNMENT[tmap.swizzle]
    if len(start) > tmap.rank:
        need = max(128, min(need, 4 * tmap.row_bytes))
    if offset % need == 0:
        return
    if offset % 128:
        message = f"TMA at {cluster.reporter.shared_name(offset)}: shared address is not a multiple of 128 B"
        cluster.reporter.add("misaligned", "error", message, "", split)
    else:
        message = (
            f"TMA with {SPAN[tmap.swizzle]} B swizzle at {cluster.reporter.shared_name(offset)}, which is "
        )
        message += f"not {need}-byte aligned: the swizzle pattern is cut in the middle"
        cluster.reporter.add("misaligned", "review", message, CAUSES["swizzle-start"], split)


def _check_barrier(cluster: Cluster, split: Lanes, place, bar, pair: bool) -> None:
    """Reports a load whose barrier is not in the CTA that it writes to, or in its pair with .cta_group::2
    (9.7.9.27.1).
    """
    if not pair or place[0] // 2 != bar[0] // 2:
        message = f"a TMA load to CTA {place[0]} signals {cluster.reporter.shared_name(bar[1])} of CTA "
        message += f"{bar[0]} without cta_group 2"
        hint = "give every load that reports to the other CTA's barrier the cta_group of the pair"
        cluster.reporter.add("cluster", "error", message, hint, split, key=("load-group", place[1]))


def _warn_lanes(cluster: Cluster, split: Split, shared, what: str, severity: str = "error") -> None:
    name = cluster.reporter.shared_name(shared_place(cluster.address(split, shared))[1])
    message = f"TMA {what} {name} issued by {len(split.lanes)} lanes: the tile is copied as many times"
    hint = "issue a TMA copy from one elected thread"
    cluster.reporter.add("illegal", severity, message, hint, split, key="tma-lanes")


# ---- tensor copies ----


_LOAD = "cp.async.bulk.tensor .dim.to.global{.tile}.mbarrier::complete_tx::bytes"
_COLUMNS = "cp.async.bulk.tensor .deep.to.global.columns.mbarrier::complete_tx::bytes"
_GATHER = "cp.async.bulk.tensor .2d.to.global.tile::gather4.mbarrier::complete_tx::bytes"


def _many(box: str) -> str:
    """A syntax box with .multicast::cluster, which writes only to .shared::cluster."""
    return box.replace(".to.global", ".shared::cluster.global") + ".multicast::cluster"


@unit(
    f"{_LOAD}{{.group}}{{.hint}} [d], [map], [bar]{{, policy}}",
    f"{_many(_LOAD)}{{.group}}{{.hint}} [d], [map], [bar], mask{{, policy}}",
    f"{_GATHER}{{.group}}{{.hint}} [d], [map], [bar]{{, policy}}",
    f"{_many(_GATHER)}{{.group}}{{.hint}} [d], [map], [bar], mask{{, policy}}",
    f"{_COLUMNS}{{.group}}{{.hint}} [d], [map], [bar], offsets{{, policy}}",
    f"{_many(_COLUMNS)}{{.group}}{{.hint}} [d], [map], [bar], offsets, mask{{, policy}}",
    "cp.async.bulk.tensor .deep.global.shared::cta.im2col_no_offs.bulk_group{.hint} [map], [s]{, policy}",
    "cp.async.bulk.tensor .dim.global.shared::cta{.tile}.bulk_group{.hint} [map], [s]{, policy}",
    "cp.async.bulk.tensor .2d.global.shared::cta.tile::scatter4.bulk_group{.hint} [map], [s]{, policy}",
    to="shared::cluster shared::cta",
    deep="3d 4d 5d",
    columns="im2col im2col::w im2col::w::128",
    section="9.7.9.27.1",
    fire_and_forget=True,
    signals="mbarrier::complete_tx::bytes",
    fast=FastForm(fast_copy, called=copy_box),
)
def tensor_copy(instr):
    return _tensor_store(instr, None) if "bulk_group" in instr.mods else _tensor_load(instr)


def _tensor_load(instr):
    mods, im2col = set(instr.mods), mode_of(instr)
    multicast, pair, rows = "multicast::cluster" in mods, "cta_group::2" in mods, "tile::gather4" in mods

    def run(cluster: Cluster, split: Split, args):
        if not split.one_lane and len(set(cluster.addresses(split, args[0]).tolist())) < len(split.lanes):
            _warn_lanes(cluster, split, args[0], "load to")
        for thread in each_lane(split):
            _load_one(cluster, thread, args, multicast, pair, rows, im2col)

    return run


def _load_one(
    cluster: Cluster, split: Lanes, args, multicast: bool, pair: bool, rows: bool, im2col: str
) -> None:
    tmap, start = _tensor(cluster, split, args[1], rows, bool(im2col))
    place = place_of(cluster, split, cluster.address(split, args[0]), False)
    bar = place_of(cluster, split, cluster.address(split, args[2]), False)
    if tmap is None or place is None or bar is None:
        return
    if leaves_array(cluster, split, tmap, start):
        return
    check_start(cluster, split, tmap, start, store=False)
    _check_alignment(cluster, split, place[1], tmap, start)
    if place[0] != bar[0] and not multicast:
        _check_barrier(cluster, split, place, bar, pair)
    mask = cluster.scalar(split, args[4 if im2col else 3]) if multicast else 0
    ranks = tuple([r for r in range(cluster.ctas) if mask >> r & 1]) if multicast else (place[0],)
    if isinstance(tmap, Im2colMap):
        offsets = [value & 0xFFFF for value in cluster.scalars(split, args[3])]
        parts = columns(cluster, split, tmap, start, place[1], im2col, offsets)
    else:
        parts = boxes(tmap, start, place[1])
    if end_of(parts) > cluster.launch.shared_end:
        name = cluster.reporter.shared_name(place[1])
        text = f"TMA load of {tmap.box_bytes} B to {name} passes the end of shared memory"
        cluster.reporter.add("out-of-bounds", "error", text, CAUSES["past-shared"], split)
        return
    barriers = tuple([_signalled(rank, bar, pair) for rank in ranks]) if multicast else (bar,)
    for part in parts:
        _load_box(cluster, split, part, ranks, barriers)


def _load_box(cluster: Cluster, split: Lanes, part: Part, ranks: tuple[int, ...], barriers: tuple) -> None:
    tmap, start, rows = part
    size = tmap.box_bytes
    targets = spans_of(ranks, rows)
    cluster.watchdog.livelock.copies("load", tmap, start)
    copy = BulkCopy("load", tmap, start, rows.offset, size, None, targets, barriers)
    token = cluster.bus.copy_issue(cluster, split, copy)

    def finish():
        if not cluster.dry:
            array, at = cluster.launch.memory.rows[tmap.segment][2], (rows.offset, rows.first)
            for span in targets:
                move(tmap, start, array, cluster.shared[span.rank], at, loads=True)
        cluster.bus.copy_write(cluster, token, copy)
        cluster.tma_bytes += size
        for place in barriers:
            bytes_arrive(cluster, split, place, size, token)

    cluster.engine.submit(Work(None, finish, f"TMA load of {tmap.name or 'a tensor'}"))


def _signalled(rank: int, bar: tuple[int, int], pair: bool) -> tuple[int, int]:
    """The barrier that counts the bytes that a multicast writes to CTA `rank`."""
    return (rank & ~1 | bar[0] & 1 if pair else rank, bar[1])


_REDUCE = "cp.reduce.async.bulk.tensor"


@unit(
    f"{_REDUCE} .dim.global.shared::cta.op{{.tile}}.bulk_group{{.hint}} [map], [s]{{, policy}}",
    f"{_REDUCE} .deep.global.shared::cta.op.im2col_no_offs.bulk_group{{.hint}} [map], [s]{{, policy}}",
    deep="3d 4d 5d",
    op=" ".join(REDUCTIONS),
    section="9.7.9.27.2",
    fire_and_forget=True,
)
def tensor_reduce(instr):
    return _tensor_store(instr, next(m for m in instr.mods if m in REDUCTIONS))


def _tensor_store(instr, reduction: str | None):
    operation = REDUCTIONS[reduction] if reduction else None
    rows, im2col = "tile::scatter4" in instr.mods, bool(mode_of(instr))

    def run(cluster: Cluster, split: Split, args):
        copies = _copies(cluster, split, args, rows, im2col)
        if len(copies) < sum(len(lanes) for _, lanes in copies):
            # the same bytes to the same place, as CuTe DSL 4.8 generates: slow but correct
            _warn_lanes(cluster, split, args[1], "store from", "error" if operation else "review")
        for what, lanes in copies:
            for one in [[lane] for lane in lanes] if operation else [lanes]:
                _store_one(cluster, split, what, one, operation)

    return run


def _copies(cluster: Cluster, split: Split, args, rows: bool, im2col: bool) -> list[tuple[tuple, list[int]]]:
    """((tensor map, coordinates, shared place), lanes) of each store: lanes with equal stores share one."""
    found: dict[tuple, tuple[tuple, list[int]]] = {}
    for lane in [int(x) for x in split.lanes]:
        one = split.at(1 << lane)
        tmap, start = _tensor(cluster, one, args[0], rows, im2col)
        place = place_of(cluster, one, cluster.address(one, args[1]), False)
        if tmap is None or place is None:
            continue
        key = cluster.address(one, args[0]), start, place
        found.setdefault(key, ((tmap, start, place), []))[1].append(lane)
    return list(found.values())


def _store_one(cluster: Cluster, split: Split, what: tuple, lanes: list[int], operation) -> None:
    """Issues one store from the first of `lanes`; it belongs to the bulk group of each of them."""
    tmap, start, place = what
    first = split.at(1 << lanes[0])
    if tmap.padded == 8 or operation and (tmap.padded or tmap.packed > 1):
        message = (
            f"a TMA {'reduction' if operation else 'store'} to {tmap.name or 'a tensor'}, whose elements "
        )
        message += "have fewer than 8 bits: PTX allows only loads (9.7.9.27.1.1)"
        cluster.reporter.add("descriptor", "error", message, "", first)
        return
    if leaves_array(cluster, first, tmap, start):
        return
    check_start(cluster, first, tmap, start, store=True)
    _check_alignment(cluster, first, place[1], tmap, start)
    if isinstance(tmap, Im2colMap):
        parts = columns(cluster, first, tmap, start, place[1], "im2col_no_offs", [])
    else:
        parts = boxes(tmap, start, place[1])
    if end_of(parts) > cluster.launch.shared_end:
        cluster.reporter.add(
            "out-of-bounds", "error", "a TMA store reads past the end of shared memory", "", first
        )
        return
    for part in parts:
        _store_box(cluster, split, first, part, place[0], lanes, operation)


def _store_box(
    cluster: Cluster, split: Split, first, part: Part, rank: int, lanes: list[int], operation
) -> None:
    tmap, start, rows = part
    source = span_of(rank, rows)
    groups = [open_group(cluster, split.at(1 << lane)) for lane in lanes]
    cluster.watchdog.livelock.copies("store", tmap, start)
    reduces = operation is not None
    copy = BulkCopy("store", tmap, start, rows.offset, tmap.box_bytes, source, reduces=reduces)
    token = cluster.bus.copy_issue(cluster, first, copy)

    def read() -> np.ndarray:
        data = cluster.shared_chunks[rank][source.chunks].view(np.uint8)
        cluster.bus.copy_read(cluster, token, copy)
        return data

    def write(data: np.ndarray) -> None:
        if not cluster.dry:
            write_box(cluster, tmap, start, data, operation)
        cluster.bus.copy_write(cluster, token, copy)
        cluster.tma_bytes += tmap.box_bytes

    store(cluster, split, "TMA store", groups, read, write)
