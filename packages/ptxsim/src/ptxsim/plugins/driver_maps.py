"""Tensor maps of tensors on the CPU: made from cuTensorMapEncodeTiled's arguments, or from a driver's map.

The layout of a map is not documented. The fields read here were found by changing one argument of
cuTensorMapEncodeTiled (driver 13.0, H100) at a time; it does not set the upper 64 bytes.
"""

from __future__ import annotations

import struct

from ptxsim.isa.layouts.swizzle import Mode
from ptxsim.machine.tensor_map import MAP_BYTES, SWIZZLES, TensorMap
from ptxsim.plugins.torch_on_cpu import Storages
from ptxsim.units.tensormap import counted, element_type, encoded

_WORDS = struct.Struct("<QI4II5III4x")  # address, modes, strides, their upper bits, extents, box, box
_TF32 = 1 << 16
_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15)  # CUtensorMapDataType -> .elemtype of PTX
_UNKNOWN = 16
_MODES: dict[int, Mode] = {**dict(enumerate(SWIZZLES[:5])), 6: SWIZZLES[5]}  # CUtensorMapSwizzle -> mode
# (TF32, type in the map) -> .elemtype of PTX; 11 is what CuTe DSL writes for Float4E2M1FN
_SPECIAL = {(_TF32, 7): 11, (_TF32, 8): 12, (0, 11): 13}
_SPANS = (0, 32, 64, 128)
_KNOWN = 0x27_FFFF  # bits of the modes that are known; the lowest four, 17, 18 and 21 do not affect a launch


def made_again(data: bytes, memory: Storages) -> bytes:
    """A map of a driver, encoded as a launch expects it; bytes that are not a map are returned unchanged."""
    if len(data) != MAP_BYTES:
        return data
    address, modes, *words = _WORDS.unpack_from(data)
    low, high, dims, first, box = words[:4], words[4], words[5:10], words[10], words[11]
    rank, elements, interleave = (modes >> 4 & 7) + 1, modes >> 7 & 15, modes >> 11 & 3
    if modes & ~_KNOWN or interleave or rank > 5:
        return data
    if modes & _TF32 or elements > 10:
        elements = _SPECIAL.get((modes & _TF32, elements), _UNKNOWN)
    strides = [(low[i] | (high >> 4 * i & 15) << 32) << 4 for i in range(rank - 1)]
    boxes = [(first >> 24) + 1, *((box >> 8 * i & 255) + 1 for i in range(rank - 1))]
    steps = [(first >> 3 * i & 7) + 1 for i in range(rank)]
    extents = [d + 1 for d in dims[:rank]]
    mode = _SPANS[modes >> 13 & 3]
    try:
        return _map(memory, address, elements, extents, strides, boxes, steps, mode, modes >> 15 & 1)
    except (KeyError, ValueError):
        return data


def tiled(
    memory: Storages,
    kind: int,
    address: int,
    dims,
    strides,
    box,
    steps,
    interleave: int,
    swizzle: int,
    fill: int,
) -> bytes:
    """The map for the arguments of cuTensorMapEncodeTiled. Raises ValueError for arguments that it refuses or
    that are not modelled.
    """
    if interleave or swizzle not in _MODES or kind >= len(_TYPES):
        raise ValueError("interleaved layouts and swizzles that flip 8 B are not modelled")
    return _map(memory, address, _TYPES[kind], dims, strides, box, steps, _MODES[swizzle], fill)


def _map(
    memory: Storages, address: int, elements: int, dims, strides, box, steps, mode: Mode, fill: int
) -> bytes:
    """The encoded map. `elements`: a number of PTX's .elemtype. KeyError for an address in no storage."""
    start = memory.around(address)
    made = TensorMap(
        memory.mapped[start][1],
        box=counted(box, elements),
        dims=counted(dims, elements),
        strides=tuple(strides),
        element_strides=tuple(steps),
        swizzle=mode,
        fill="nan" if fill else "zero",
        byte_offset=address - start,
        **element_type(elements),
    )
    return encoded(made, start)
