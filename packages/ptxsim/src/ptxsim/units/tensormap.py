"""Tensor maps that a kernel makes or changes itself: tensormap.replace, tensormap.cp_fenceproxy.

The 128 bytes of a map are opaque (PTX ISA 5.5.8); RECORD is the format used here. A map may be made in shared
memory, copied like any 128 bytes, and used from global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ptxsim.isa.address_map import CONVERT, IN_PARAM_SPACE, PARAM_WINDOW, SPACES
from ptxsim.machine.checked_access import checked_view
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.im2col_map import Im2colMap
from ptxsim.machine.split import Lanes, Split
from ptxsim.machine.tensor_map import MAP_BYTES, TensorMap
from ptxsim.units.registry import always, unit
from ptxsim.units.warp import require_aligned

# These mark tiled maps and im2col maps, to distinguish them from other bytes. Bit 21 is 0, because CUTLASS
# clears it in maps of tensors below 128 KB (make_tma_copy_desc in its copy_traits_sm90_tma.hpp).
MARK, IM2COL = 0x70416D74, 0x634D6D74
RECORD = np.dtype(
    [
        ("global_address", "<u8"),
        ("mark", "<u4"),
        ("box_dim", "<u2", 5),
        ("element_stride", "u1", 5),
        ("rank", "u1"),
        ("elemtype", "u1"),
        ("interleave_layout", "u1"),
        ("swizzle_mode", "u1"),
        ("swizzle_atomicity", "u1"),
        ("fill_mode", "u1"),
        ("global_dim", "<u4", 5),
        ("global_stride", "<u8", 4),
        ("lower", "<i2", 3),
        ("upper", "<i2", 3),
        ("pixels", "<u2"),
    ]
)  # extents and strides come late: a kernel that sets them may copy only 64 bytes, which chips accept
_ORDINAL = {"box_dim", "global_dim", "global_stride", "element_stride"}
_FIELDS = {*(RECORD.names or ())} - {"mark", "lower", "upper", "pixels"}
_TYPES = (
    "u1",
    "u2",
    "u4",
    "i4",
    "u8",
    "i8",
    "f2",
    "f4",
    "f4",
    "f8",
    ml_dtypes.bfloat16,
    "f4",
    "f4",
)  # fmt: skip  PTX ISA table of .elemtype; the types after these are smaller than a byte
_SMALL = {13: {"packed": 2}, 14: {"padded": 8}, 15: {"padded": 12}}  # .b4x16, .b4x16_p64, .b6x16_p32
# (.swizzle_mode, .swizzle_atomicity) (PTX ISA 9.7.9.27.3) -> mode; the missing one also flips halves of 16 B
_SWIZZLES = {(0, 0): 0, (1, 0): 32, (2, 0): 64, (3, 0): 128, (3, 1): "128_atom32", (3, 3): "128_atom64"}
_FIELDS_OF = {mode: fields for fields, mode in _SWIZZLES.items()}


def encoded(tmap: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map whose array is at `address`."""
    record = np.zeros((), RECORD)
    rank = tmap.rank
    record["mark"], record["global_address"], record["rank"] = MARK, address + tmap.byte_offset, rank - 1
    record["global_dim"][:rank] = [d & 0xFFFF_FFFF for d in tmap.elements(tmap.dims)]
    record["global_stride"][: rank - 1] = tmap.strides
    record["box_dim"][:rank] = tmap.elements(tmap.box)
    record["element_stride"][:rank] = tmap.element_strides
    record["elemtype"] = _type_number(tmap)
    record["swizzle_mode"], record["swizzle_atomicity"] = _FIELDS_OF[tmap.swizzle]
    record["fill_mode"] = tmap.fill == "nan"
    if isinstance(tmap, Im2colMap):
        record["mark"], record["pixels"] = IM2COL, tmap.pixels
        record["lower"][: rank - 2], record["upper"][: rank - 2] = tmap.lower, tmap.upper
    return record.tobytes().ljust(MAP_BYTES, b"\0")


def _type_number(tmap: TensorMap) -> int:
    """The .elemtype of a map. Types that TMA does not have (fp8) become unsigned integers of their size."""
    small = {"packed": 2} if tmap.packed == 2 else {"padded": tmap.padded}
    for number, known in _SMALL.items():
        if known == small:
            return number
    for number, dtype in enumerate(_TYPES):
        if number not in _SMALL and np.dtype(dtype) == tmap.dtype:
            return number
    return {1: 0, 2: 1, 4: 2, 8: 4}[tmap.dtype.itemsize]


def element_type(number: int) -> dict:
    """The fields of a TensorMap for an .elemtype number of tensormap.replace. ValueError if there is none."""
    if number in _SMALL:
        return {"dtype": np.dtype("u1"), **_SMALL[number]}
    if number >= len(_TYPES):
        raise ValueError(f"TensorMap: there is no element type {number}")
    return {"dtype": np.dtype(_TYPES[number])}


def counted(extents: Sequence[int], number: int) -> tuple[int, ...]:
    """Extents as a TensorMap counts them: the innermost one in bytes if elements are smaller than that."""
    small = _SMALL.get(number, {})
    inner = extents[0] // small.get("packed", 1)
    return (inner * small["padded"] // 16 if "padded" in small else inner, *extents[1:])


def decoded(data: np.ndarray, memory) -> TensorMap | None:
    """The map that 128 bytes hold, or None if they are not a map. Raises ValueError, with the reason, for a
    map that is not legal or not modelled.
    """
    record = np.frombuffer(data.tobytes()[: RECORD.itemsize], RECORD)[0]
    if record["mark"] not in (MARK, IM2COL):
        return None
    swizzle = _SWIZZLES.get((int(record["swizzle_mode"]), int(record["swizzle_atomicity"])))
    if swizzle is None or record["interleave_layout"]:
        raise ValueError(
            "TensorMap: swizzles of 96 B or that flip 8 B, and interleaved layouts are not modelled"
        )
    rank, address = int(record["rank"]) + 1, int(record["global_address"])
    segment = memory.find(address)
    if segment is None or rank > 5:
        raise ValueError(f"TensorMap: rank {rank}, global address {memory.describe(address)}")
    elements = int(record["elemtype"])
    dims, box = (counted(record[name][:rank].tolist(), elements) for name in ("global_dim", "box_dim"))
    usual = {
        "array": memory.arrays[segment],
        "swizzle": swizzle,
        "dims": dims,
        "strides": tuple(record["global_stride"][: rank - 1]),
        "element_strides": tuple(int(e) for e in record["element_stride"][:rank]),
        "fill": "nan" if record["fill_mode"] else "zero",
        "byte_offset": address - memory.rows[segment][0],
        **element_type(elements),
    }
    made: TensorMap
    if record["mark"] == IM2COL:
        lower, upper = (tuple(record[corner][: max(0, rank - 2)].tolist()) for corner in ("lower", "upper"))
        made = Im2colMap(box=(box[0], int(record["pixels"])), lower=lower, upper=upper, **usual)
    else:
        made = TensorMap(box=box, **usual)
    made.segment, made.name = segment, memory.names[segment]
    return made


_PASS = "pass the TensorMap as a grid-constant kernel parameter, or make it with tensormap.replace"
_FIX = "give cuTensorMapEncode*, or tensormap.replace, what the message asks for"


def find_map(cluster: Cluster, split: Lanes, address: int) -> TensorMap | None:
    """The map at the address of a parameter or in global memory; None, with a finding, if there is none."""
    launch = cluster.launch
    known = launch.maps.get(address) or cluster.maps.known(address)
    if known is not None:
        cluster.unit_state[_used(address)] = True
        return known
    data, why = launch.memory.view(address, MAP_BYTES), "holds no tensor map"
    try:
        made = decoded(data, launch.memory) if data is not None else None
    except ValueError as error:
        made, why = None, f"holds no legal one: {error}"
    if made is None:
        hint = _FIX if "legal" in why else _PASS
        if launch.memory.find(address + PARAM_WINDOW) is not None:
            why, hint = f"means a kernel parameter {IN_PARAM_SPACE}", CONVERT
        cluster.reporter.add("descriptor", "error", f"address {address:#x} {why}", hint, split, kills=True)
    else:
        _require_acquire(cluster, split, address)
        cluster.unit_state[_used(address)] = True
        acquired = cluster.unit_state.get(_changed(address))
        if acquired is None or len(acquired) == cluster.ctas:  # compiled copies do not ask for it
            cluster.maps.add(address, made)
        made.at = address if launch.memory.logged(address) else 0
    return made


def _changed(address: int) -> tuple[str, int]:
    """The key of the CTAs that have acquired a map since a thread of the cluster changed it."""
    return "map-changed", address


def _used(address: int) -> tuple[str, int]:
    """The key of whether a copy of the cluster has read a map here."""
    return "map-used", address


def _change(cluster: Cluster, address: int) -> None:
    """A thread changes a map: whoever copies by it has to acquire it from now on."""
    cluster.unit_state[_changed(address)] = set()
    cluster.maps.drop(address)


def _require_acquire(cluster: Cluster, split: Lanes, address: int) -> None:
    """A copy sees a changed map only after fence.proxy.tensormap::generic.acquire (PTX ISA 9.7.13.4)."""
    acquired = cluster.unit_state.get(_changed(address))
    if acquired is None or not cluster.bus.heard or split.cta in acquired:
        return
    severity = "error" if _used(address) in cluster.unit_state else "review"
    where = cluster.launch.memory.describe(address)
    message = (
        f"a copy uses the tensor map at {where}, which this kernel has changed, and no thread of its CTA"
    )
    message += " has executed fence.proxy.tensormap::generic.acquire for it since"
    message += "; an earlier copy has read the old map, which the chip may still hold" * (severity == "error")
    hint = "after the change is visible, the thread that copies acquires the map's 128 bytes"
    cluster.reporter.add("proxy-fence", severity, message, hint, split, key="map-acquire")


def acquired(cluster: Cluster, split: Split, addresses: np.ndarray) -> None:
    """A fence.proxy.tensormap::generic.acquire of these addresses."""
    for address in {int(a) for a in addresses}:
        cluster.unit_state.get(_changed(address), set()).add(split.cta)


@unit(
    "tensormap.replace .tile.global_address{.where}.b1024.b64 [a], value",
    "tensormap.replace .tile.global_stride{.where}.b1024.b64 [a], ordinal, value",
    "tensormap.replace .tile.extent{.where}.b1024.b32 [a], ordinal, value",
    "tensormap.replace .tile.field{.where}.b1024.b32 [a], value",
    where="global shared::cta",
    extent=" ".join(sorted(_ORDINAL - {"global_stride"})),
    field=" ".join(sorted(_FIELDS - _ORDINAL - {"global_address"})),
    section="9.7.9.27.3",
)
def replace(instr):
    field = next(m for m in instr.mods if m in _FIELDS)
    space, ordinal = next((m for m in instr.mods if m in SPACES), "generic"), field in _ORDINAL

    def run(cluster: Cluster, split: Split, args):
        for lane, address in zip(split.lanes, cluster.addresses(split, args[0]).tolist(), strict=True):
            data = checked_view(cluster, split, int(lane), address, MAP_BYTES, space, write=True)
            if data is None:
                return
            record = data[: RECORD.itemsize].view(RECORD)[0]
            record["mark"] = MARK
            _change(cluster, address)
            value = int(cluster.read(split, args[-1])[lane])
            value &= (1 << 8 * RECORD[field].base.itemsize) - 1
            if ordinal:
                record[field][int(cluster.read(split, args[1])[lane])] = value
            else:
                record[field] = value

    return run


@unit(
    "tensormap.cp_fenceproxy .global.shared::cta.tensormap::generic.release.scope.sync.aligned [d], [s], n",
    section="9.7.13.16",
)
@always
def copy_and_fence(cluster: Cluster, split: Split, args):
    """A warp copies a map from shared to global memory and releases it to the tensormap proxy."""
    require_aligned(cluster, split)
    lane = int(split.lanes[0])
    source, place = (cluster.address(split, arg) for arg in (args[1], args[0]))
    origin = checked_view(cluster, split, lane, source, MAP_BYTES, "shared::cta", write=False)
    target = checked_view(cluster, split, lane, place, MAP_BYTES, "global", write=True)
    if origin is not None and target is not None:
        target[:] = origin
        _change(cluster, place)
