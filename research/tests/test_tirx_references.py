"""The references of the TIRx library that are plain numpy, compared with its own kernels on ptxsim."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import ptxsim
from research.store import load

HERE = Path(__file__).resolve().parents[1] / "tirx_kernels"
SLICE = load(HERE / "slice.tar.xz")
BF16 = ml_dtypes.bfloat16


def states(positions: int, heads: int = 32, dim: int = 128):
    """(v_a, s_a, v_b, s_b)"""
    rng = np.random.default_rng(0)
    v = rng.normal(size=(2, positions, heads, dim)).astype(BF16)
    s = rng.normal(size=(2, positions, heads)).astype(np.float32)
    return v[0], s[0], v[1], s[1]


def test_merge_state_is_within_what_rounding_leaves_open(tool):
    v_a, s_a, v_b, s_b = given = states(32)
    v, s = np.zeros_like(v_a), np.zeros_like(s_a)
    module = ptxsim.load(SLICE["merge_state.ptx"].decode())
    result = module.launch("merge_state_kernel", grid=32, block=512, args=[s_a, s_b, s, v_a, v_b, v])
    assert result.verdict == "clean"
    assert tool("exact").wrong_merged(given, v, s, "bfloat16") == (0, 0)


def merged_in_float32(v_a, s_a, v_b, s_b):
    """Merged in another order than the kernel's: through the logarithm of both sums."""
    total = np.logaddexp2(s_a, s_b)
    a, b = (
        v.astype(np.float32) * np.exp2(s - total)[..., None].astype(np.float32)
        for v, s in ((v_a, s_a), (v_b, s_b))
    )
    return (a + b).astype(BF16), total


def test_another_order_of_rounding_is_right_too_and_a_step_more_is_wrong(tool):
    exact, given = tool("exact"), states(32)
    v, s = merged_in_float32(*given)
    assert exact.wrong_merged(given, v, s, "bfloat16") == (0, 0)
    moved = (v.view(np.uint16) + 1).view(BF16)
    assert exact.wrong_merged(given, moved, s, "bfloat16")[0] > 0.99 * v.size
    assert exact.wrong_merged(given, v, s * np.float32(np.log(2)), "bfloat16")[1] > 0.99 * s.size


def test_steps_of_the_16_bit_formats(tool):
    steps = tool("exact").steps
    for form, kind in (("float16", np.float16), ("bfloat16", BF16)):
        values = np.array([1.0, 1.75, 3.0, 1e-5, 1e-7], kind)
        assert (steps(values.astype(np.float64), form) == np.spacing(values).astype(np.float64)).all()


ROWS, SCALES = 16, {"one": 1.0, "nonunit": 3.25, "zero": 0.0, "infinite": np.inf}


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_a_norm_in_fp4_has_the_bytes_of_its_kernel(tool, scale, zeros):
    rng = np.random.default_rng(1)
    x, weight = (rng.normal(size=size).astype(np.float16) for size in ((ROWS, 64), 64))
    x = x * np.float16(not zeros)
    factors, y, factor = np.zeros((ROWS, 4), np.uint8), np.zeros((ROWS, 32), np.uint8), np.float32([scale])
    module = ptxsim.load(SLICE["flashinfer_rmsnorm_fp4quant.ptx"].decode())
    args = [factor, factors, weight, x, y, ROWS, np.float32(1e-6)]
    module.launch("flashinfer_rmsnorm_fp4quant_kernel", grid=1, block=128, shared_bytes=8192, args=args)
    inverse = 1 / np.sqrt(np.square(x.astype(np.float64)).mean(-1, keepdims=True) + 1e-6)
    rows = (x * weight).astype(np.float32) * inverse.astype(np.float32)
    packed, known = tool("fp4_norms").blocks(rows, scale, 16)
    assert (packed == y).all() and (known == factors).all()


def test_the_mean_square_is_that_of_the_sums_before_they_are_rounded(tool):
    x, residual = np.full((1, 64), 1.0, np.float32), np.full((1, 64), 2.0**-9, np.float32)
    kept, normal = tool("fp4_norms").added_and_normalised(
        x, residual, np.ones(64, np.float32), 0.0, lambda sums: sums.astype(BF16).astype(np.float32)
    )
    assert (kept == 1).all()
    assert (normal == np.float32(1) / np.float32(1 + 2.0**-9)).all()


def test_a_product_may_be_rounded_in_any_order_and_no_further(tool):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 64, 512)).astype(BF16).astype(np.float32)
    wrong = tool("exact").wrong_products
    backwards = (a[:, ::-1] @ b[:, ::-1].T).astype(BF16)
    assert not wrong(a, b, (a @ b.T).astype(BF16), "bfloat16") and not wrong(a, b, backwards, "bfloat16")
    backwards[3, 5] *= BF16(1 + 2**-7)
    assert wrong(a, b, backwards, "bfloat16") == 1
