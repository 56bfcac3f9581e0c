"""Maps written by the stand-in driver's cuTensorMapEncode*, against ptxsim's maps with the same meaning."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

from ptxsim import Im2colMap, TensorMap
from ptxsim.driver.build import library
from ptxsim.isa.layouts.swizzle import SPAN
from ptxsim.units.tensormap import decoded, encoded

BASE = 0x7200_0000_0000
TYPES = {np.dtype(np.uint8): 0, np.dtype(np.float16): 6, np.dtype(np.float32): 7}  # CUtensorMapDataType
# CUtensorMapSwizzle; 5 flips the halves of 16 bytes, too
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3, "128_atom32": 4, "128_atom64": 6}
LIMITS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}


def drawn(draw: random.Random, im2col: bool) -> dict:
    """Arguments of a legal map, under the driver's names."""
    rank = draw.randint(3 if im2col else 1, 5)
    dtype, swizzle = draw.choice([*TYPES]), draw.choice([*SWIZZLES])
    step = 16 // dtype.itemsize
    inner = step * draw.randint(1, SPAN[swizzle or 128] // 16)
    dims = [step * draw.randint(1, 4), *(draw.randint(1, 4) for _ in range(rank - 1))]
    strides = [dtype.itemsize * int(np.prod(dims[: i + 1])) for i in range(rank - 1)]
    box = [inner, *(draw.randint(1, 256) for _ in range(rank - 1))]
    steps = [1, *(draw.randint(1, 8) for _ in range(rank - 1))]
    found = dict(rank=rank, dtype=dtype, dims=dims, strides=strides, box=box, steps=steps, swizzle=swizzle)
    if im2col:
        corners = [[draw.randrange(-LIMITS[rank], LIMITS[rank]) for _ in dims[2:]] for _ in range(2)]
        found |= {"lower": corners[0], "upper": corners[1], "pixels": draw.randint(1, 1024)}
    return found


def by_the_driver(m: dict, fill: int) -> tuple[int, bytes]:
    """(error, the 128 bytes)."""
    driver, out = ctypes.CDLL(str(library() / "libcuda.so.1")), ctypes.create_string_buffer(128)
    words = lambda values, kind: (kind * len(values))(*values)  # noqa: E731
    dims, strides = words(m["dims"], ctypes.c_uint64), words(m["strides"], ctypes.c_uint64)
    steps = words(m["steps"], ctypes.c_uint32)
    first = (out, m.get("kind", TYPES.get(m.get("dtype"))), m["rank"], ctypes.c_void_p(BASE), dims, strides)
    last = (steps, 0, SWIZZLES[m["swizzle"]], 0, fill)
    if "pixels" in m:
        corners = words(m["lower"], ctypes.c_int), words(m["upper"], ctypes.c_int)
        error = driver.cuTensorMapEncodeIm2col(*first, *corners, m["box"][0], m["pixels"], *last)
    else:
        error = driver.cuTensorMapEncodeTiled(*first, words(m["box"], ctypes.c_uint32), *last)
    return error, out.raw


def by_ptxsim(m: dict, fill: int) -> TensorMap:
    usual = {name: tuple(m[name]) for name in ("dims", "strides")}
    usual |= {"array": np.zeros(m["dims"][::-1], m["dtype"]), "swizzle": m["swizzle"]}
    usual |= {"element_strides": tuple(m["steps"]), "fill": ("zero", "nan")[fill]}
    if "pixels" not in m:
        return TensorMap(box=tuple(m["box"]), **usual)
    corners = {name: tuple(m[name]) for name in ("lower", "upper")}
    return Im2colMap(box=(m["box"][0], m["pixels"]), **corners, **usual)


class OneArray:
    """Global memory that is one array at BASE."""

    def __init__(self, array: np.ndarray):
        self.arrays, self.rows, self.names = [array], [(BASE, array.nbytes)], ["A"]

    def find(self, address: int) -> int | None:
        return 0 if address == BASE else None


@pytest.mark.parametrize("im2col", [False, True])
def test_both_write_the_same_bytes_and_read_them_back(im2col):
    draw = random.Random(5)
    for _ in range(200):
        m, fill = drawn(draw, im2col), draw.randint(0, 1)
        tmap = by_ptxsim(m, fill)
        error, data = by_the_driver(m, fill)
        assert (error, data) == (0, encoded(tmap, BASE)), m
        again = decoded(np.frombuffer(data, np.uint8), OneArray(tmap.array))
        assert type(again) is type(tmap) and encoded(again, BASE) == data, m


def test_a_bit_that_cutlass_clears_means_nothing():
    """Bit 21 of the second word, in every map of a tensor below 128 KB; chips read such maps the same way."""
    for im2col in (False, True):
        m = drawn(random.Random(3), im2col)
        data = np.frombuffer(by_the_driver(m, 0)[1], np.uint64).copy()
        data[1] &= np.uint64(~(1 << 21) & 2**64 - 1)
        again = decoded(data.view(np.uint8), OneArray(by_ptxsim(m, 0).array))
        assert again is not None and again.dims == tuple(m["dims"])


def test_a_wide_map_has_corners_along_w_alone():
    m = drawn(random.Random(1), True) | {"rank": 4, "dims": [64, 8, 8, 2], "strides": [128, 1024, 8192]}
    m |= {"dtype": np.dtype(np.float16), "steps": [1, 1, 1, 1], "swizzle": 64, "box": [32, 1, 1, 1]}
    driver, out = ctypes.CDLL(str(library() / "libcuda.so.1")), ctypes.create_string_buffer(128)
    dims, strides = (ctypes.c_uint64 * 4)(*m["dims"]), (ctypes.c_uint64 * 3)(*m["strides"])
    first = (out, 6, 4, ctypes.c_void_p(BASE), dims, strides, -1, 2, 32)
    for mode, pixels in ((0, 50), (1, 128)):
        error = driver.cuTensorMapEncodeIm2colWide(
            *first, 50, (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0, mode, 2, 0, 0
        )
        want = by_ptxsim(m | {"lower": [-1, 0], "upper": [2, 0], "pixels": pixels}, 0)
        assert (error, out.raw) == (0, encoded(want, BASE))


@pytest.mark.parametrize("kind, padded", [(14, 8), (15, 12)])
@pytest.mark.parametrize("change, error", [({}, 0), ({"dims": (192, 8)}, 1), ({"box": (64, 4)}, 1)])
def test_padded_elements_are_counted_one_by_one(kind, padded, change, error):
    """16U4_ALIGN16B, 16U6_ALIGN16B: rows of a multiple of 128 elements, and boxes 128 wide."""
    m = {"dims": (256, 8), "strides": (16 * padded,), "box": (128, 4), "steps": (1, 1)} | change
    array = np.zeros((8, 16 * padded), np.uint8)
    found, data = by_the_driver(m | {"rank": 2, "kind": kind, "swizzle": 128}, 0)
    assert found == error
    if not error:
        tmap = TensorMap(array, (8 * padded, 4), 128, padded=padded)
        assert data == encoded(tmap, BASE)
        again = decoded(np.frombuffer(data, np.uint8), OneArray(array))
        assert (again.padded, again.box, again.dims) == (padded, tmap.box, tmap.dims)
