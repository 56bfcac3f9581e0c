"""tcgen05 (PTX ISA 9.7.16): ld, st, their waits, commit and fences (mma: tcgen05_mma.py, alloc:
tcgen05_alloc.py).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxsim.causes.catalogue import CAUSES
from ptxsim.events.records import Commit, TmemCells
from ptxsim.isa.address_map import WINDOW_MASK
from ptxsim.isa.layouts.tmem import LOAD_SHAPES, load_layout
from ptxsim.jit.called import ParameterBlock
from ptxsim.jit.translate import is_shared, shared_place
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Lanes, Split
from ptxsim.machine.tensor_memory import COLUMNS, LANES, NEVER_WRITTEN, split_address
from ptxsim.units import tcgen05_mma  # noqa: F401  (registers tcgen05.mma)
from ptxsim.units.mbarrier import apply_count_change, find_barrier, place_of
from ptxsim.units.registry import FastForm, refuse, slots_of, unit
from ptxsim.units.tcgen05_alloc import freed_by, unwritten
from ptxsim.units.tcgen05_lanes import cells_block, move_cells
from ptxsim.units.warp import WHOLE_WARP_DONE, require_aligned

# ---- ld, st, wait ----

COUNTS = {f"x{1 << i}": 1 << i for i in range(8)}


def _boxes(op: str, packing: str, operands: str, split_operands: str) -> list[str]:
    """Syntax boxes of ld or st, one for each shape; .16x32bx2 also takes the column of its second half."""
    return [
        f"{op} .sync.aligned.{shape}.n{most}{{.{packing}}}.b32 "
        + (split_operands if shape == "16x32bx2" else operands)
        for shape, (_, _, most) in LOAD_SHAPES.items()
    ]


_UNSEEN = 0xE0  # lane bits that chips take from the warp; public kernels set 128 in the CTA of rank 1
_NUMBERS: dict[str, Any] = {
    f"n{most}": " ".join(n for n in COUNTS if COUNTS[n] <= most) for most in (32, 64, 128)
}


def shape_of(instr) -> tuple[str, int]:
    """The shape and .num; raises PtxError if the vector of registers has a different length."""
    shape, count = (next(m for m in instr.mods if m in known) for known in (LOAD_SHAPES, COUNTS))
    vector = instr.operands[0 if instr.mods[0] == "ld" else -1]
    found, needed = len(getattr(vector, "items", (0,))), len(cells(shape, COUNTS[count])[0])
    if found != needed:
        raise refuse(instr, f"{instr.name} takes {needed} registers, not {found}")
    return shape, COUNTS[count]


@functools.lru_cache(maxsize=64)
def cells(shape: str, count: int, split_column: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(TMEM lane offsets, column offsets) of a warp's ld / st, (registers, 32) each."""
    lane, column = np.broadcast_arrays(*load_layout(shape, count, split_column))
    return np.ascontiguousarray(lane.T), np.ascontiguousarray(column.T)


@functools.lru_cache(maxsize=64)
def _packed_cells(shape: str, count: int, split_column: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """As `cells`, with two columns per register, (2, registers, 32). The offset of the second half of
    .16x32bx2 counts columns of tensor memory, packed or not (PTX ISA 9.7.16.8.1).
    """
    (lane, first), (_, shifted) = cells(shape, count), cells(shape, count, split_column)
    start = 2 * first + shifted - first
    return lane, np.stack([start, start + 1])


@functools.lru_cache(maxsize=1024)
def _reach(
    cells_of, shape: str, count: int, split_column: int, rank: int, address: int, quarter: int
) -> TmemCells:
    """The cells of an access by a warp that owns the 32 lanes starting at `quarter`."""
    lanes, columns = cells_of(shape, count, split_column)
    lane, column = split_address(address)
    own = lane // 32 * 32 in (0, quarter)  # chips treat lane 0 as the first lane that the warp can access
    return TmemCells.of(rank, lanes + lane % 32 + (quarter if own else lane // 32 * 32), columns + column)


def _not_its_lanes(cluster: Cluster, split: Split, reach: TmemCells, what: str, taken: str = "") -> None:
    """Reports an access to lanes of another warp, or of none. taken: added if known chips accept it."""
    low, high = reach.lane_ends
    warp = split.warp % cluster.warps_per_cta
    message = f"{what} of TMEM lanes {low}..{high} by warp {warp}; a warp reaches "
    message += f"lanes {32 * (warp % 4)}..{32 * (warp % 4) + 31} (warp number modulo 4){taken}"
    hint = "the row of a TMEM address must be 32 * (warp_id % 4)"
    hint += ": each CTA of a pair has 128 lanes of its own, so its rank is no part of the row" * (
        low >= LANES
    )
    cluster.reporter.add("tmem-alloc", "review" if taken else "error", message, hint, split, key="lanes")


def target(cluster: Cluster, split: Split, address: int, form: tuple, what: str) -> TmemCells | None:
    """The cells of an access; None, with a finding, if the warp may not touch them."""
    quarter = 32 * (split.warp % cluster.warps_per_cta % 4)
    reach = _reach(*form, split.cta, address & 0xFFFF_FFFF, quarter)
    low, high = reach.lane_ends
    if address & 0xFFFF_FFFF == NEVER_WRITTEN:
        unwritten(cluster, split, what)
        return None
    if low != high and low // 32 == high // 32 != quarter // 32:  # only in bits that chips ignore
        _not_its_lanes(cluster, split, reach, what, ", and known chips access these instead")
        reach = _reach(*form, split.cta, address & 0xFFFF_FFFF & ~(_UNSEEN << 16), quarter)
        low, high = reach.lane_ends
    if low < quarter or high >= quarter + 32:
        _not_its_lanes(cluster, split, reach, what)
        return None
    first, last = reach.column_ends
    if not cluster.tmem[split.cta].allocated(first, last - first + 1):
        have, remedy = cluster.tmem[split.cta].shortage(first, last - first + 1)
        message = f"{what} of TMEM columns {first}..{last}, "
        gone = "" if have else freed_by(cluster, split.cta, first)
        message += f"but {have}" if have else gone or "which are not (all) allocated"
        remedy = (
            remedy or "tcgen05.alloc and a barrier must come before it, tcgen05.dealloc after the last read"
        )
        hint = CAUSES["freed-early"] if gone else remedy
        cluster.reporter.add("tmem-alloc", "error", message, hint, split, key="columns")
        if last >= COLUMNS:
            return None
    return reach


@unit(
    *_boxes("tcgen05.ld", "pack::16b", "r, [a]", "r, [a], column"),
    writes=(0,),
    async_destination=True,
    section="9.7.16.8.1",
    fast=FastForm(lambda *given: _fast_cells(*given), called=move_cells),
    prepare=lambda args: (*vector(args[0]), *args[1:]),
    **_NUMBERS,
)
def load(instr):
    shape, count = shape_of(instr)
    packed = "pack::16b" in instr.mods
    form = _packed_cells if packed else cells, shape, count

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        targets, slots, *operands = args

        def fill(values: np.ndarray) -> None:
            values = (values[0] & 0xFFFF) | (values[1] << 16) if packed else values
            cluster.registers[split.warp, slots] = values

        load_later(cluster, split, form, operands, targets, fill)

    return run


def load_later(cluster: Cluster, split: Split, form: tuple, operands: list, targets: tuple, fill) -> None:
    """Issues a load from [address]{, column}; on completion, fill(values) writes its target registers."""
    address, *rest = operands
    given = *form, cluster.scalar(split, rest[0]) if rest else 0
    place = target(cluster, split, cluster.address(split, address), given, "tcgen05.ld")
    if place is None:
        return
    memory, where = cluster.tmem[split.cta].cells, split.at()
    at_once = cluster.engine.eager or split.row in cluster.launch.loads_at_once

    def finish() -> None:
        cluster.bus.tmem_access(cluster, where, place, False)
        fill(place.held(memory))
        for source, copy in () if at_once else cluster.program.copies.get(where.row, ()):
            cluster.registers[where.warp, copy] = cluster.registers[where.warp, source]

    defer(cluster, split, place, targets, finish, at_once)


def vector(operand) -> tuple[tuple[int, ...], np.ndarray]:
    """The slots of a vector of registers or a single register, as a tuple and as an array."""
    return slots_of(operand), np.array(slots_of(operand))


@unit(
    *_boxes("tcgen05.st", "unpack::16b", "[a], r", "[a], column, r"),
    section="9.7.16.8.2",
    fast=FastForm(lambda *given: _fast_cells(*given), called=move_cells),
    prepare=lambda args: (vector(args[-1])[1], *args[:-1]),
    **_NUMBERS,
)
def store(instr):
    shape, count = shape_of(instr)
    packed = "unpack::16b" in instr.mods
    cells_of = _packed_cells if packed else cells

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        slots, address, *rest = args
        form = cells_of, shape, count, cluster.scalar(split, rest[0]) if rest else 0
        place = target(cluster, split, cluster.address(split, address), form, "tcgen05.st")
        if place is None:
            return
        values = cluster.registers[split.warp].take(slots, axis=0)
        if packed:
            values = np.stack([values & 0xFFFF, values >> 16 & 0xFFFF])
        memory, where = cluster.tmem[split.cta].cells, split.at()

        def finish():
            cluster.bus.tmem_access(cluster, where, place, True)
            place.put(memory, values)

        defer(cluster, split, place, (), finish, cluster.engine.eager)

    return run


def _fast_cells(instr, args: tuple, unset) -> ParameterBlock | None:
    stores, (shape, count) = instr.mods[0] == "st", shape_of(instr)
    slots, address, *rest = args if stores else args[1:]
    packed = {"pack::16b", "unpack::16b"} & set(instr.mods)
    split_column = getattr(instr.operands[-2 if stores else -1], "bits", None) if rest else 0
    if split_column is None:
        return None
    layout = (_packed_cells if packed else cells)(shape, count, split_column)
    return cells_block(address, stores, slots, layout)


def defer(cluster: Cluster, split: Split, cells: TmemCells, targets: tuple, finish, at_once: bool) -> None:
    """Completes an ld (with target registers) or an st (without) now, or as late as its wait."""
    cluster.bus.tmem_issue(cluster, split, cells, not targets)
    if at_once:
        finish()
        return
    if targets:
        cluster.registers[split.warp, list(targets)] = np.uint64(0x7FFF_DEAD)
    kind = "ld" if targets else "st"
    cluster.unit_state.setdefault(("tmem", kind, split.warp), []).append(finish)


@unit(
    "tcgen05.wait::ld .sync.aligned",
    "tcgen05.wait::st .sync.aligned",
    section="9.7.16.8.3",
    fast=WHOLE_WARP_DONE,
)
def wait(instr):
    kind = instr.mods[0].split("::")[1]

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        for finish in cluster.unit_state.pop(("tmem", kind, split.warp), []):
            finish()
        cluster.bus.tmem_wait(cluster, split, kind)

    return run


# ---- commit, fences ----


@unit(
    "tcgen05.commit .group.mbarrier::arrive::one{.shared::cluster}.b64 [bar]",
    "tcgen05.commit .group.mbarrier::arrive::one{.shared::cluster}.multicast::cluster.b64 [bar], mask",
    section="9.7.16.9.4",
    fire_and_forget=True,
    signals="",
    tensor_core=True,
)
def commit(instr):
    mods = set(instr.mods)

    def run(cluster: Cluster, split: Split, args):
        address = cluster.address(split, args[0])
        generic = "shared::cluster" not in mods and not _is_window_address(cluster, split, address)
        place = place_of(cluster, split, address, generic)
        if place is None:
            return
        mask = cluster.scalar(split, args[1]) & 0xFFFF if "multicast::cluster" in mods else 1 << place[0]
        ranks = _commit_ranks(cluster, split, place, mask)
        barriers = tuple([(rank, place[1]) for rank in ranks])
        token = cluster.bus.commit_issue(cluster, split, Commit(barriers))
        where = split.at()

        def finish():
            for barrier in barriers:
                _signal(cluster, where, barrier, token)

        cluster.engine.submit(Work(("tensor", split.thread), finish, "tcgen05.commit"))

    return run


def _is_window_address(cluster: Cluster, split: Split, address: int) -> bool:
    """Whether an address given as generic is really that of a barrier in the shared window; adds a `review`.

    The ISA leaves this undefined; the chip uses only the low half of the address.
    """
    if is_shared(address) or address > WINDOW_MASK or shared_place(address) not in cluster.mbarriers:
        return False
    message = (
        "tcgen05.commit without .shared::cluster takes a generic address, but this is a shared window address"
    )
    hint = "write .shared::cluster, or convert the address with cvta.shared"
    cluster.reporter.add("mbarrier", "review", message, hint, split)
    return True


def _commit_ranks(cluster: Cluster, split: Split, place, mask: int) -> list[int]:
    """The CTAs that a commit signals; adds findings for several issuing lanes and for a mask too large."""
    if not split.one_lane:
        name = cluster.reporter.shared_name(place[1])
        message = f"tcgen05.commit to {name} issued by {len(split.lanes)} lanes: each is an arrival"
        cluster.reporter.add("illegal", "error", message, CAUSES["commit-lanes"], split, key="commit-lanes")
    beyond = mask >> cluster.ctas
    if beyond:
        first = cluster.ctas + (beyond & -beyond).bit_length() - 1
        message = f"tcgen05.commit signals CTA rank {first} of a cluster of {cluster.ctas}"
        hint = "cta_mask has one bit per CTA of the cluster"
        cluster.reporter.add("cluster", "error", message, hint, split)
    return [r for r in range(cluster.ctas) if (mask >> r) & 1]


def _signal(cluster: Cluster, split: Lanes, place, token) -> None:
    barrier = find_barrier(cluster, split, place, "tcgen05.commit")
    if barrier is not None:
        cluster.bus.async_arrive(cluster, place, token)
        apply_count_change(cluster, split, place, barrier.arrive)


@unit(
    "tcgen05.fence::before_thread_sync",
    "tcgen05.fence::after_thread_sync",
    section="9.7.16.10",
    observer_only=True,
)
def thread_sync_fence(instr):
    after = "after" in instr.mods[0]

    def run(cluster: Cluster, split: Split, args):
        cluster.bus.tcgen05_fence(cluster, split, after)

    return run
