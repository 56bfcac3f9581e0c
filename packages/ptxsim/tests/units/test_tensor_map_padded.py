"""Tensor maps of 4- and 6-bit elements that TMA pads: .b4x16_p64, .b6x16_p32, .b6p2x16 (PTX ISA 5.5.1.1)."""

from __future__ import annotations

import numpy as np
import pytest
from tma_kernels import load_box, store_box, swizzled

from ptxsim import TensorMap
from ptxsim.isa.number_formats import unpack_bits

ROWS = 4  # of a box; each has 128 elements, which fill 128 bytes of shared memory


def tensor_map(padded: int, swizzle=0, rows: int = 8) -> TensorMap:
    """A matrix of 256 elements in each row."""
    data = np.random.default_rng(padded).integers(0, 256, (rows, 16 * padded), dtype=np.uint8)
    return TensorMap(data, (8 * padded, ROWS), swizzle, padded=padded)


def chunks(box: np.ndarray, swizzle: int) -> np.ndarray:
    """uint8 (rows, 8, 16): the 16-byte pieces of each row, in the order of the elements."""
    return box.reshape(-1, 16)[swizzled(16 * np.arange(8 * ROWS), swizzle) // 16].reshape(ROWS, 8, 16)


@pytest.mark.parametrize("padded", [8, 12])
@pytest.mark.parametrize("swizzle", [0, 128])
def test_a_load_spreads_sixteen_elements_over_sixteen_bytes(padded, swizzle):
    tmap = tensor_map(padded, swizzle)
    box, result = load_box(tmap, (128, 2), 128 * ROWS, checks=True)  # its barrier expects bytes of memory
    assert not [f for f in result.findings if f.severity == "error"], result.findings
    assert np.array_equal(chunks(box, swizzle)[..., :padded].reshape(ROWS, -1), tmap.array[2:6, 8 * padded :])


def test_rows_past_the_end_are_zero():
    tmap = tensor_map(8)
    box, _ = load_box(tmap, (0, 6), 128 * ROWS)
    assert np.array_equal(chunks(box, 0)[:2, :, :8].reshape(2, -1), tmap.array[6:, :64])
    assert not chunks(box, 0)[2:].any()


def test_a_store_packs_the_low_six_bits_of_each_byte():
    tmap, data = tensor_map(12, 128), np.random.default_rng(5).integers(0, 256, 128 * ROWS, dtype=np.uint8)
    kept = tmap.array.copy()
    result = store_box(tmap, (128, 6), data, checks=True)
    assert not [f for f in result.findings if f.severity == "error"], result.findings
    assert np.array_equal(unpack_bits(tmap.array[6:, 96:], 6), chunks(data, 128)[:2].reshape(2, -1) & 63)
    assert np.array_equal(tmap.array[:6], kept[:6]) and np.array_equal(tmap.array[6:, :96], kept[6:, :96])


@pytest.mark.parametrize("padded, column, kind", [(12, 64, "misaligned"), (8, 0, "descriptor")])
def test_what_a_store_may_not_do(padded, column, kind):
    """Start between multiples of 128, or take padded 4-bit elements (9.7.9.27.1.1)."""
    result = store_box(tensor_map(padded), (column, 0), np.zeros(128 * ROWS, np.uint8))
    assert [f.kind for f in result.findings] == [kind]


@pytest.mark.parametrize("change", [{"box": (32, 4)}, {"swizzle": 64}, {"fill": "nan"}, {"byte_offset": 16}])
def test_maps_that_are_refused(change):
    usual = {"array": np.zeros((8, 128), np.uint8), "box": (64, 4), "dims": (64, 4), "padded": 8}
    TensorMap(**usual)
    with pytest.raises(ValueError, match="padded"):
        TensorMap(**usual | change)
