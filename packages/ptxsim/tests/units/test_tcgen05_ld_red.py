"""tcgen05.ld.red against numpy: the minimum and maximum of each thread's registers, including NaNs."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.units.tcgen05_ld_red import reduced

NAN = np.float32("nan")


@pytest.mark.parametrize("op, plain, strict", [("min", np.nanmin, np.min), ("max", np.nanmax, np.max)])
def test_floats(op, plain, strict):
    values = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
    values[3, 5], values[:, 9] = NAN, NAN
    bits = values.view(np.uint32)
    for modifiers, function, source in (
        ((), plain, values),
        (("NaN",), strict, values),
        (("abs",), plain, np.abs(values)),
    ):
        found = reduced(bits, ("ld", "red", op, *modifiers, "f32")).view(np.float32)
        with np.errstate(invalid="ignore"):
            want = np.array([function(source[:, i]) if i != 9 else NAN for i in range(32)], np.float32)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_words(kind):
    values = np.random.default_rng(1).integers(0, 1 << 32, (4, 32), np.uint64).astype(np.uint32)
    typed = values.view(np.uint32 if kind == "u32" else np.int32)
    np.testing.assert_array_equal(reduced(values, ("ld", "red", "max", kind)), typed.max(0).view(np.uint32))
    np.testing.assert_array_equal(reduced(values, ("ld", "red", "min", kind)), typed.min(0).view(np.uint32))


COPIED = """
.version 9.0
.target sm_103a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<12>; .reg .b64 %d<3>;
    .shared .align 4 .b32 where;
    mov.u32 %r0, where;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
    ld.shared.b32 %r1, [%r0];
    mov.u32 %r2, %tid.x; add.u32 %r3, %r2, 7;
    tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r3, %r2};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r4, %r5}, %r6, [%r1];
    mov.b32 %r7, %r5; mov.b32 %r8, %r6;
    tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %d0, [out];
    mad.wide.u32 %d0, %r2, 8, %d0;
    st.global.v2.b32 [%d0], {%r7, %r8};
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
    ret;
}
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_copies_before_the_wait_get_what_arrives_at_it(order):
    out = np.zeros((32, 2), np.uint32)
    ptxsim.load(COPIED).launch("k", grid=1, block=32, args=[out], order=order)
    np.testing.assert_array_equal(out, np.stack([np.arange(32), np.arange(7, 39)], axis=1))
