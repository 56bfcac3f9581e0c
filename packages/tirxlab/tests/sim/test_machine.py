"""The machine computes what the PTX and the launch say: change one number in them, and exactly the elements
of D change that depend on it. Predictions come from the address arithmetic of the PTX ISA in numpy; inputs
are small integers, so that every comparison is exact.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from instructor.solutions import gemm_kernels
from tirxlab.devices import sim
from tirxlab.toolchain.build import build

TILE, ROW = 128, 128  # rows of a tile of A or B in shared memory; bytes of a row: 64 float16
ORDERS = ("program", "adverse")


@cache
def artifact(step: int, m: int, n: int, k: int):
    return build(getattr(gemm_kernels, f"hgemm_v{step}")(m, n, k))


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    return tuple(rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))


def run(kernel, a, b, order="program", checks=False):
    """D, with NaN where nothing was written, and the Result."""
    d = np.full((len(a), len(b)), np.nan, np.float16)
    return d, sim.run(kernel, [a, b, d], order=order, checks=checks)


def product(a, b) -> np.ndarray:
    return (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)


def with_ptx(kernel, pattern: str, new, count: int = 0):
    """The kernel with every match of a pattern changed; there must be at least one."""
    text, found = re.subn(pattern, new, kernel.ptx, count=count)
    assert found
    return replace(kernel, ptx=text)


def with_map(kernel, buffer: str, **fields):
    params = [replace(p, **fields) if p.buffer == buffer else p for p in kernel.params]
    assert params != list(kernel.params)
    return replace(kernel, params=tuple(params))


def stored(tile: np.ndarray, swizzle: int) -> np.ndarray:
    """Bytes of shared memory that hold a (128, 64) tile, from its first address on (PTX ISA 5.5.7)."""
    memory, place = np.zeros(TILE * ROW, np.uint8), np.arange(TILE * ROW)
    memory[_swizzled(place, swizzle)] = np.ascontiguousarray(tile).view(np.uint8).ravel()
    return memory


def seen(memory: np.ndarray, stride: int, swizzle: int) -> np.ndarray:
    """The (128, 64) matrix that K-major descriptors read from those bytes (PTX ISA 9.7.16.4)."""
    row, byte = np.arange(TILE)[:, None], np.arange(ROW)[None, :]
    place = row // 8 * stride + row % 8 * swizzle + byte
    return memory[_swizzled(place, swizzle)].view(np.float16)


def _swizzled(place: np.ndarray, swizzle: int) -> np.ndarray:
    """Bits 4.. of an address XORed with bits 7..: three of them for 128 B, two for 64 B, one for 32 B."""
    return place ^ ((place >> 7 & max(0, swizzle // 16 - 1)) << 4)


# ---- inputs ----


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("step, size", [(1, (128, 128, 64)), (3, (256, 384, 192)), (4, (256, 256, 128)),
                                        (9, (256, 256, 128))])  # fmt: skip
def test_one_element_of_an_input_reaches_one_row_or_column(step, size, order):
    a, b = operands(*size)
    kernel = artifact(step, *size)
    before, _ = run(kernel, a, b, order)
    assert np.array_equal(before, product(a, b))
    for changed, others, axis in ((a, b, 0), (b, a, 1)):
        at = len(changed) // 2 + 5, size[2] - 3
        value = changed[at]
        changed[at] = value + 8
        after, _ = run(kernel, a, b, order)
        changed[at] = value
        difference = (after - before).astype(np.float32)
        expected = np.zeros_like(difference)
        index = (at[0], slice(None)) if axis == 0 else (slice(None), at[0])
        expected[index] = 8 * others[:, at[1]].astype(np.float32)
        assert np.array_equal(difference, expected)


# ---- tensor maps ----


def test_stride_of_a_tensor_map():
    """Twice the stride: row i of the map is row 2 i of A; rows past its end are zero."""
    kernel = artifact(4, 256, 256, 128)
    a, b = operands(256, 256, 128)
    changed = with_map(kernel, "A", strides=(512,), dims=(128, 128))
    rows = np.concatenate([a[::2], np.zeros_like(a[::2])])
    assert np.array_equal(run(changed, a, b)[0], product(rows, b))


def test_swizzle_of_a_tensor_map():
    """Written without a swizzle, read with 128 B: chunks of 8 elements change places in 7 of 8 rows."""
    kernel = artifact(4, 256, 256, 128)
    a, b = operands(256, 256, 128)
    tiles = [[a[i : i + TILE, k : k + 64] for k in (0, 64)] for i in (0, TILE)]
    other = np.block([[seen(stored(tile, 0), 1024, 128) for tile in row] for row in tiles])
    d = run(with_map(kernel, "A", swizzle=0), a, b)[0]
    assert np.array_equal(d, product(other, b))
    changed = (d != product(a, b)).any(axis=1)
    assert not changed[::8].any() and changed.sum() > 200


def test_origin_of_a_tensor_map():
    """A base 64 elements later: the map's columns wrap into the next rows of A."""
    kernel = artifact(4, 256, 256, 128)
    a, b = operands(256, 256, 128)
    moved = np.concatenate([a.ravel()[64:], np.zeros(64, np.float16)]).reshape(a.shape)
    changed = with_map(kernel, "A", byte_offset=128, dims=(128, 255))
    moved[255] = 0
    assert np.array_equal(run(changed, a, b)[0], product(moved, b))


# ---- matrix and instruction descriptors ----

DESCRIPTOR = r"4611756662049472512"  # K-major, stride 1024 B, 128 B swizzle
SIZE = (128, 128, 64)


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("field, stride, swizzle", [
    ((32 - 64) << 32, 512, 128),  # stride dimension byte offset, in units of 16 B
    ((48 - 64) << 32, 768, 128),
    ((4 - 2) << 61, 1024, 64),  # swizzle mode
    ((6 - 2) << 61, 1024, 32),
])  # fmt: skip
def test_a_field_of_the_matrix_descriptors(step, field, stride, swizzle):
    a, b = operands(*SIZE)
    kernel = with_ptx(artifact(step, *SIZE), DESCRIPTOR, str(int(DESCRIPTOR) + field))
    expected = product(*(seen(stored(tile, 128), stride, swizzle) for tile in (a, b)))
    assert np.array_equal(run(kernel, a, b)[0], expected)


@pytest.mark.parametrize("bit, change", [
    (13, lambda a, b: product(-a, b)),  # negate A
    (14, lambda a, b: product(a, -b)),  # negate B
    (7, lambda a, b: product(bfloat16(a), b)),  # A is bfloat16
    (10, lambda a, b: product(a, bfloat16(b))),
])  # fmt: skip
def test_a_field_of_the_instruction_descriptor(bit, change):
    a, b = operands(*SIZE)
    if bit in (7, 10):  # small as float16, so that they stay finite as bfloat16
        a, b = np.abs(a), np.abs(b)
    word = 136314896
    kernel = with_ptx(artifact(1, *SIZE), str(word), str(word ^ 1 << bit))
    assert np.array_equal(run(kernel, a, b)[0], change(a, b))


def bfloat16(array: np.ndarray) -> np.ndarray:
    """The same bits, as float32 values."""
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


# ---- shared and tensor memory ----


@pytest.mark.parametrize("name, row, column", [("Asmem", 0, 0), ("Asmem", 77, 41), ("Bsmem", 126, 63)])
def test_one_byte_of_shared_memory(name, row, column):
    """The high byte of one staged element becomes that of 1024: one row (column) of D changes."""
    a, b = operands(*SIZE)
    kernel = artifact(1, *SIZE)
    base = next(n.offset for n in kernel.names if n.name == name)
    byte = base + int(_swizzled(np.array(row * ROW + 2 * column), 128)) + 1
    poke = f"""bar.sync 0; {{ .reg .pred %one; .reg .b32 %poke<2>; mov.u32 %poke0, %tid.x;
    setp.eq.u32 %one, %poke0, 0; mov.u32 %poke0, pool_buf_ptr; mov.u32 %poke1, 0x64;
    @%one st.shared.u8 [%poke0+{byte}], %poke1; }} fence.proxy.async.shared::cta; bar.sync 0;"""
    changed = with_ptx(kernel, r"bar\.sync\s+0;(?=\s+@%p\d+ bra)", poke, 1)  # all of A and B is staged
    matrix = a if name == "Asmem" else b
    raw = matrix.view(np.uint16)
    raw[row, column] = raw[row, column] & 0xFF | 0x6400
    assert np.array_equal(run(changed, a, b)[0], product(a, b))


@pytest.mark.parametrize("shift", [1, 7])
def test_a_column_of_tensor_memory(shift):
    """Read `shift` columns further on: D moves to the left."""
    a, b = operands(*SIZE)
    pattern = r"(tcgen05\.ld\.[^;]*), \[(%r\d+)\];"
    kernel = with_ptx(artifact(1, *SIZE), pattern, rf"add.u32 \2, \2, {shift}; \1, [\2];")
    d, expected = run(kernel, a, b)[0], product(a, b)
    assert np.array_equal(d[:, :-shift], expected[:, shift:]) and np.isnan(d[:, -shift:]).all()


# ---- the grid ----


@pytest.mark.parametrize("step, size, ctas", [(3, (384, 256, 64), 6), (4, (256, 384, 64), 6),
                                              (9, (512, 256, 64), 148)])  # fmt: skip
def test_every_cta_runs(step, size, ctas):
    a, b = operands(*size)
    d, result = run(artifact(step, *size), a, b)
    assert result.stats["ctas"] == result.stats["grid_ctas"] == ctas
    assert np.array_equal(d, product(a, b))


def test_a_smaller_grid_leaves_exactly_its_tiles():
    kernel = artifact(3, 384, 256, 64)
    a, b = operands(384, 256, 64)
    fewer = replace(kernel, grid=(1, *kernel.grid[1:]))
    d, result = run(fewer, a, b)
    written = ~np.isnan(d)
    tiles = written.reshape(3, TILE, 2, TILE).transpose(0, 2, 1, 3).reshape(6, -1)
    assert (tiles.all(1) | ~tiles.any(1)).all() and tiles.all(1).sum() == result.stats["ctas"]
    assert np.array_equal(d[written], product(a, b)[written])


# ---- several launches ----


def test_two_kernels_in_two_threads_repeated():
    """Results, findings and counts are those of each kernel alone."""
    work = [
        (artifact(2, 128, 128, 128), operands(128, 128, 128)),
        (artifact(7, 256, 256, 128), operands(256, 256, 128)),
    ]

    def once(item, order):
        d, result = run(item[0], *item[1], order, checks=True)
        stats = {k: v for k, v in result.stats.items() if k != "seconds"}
        return d.tobytes(), [str(f) for f in result.findings], stats

    alone = {order: [once(item, order) for item in work] for order in ORDERS}
    with ThreadPoolExecutor(2) as pool:
        for order in ORDERS * 2:
            assert list(pool.map(once, work, [order] * 2)) == alone[order]
