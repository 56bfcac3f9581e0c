"""16-bit operands out of shared memory are what numpy and ml_dtypes make of the same bytes."""

import ml_dtypes
import numpy as np
import pytest

from ptxsim.jit.simd_matrix import gather_halves

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
