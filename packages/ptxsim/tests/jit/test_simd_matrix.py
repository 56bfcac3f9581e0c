"""Tiles move as in numpy and ml_dtypes: operands out of shared memory, results to cells."""

import ml_dtypes
import numpy as np
import pytest

from ptxsim.jit.simd_matrix import accumulate, gather_halves

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("kind", DTYPES)
def test_every_pattern(kind):
    window = np.arange(1 << 16, dtype=np.uint16).view(np.uint8)
    numbers = np.random.default_rng(0).permutation(1 << 13).reshape(256, 32)
    values = gather_halves(window, numbers, kind)
    assert values.shape == (256, 256) and values.dtype == np.float32
    with np.errstate(invalid="ignore"):
        wanted = window.view(DTYPES[kind]).reshape(-1, 8)[numbers].reshape(256, 256).astype(np.float32)
    assert np.array_equal(values.view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("add", [True, False])
@pytest.mark.parametrize("lane, column, row, first, rows, columns", [(0, 0, 0, 0, 8, 16), (3, 5, 2, 1, 4, 7)])
def test_results_go_to_their_cells_with_nans_as_chips_write_them(
    add, lane, column, row, first, rows, columns
):
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38, 1.0], np.float32)
    special.view(np.uint32)[0] = 0x7FC0_1234  # a NaN with a payload
    cells, product = np.resize(special, (16, 32)), np.resize(special[::-1].repeat(3), (8, 16))
    wanted, result = cells.copy(), product[row : row + rows, first : first + columns]
    target = wanted[lane : lane + rows, column : column + columns]
    with np.errstate(invalid="ignore", over="ignore"):
        result = result + target if add else result
    target.view(np.uint32)[:] = np.where(np.isnan(result), 0x7FFF_FFFF, result.view(np.uint32))
    accumulate(cells, product, (lane, column), (row, first), (rows, columns), add)
    assert np.array_equal(cells.view(np.uint32), wanted.view(np.uint32))
