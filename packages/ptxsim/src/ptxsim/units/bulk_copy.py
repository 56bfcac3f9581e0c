"""Bulk copies without a tensor map, and elements sent to another CTA (PTX ISA 9.7.9.25.4, .5; 9.7.9.12).

cp.async.bulk, cp.reduce.async.bulk: ranges of bytes between global memory and the shared memory of a cluster.
st.async, red.async: registers to the shared memory of a CTA of the cluster; the bytes count on its mbarrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.events.records import BulkCopy, SharedSpan
from ptxsim.isa.address_map import FAULT_MISALIGNED
from ptxsim.machine.async_queue import Work
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Lanes, Split
from ptxsim.machine.tensor_map import TensorMap
from ptxsim.units.atomic_values import OPERATIONS, TYPES, reduce_bytes
from ptxsim.units.bulk_groups import each_lane, open_group, store
from ptxsim.units.mbarrier import bytes_arrive, place_of
from ptxsim.units.registry import slots_of, unit

_TX = "mbarrier::complete_tx::bytes"
_SHARED = ("shared::cta", "shared::cluster")


class Span(TensorMap):
    """A range of bytes of one buffer, as a one-dimensional tensor of bytes for observers of tensor copies."""

    base: int  # address of the first byte

    def _check(self, rank: int, size: int) -> None:
        """Checks nothing: the rules of cuTensorMapEncodeTiled do not apply to spans."""


def span(cluster: Cluster, address: int, size: int) -> Span | None:
    """The `size` bytes at a global address; None if they are not all in one buffer."""
    memory = cluster.launch.memory
    found = memory.find(address, size)
    if found is None:
        return None
    base = memory.rows[found][0]
    view = Span(memory.arrays[found], (size,), dims=(size,), byte_offset=address - base, dtype=_BYTE)
    view.base, view.segment, view.name = address, found, memory.names[found]
    return view


_BYTE = np.dtype(np.uint8)
NOWHERE = Span(np.zeros(0, np.uint8), (1,), dims=(0,), dtype=_BYTE)  # copies that touch no global memory


@dataclass(frozen=True)
class BulkForm:
    """The decoded modifiers of a bulk copy."""

    to_global: bool
    from_global: bool
    multicast: bool
    masked: bool  # whether a mask says which bytes of each 16 are copied
    shortened: bool  # whether operands say how many bytes of the source not to read at its ends
    operation: str  # of cp.reduce, else ""
    elements: tuple[int, int]  # of atomic_values.TYPES


def decode_form(instr) -> BulkForm:
    mods = instr.mods
    spaces = [m for m in mods if m == "global" or m in _SHARED]
    reduce = instr.op == "cp" and mods[0] == "reduce"
    operation = next((m for m in mods if m in OPERATIONS), "")
    elements = TYPES[mods[-1] if reduce else "b32"]
    to_global, from_global = spaces[0] == "global", spaces[1] == "global"
    multicast, masked = "multicast::cluster" in mods, "cp_mask" in mods
    return BulkForm(to_global, from_global, multicast, masked, "ignore_oob" in mods, operation, elements)


_LOAD = f"cp.async.bulk .shared::cluster.global.{_TX}"
_SHORT = f"cp.async.bulk .shared::cta.global.{_TX}.ignore_oob{{.hint}}"
_IN = f".shared::cluster.shared::cta.{_TX}"
_OUT = ".global.shared::cta.bulk_group{.hint}"


@unit(
    f"{_LOAD}{{.hint}} [d], [s], size, [bar]{{, policy}}",
    f"{_LOAD}.multicast::cluster{{.hint}} [d], [s], size, [bar], mask{{, policy}}",
    f"cp.async.bulk .shared::cta.global.{_TX}{{.hint}} [d], [s], size, [bar]{{, policy}}",
    f"{_SHORT} [d], [s], size, left, right, [bar]{{, policy}}",
    f"cp.async.bulk {_IN} [d], [s], size, [bar]",
    f"cp.async.bulk {_OUT} [d], [s], size{{, policy}}",
    "cp.async.bulk .global.shared::cta.bulk_group.cp_mask [d], [s], size, mask",
    "cp.async.bulk .global.shared::cta.bulk_group.hint.cp_mask [d], [s], size, policy, mask",
    f"cp.reduce.async.bulk {_IN}.bits.b32 [d], [s], size, [bar]",
    f"cp.reduce.async.bulk {_IN}.add.sum [d], [s], size, [bar]",
    f"cp.reduce.async.bulk {_IN}.extreme.word [d], [s], size, [bar]",
    f"cp.reduce.async.bulk {_IN}.step.u32 [d], [s], size, [bar]",
    f"cp.reduce.async.bulk {_OUT}.bits.raw [d], [s], size{{, policy}}",
    f"cp.reduce.async.bulk {_OUT}.add.number [d], [s], size{{, policy}}",
    f"cp.reduce.async.bulk {_OUT}.add.noftz.half [d], [s], size{{, policy}}",
    f"cp.reduce.async.bulk {_OUT}.extreme.ordered [d], [s], size{{, policy}}",
    f"cp.reduce.async.bulk {_OUT}.step.u32 [d], [s], size{{, policy}}",
    bits="and or xor",
    sum="u32 s32 u64",
    extreme="min max",
    word="u32 s32",
    step="inc dec",
    raw="b32 b64",
    number="u32 s32 u64 f32 f64",
    half="f16 bf16",
    ordered="u32 s32 u64 s64 f16 bf16",
    section="9.7.9.25.4.1",
    fire_and_forget=True,
    signals=_TX,
)
def bulk_copy(instr):
    form = decode_form(instr)
    copy = _to_global if form.to_global else _to_shared

    def run(cluster: Cluster, split: Split, args):
        for thread in each_lane(split):
            size = cluster.scalar(thread, args[2]) & 0xFFFF_FFFF
            if size:
                copy(cluster, thread, args, form, size)

    return run


def _aligned(cluster: Cluster, split: Lanes, size: int, *addresses: int) -> bool:
    wrong = [f"{size} B"] * (size % 16 > 0) + [hex(address) for address in addresses if address % 16]
    if wrong:
        told = f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} not"
        message = f"bulk copy of {size} B: size and both addresses must be multiples of 16, and {told}"
        cluster.reporter.add("misaligned", "error", message, split=split, key="bulk")
        return False
    return True


def _inside(cluster: Cluster, split: Lanes, place, size: int):
    """The place, if there are `size` bytes of shared memory from there on; else None, with a finding."""
    if place is not None and place[1] + size > cluster.launch.shared_end:
        message = f"bulk copy of {size} B passes the end of shared memory"
        cluster.reporter.add("out-of-bounds", "error", message, "", split)
        return None
    return place


def _global(cluster: Cluster, split: Lanes, address: int, size: int) -> Span | None:
    found = span(cluster, address, size)
    if found is None:
        where = cluster.launch.memory.describe(address)
        message = f"bulk copy of {size} B leaves global memory: {where}"
        cluster.reporter.add("out-of-bounds", "error", message, "", split)
    return found


def _to_shared(cluster: Cluster, split: Lanes, args, form: BulkForm, size: int) -> None:
    """Copies from global or the CTA's own shared memory to a CTA of the cluster; the bytes complete on an
    mbarrier there.
    """
    source, target = cluster.address(split, args[1]), cluster.address(split, args[0])
    place = _inside(cluster, split, place_of(cluster, split, target, False), size)
    bar = place_of(cluster, split, cluster.address(split, args[3 + 2 * form.shortened]), False)
    if not _aligned(cluster, split, size, source, target) or place is None or bar is None:
        return
    own, (left, right) = None, _ignored(cluster, split, args, form, size)
    first, last = place[1] + left, place[1] + size - right  # in shared memory: what is written
    if form.from_global:
        origin = _global(cluster, split, source + left, size - left - right)
    else:
        own = _inside(cluster, split, place_of(cluster, split, source, False), size)
        origin = NOWHERE if own is not None else None
    if origin is None:
        return
    mask = cluster.scalar(split, args[4]) & 0xFFFF if form.multicast else 1 << place[0]
    ranks = [r for r in range(cluster.ctas) if (mask >> r) & 1]
    bars = tuple([(r, bar[1]) if form.multicast else bar for r in ranks])
    targets = tuple([SharedSpan.run(rank, first, last - first) for rank in ranks])
    span = SharedSpan.run(*own, size) if own is not None else None
    copy = BulkCopy("load", origin, (0,), place[1], size, span, targets, bars, bool(form.operation))
    token = cluster.bus.copy_issue(cluster, split, copy)

    def finish():
        data = _source(cluster, token, copy, origin)
        for rank in ranks:
            put(cluster.shared[rank, first:last], data, form.operation, *form.elements)
        cluster.bus.copy_write(cluster, token, copy)
        for at in bars:
            bytes_arrive(cluster, split, at, size, token)

    cluster.tma_bytes += size
    cluster.engine.submit(Work(None, finish, "bulk copy"))


def _ignored(cluster: Cluster, split: Lanes, args, form: BulkForm, size: int) -> tuple[int, int]:
    """How many bytes of the source are not read at its ends, where the copy writes nothing that a program may
    read, though they count on the mbarrier (.ignore_oob, PTX ISA 9.2). (0, 0), with a finding, if too many.
    """
    if not form.shortened:
        return 0, 0
    left, right = (cluster.scalar(split, args[i]) & 0xFFFF_FFFF for i in (3, 4))
    if max(left, right) < 16 and left + right < size:
        return left, right
    message = f"bulk copy that ignores {left} and {right} B of {size} B: at each end, less than 16 may be"
    cluster.reporter.add("illegal", "error", message, "", split, key="ignored")
    return 0, 0


def _source(cluster: Cluster, token, copy: BulkCopy, far: Span) -> np.ndarray:
    """The bytes that a copy reads, from `far` or from shared memory; the latter is reported to observers."""
    if copy.source is None:
        data = cluster.launch.memory.view(far.base, far.dims[0])
        assert data is not None  # checked when the copy was issued
        return data.copy()
    cluster.bus.copy_read(cluster, token, copy)
    return cluster.shared[copy.source.rank, copy.source.first : copy.source.last + 1].copy()


def _to_global(cluster: Cluster, split: Lanes, args, form: BulkForm, size: int) -> None:
    """Copies from the CTA's own shared memory to global memory; completes in the thread's bulk group."""
    target, source = cluster.address(split, args[0]), cluster.address(split, args[1])
    place = _inside(cluster, split, place_of(cluster, split, source, False), size)
    if not _aligned(cluster, split, size, source, target) or place is None:
        return
    runs = _runs(cluster.scalar(split, args[-1]), size) if form.masked else [(0, size)]
    for start, length in runs:
        result = _global(cluster, split, target + start, length)
        if result is not None:
            _run_to_global(cluster, split, (place[0], place[1] + start), result, form, length)


def _runs(mask: int, size: int) -> list[tuple[int, int]]:
    """(start, length) of the bytes that a mask of 16 bits selects (PTX ISA 9.7.9.25.4.1)."""
    chosen = np.resize([mask >> byte & 1 for byte in range(16)], size)
    (edges,) = np.nonzero(np.diff(chosen, prepend=0, append=0))
    return [(int(start), int(end - start)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _run_to_global(cluster: Cluster, split: Lanes, place, result: Span, form: BulkForm, size: int) -> None:
    group = open_group(cluster, split)
    span, reduces = SharedSpan.run(*place, size), bool(form.operation)
    copy = BulkCopy("store", result, (0,), place[1], size, span, reduces=reduces)
    token = cluster.bus.copy_issue(cluster, split, copy)

    def write(data):
        memory = cluster.launch.memory.view(result.base, size)
        assert memory is not None  # checked when the copy was issued
        put(memory, data, form.operation, *form.elements)
        cluster.bus.copy_write(cluster, token, copy)

    cluster.tma_bytes += size
    store(cluster, split, "bulk copy", [group], lambda: _source(cluster, token, copy, result), write)


def put(memory: np.ndarray, data: np.ndarray, operation: str, kind: int, size: int) -> None:
    """Writes bytes to memory; with an operation, combines their elements with those in memory."""
    if not operation:
        memory[:] = data
        return
    reduce_bytes(OPERATIONS.index(operation), kind, size, memory.ctypes.data, data.ctypes.data, len(data))


# ---- single elements ----


@unit(
    f"st.async {{.weak}}{{.shared::cluster}}.{_TX}{{.vec}}.word [a], b, [bar]",
    f"st.async {{.weak}}{{.shared::cluster}}.{_TX}{{.v2}}.double [a], b, [bar]",
    vec="v2 v4",
    word="b32 u32 s32 f32",
    double="b64 u64 s64 f64",
    section="9.7.9.12",
    signals="",
)
def store_async(instr):
    return _element(instr, "")


_REMOTE = f"red.async .relaxed.cluster{{.shared::cluster}}.{_TX}"


@unit(
    f"{_REMOTE}.step.u32 [a], b, [bar]",
    f"{_REMOTE}.extreme.word [a], b, [bar]",
    f"{_REMOTE}.bits.b32 [a], b, [bar]",
    f"{_REMOTE}.add.sum [a], b, [bar]",
    step="inc dec",
    extreme="min max",
    word="u32 s32",
    bits="and or xor",
    sum="u32 s32 u64",
    section="9.7.13.8",
    signals="",
)
def reduce_async(instr):
    return _element(instr, next(m for m in instr.mods if m in OPERATIONS))


def _element(instr, operation: str):
    kind, width = TYPES[instr.mods[-1]]

    def run(cluster: Cluster, split: Split, args):
        values = slots_of(args[1])
        for thread in each_lane(split):
            data = b"".join(_raw(cluster.scalar(thread, slot), width) for slot in values)
            place = place_of(cluster, thread, cluster.address(thread, args[0]), False)
            bar = place_of(cluster, thread, cluster.address(thread, args[2]), False)
            if _inside(cluster, thread, place, len(data)) is not None and bar is not None:
                _send(cluster, thread, place, data, (operation, kind, width), bar)

    return run


def _raw(value: int, width: int) -> bytes:
    return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _send(cluster: Cluster, split: Lanes, place, data: bytes, how: tuple[str, int, int], bar) -> None:
    size = len(data)
    if place[1] % size:
        cluster.reporter.fault(split, FAULT_MISALIGNED, place[1], 1)
        return
    target = SharedSpan.run(*place, size)
    copy = BulkCopy("load", NOWHERE, (0,), place[1], size, None, (target,), (bar,), bool(how[0]))
    token = cluster.bus.copy_issue(cluster, split, copy)

    def finish():
        put(cluster.shared[place[0], place[1] : place[1] + size], np.frombuffer(data, np.uint8), *how)
        cluster.bus.copy_write(cluster, token, copy)
        bytes_arrive(cluster, split, bar, size, token)

    cluster.engine.submit(Work(None, finish, "store to another CTA"))
