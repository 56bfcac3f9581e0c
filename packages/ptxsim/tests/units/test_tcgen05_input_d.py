"""enable-input-d of tcgen05.mma as a constant (4.5.3), and scale-input-d (9.7.16.9.1)."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_programs import descriptor, run, serious
from test_tcgen05_ws import K, instruction, tile_of

import ptxsim

M, N = 128, 64
RNG = np.random.default_rng(7)
A = RNG.integers(-4, 5, (M, K)).astype(np.float16)
B = RNG.integers(-4, 5, (N, K)).astype(np.float16)
D = RNG.integers(-8, 9, (M, N)).astype(np.float32)
PRODUCT = A.astype(np.float32) @ B.astype(np.float32).T
OPERANDS = "[%r8], %d20, %d21, %r14"


def after(*ends: str, half: bool = False, form: str = "") -> np.ndarray:
    """D after MMAs that end in these operands, each on the D of the one before."""
    bits = instruction(M, N) ^ (1 << 4) * half
    mmas = "".join(f"tcgen05.mma{form}.cta_group::1.kind::f16 {OPERANDS}, {end};\n" for end in ends)
    work = f"""
    mov.u64 %d20, {descriptor(0, M * 16, 128)}; mov.u64 %d21, {descriptor(M * 32, N * 16, 128)};
    mov.u32 %r14, {bits}; mov.u32 %r15, 0; mov.u32 %r16, -1;
    {mmas}"""
    cells = D.astype(np.float16).view(np.uint16) if half else D.view(np.uint32)
    out, result = run(work, np.concatenate([tile_of(A), tile_of(B)]), cells[None])
    assert not serious(result)
    return out[0].astype(np.uint16).view(np.float16) if half else out[0].view(np.float32)


@pytest.mark.parametrize("form", ["", ".ws"])
@pytest.mark.parametrize("constant, adds", [("0", 0), ("1", 1), ("-1", 1), ("2", 1), ("!1", 0)])
def test_a_constant_says_whether_d_is_an_input(constant, adds, form):
    np.testing.assert_array_equal(after(constant, form=form), PRODUCT + adds * D)


@pytest.mark.parametrize("scale", [0, 1, 3, 15])
@pytest.mark.parametrize("half", [False, True])
def test_the_input_is_divided_by_a_power_of_two(scale, half):
    want = PRODUCT + D * np.float32(0.5**scale)
    np.testing.assert_array_equal(
        after(f"%p4, {scale}", half=half), want.astype(np.float16) if half else want
    )
    assert np.array_equal(after(f"!%p4, {scale}", half=half), PRODUCT)


def test_each_of_several_scales_what_was_there():
    want = ((D / 4 + PRODUCT) / 2 + PRODUCT) / 2 + 2 * PRODUCT
    np.testing.assert_array_equal(after("1, 2", "%p4, 1", "1, 1", "%p4"), want)


def test_lanes_that_are_disabled_keep_their_d():
    found = after("{%r15, %r16, %r15, %r15}, %p4, 2")
    want = PRODUCT + D / 4
    want[32:64] = D[32:64]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    "kind, end, said",
    [
        ("f16", "%p4, 16", "constant from 0 to 15"),
        ("f16", "%p4, %r15", "constant from 0 to 15"),
        ("i8", "%p4, 3", "alone"),
        ("f8f6f4", "1, 3", "alone"),
    ],
)
def test_other_scales_are_refused(kind, end, said):
    with pytest.raises(ptxsim.PtxError, match=said):
        run(f"tcgen05.mma.cta_group::1.kind::{kind} {OPERANDS}, {end};", np.zeros(4096, np.uint8))
