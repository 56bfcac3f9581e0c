"""tile::gather4 and tile::scatter4 against numpy (PTX ISA 5.5.3.4): any four rows of a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from tma_kernels import swizzled

import ptxsim

TEXT = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u64 raw,
    .param .u32 x, .param .u32 a, .param .u32 b, .param .u32 c, .param .u32 d)
{{
    .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .pred %p<4>;
    .shared .align 1024 .b8 tile[{size}];
    .shared .align 8 .b64 bar;
    mov.b64 %d1, from; mov.b64 %d2, to;
    cvta.param.u64 %d1, %d1; cvta.param.u64 %d2, %d2;
    ld.param.u64 %d3, [raw];
    ld.param.u32 %r1, [x]; ld.param.u32 %r2, [a]; ld.param.u32 %r3, [b];
    ld.param.u32 %r4, [c]; ld.param.u32 %r5, [d];
    mov.u32 %r6, tile; mov.u32 %r7, bar;
    mbarrier.init.shared::cta.b64 [%r7], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], {size};
    cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
        [%r6], [%d1, {{%r1, %r2, %r3, %r4, %r5}}], [%r7];
AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r7], 0;
    @!%p1 bra AGAIN;
    mov.u32 %r8, 0;
COPY:
    add.u32 %r9, %r6, %r8;
    ld.shared.u32 %r10, [%r9];
    cvt.u64.u32 %d4, %r8;
    add.s64 %d5, %d3, %d4;
    st.global.u32 [%d5], %r10;
    add.u32 %r8, %r8, 4;
    setp.lt.u32 %p2, %r8, {size};
    @%p2 bra COPY;
    cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
        [%d2, {{%r1, %r5, %r4, %r3, %r2}}], [%r6];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"""


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("rows", [(3, 0, 17, 9), (5, 5, 19, 2), (1, 40, -1, 6)])
def test_rows(swizzle, order, rows):
    width = (swizzle or 64) // 2
    source = np.random.default_rng(0).integers(1, 1000, (20, 128)).astype(np.uint16)
    target, raw = np.zeros_like(source), np.zeros(4 * width, np.uint16)
    maps = [ptxsim.TensorMap(a, box=(width, 1), swizzle=swizzle) for a in (source, target)]
    result = ptxsim.load(TEXT.format(size=raw.nbytes)).launch(
        "k", args=[*maps, raw, 16, *[r & 0xFFFF_FFFF for r in rows]], order=order
    )
    got = np.array([source[r, 16 : 16 + width] if 0 <= r < 20 else np.zeros(width, np.uint16) for r in rows])
    linear = np.arange(raw.nbytes).reshape(4, -1)
    stored = raw.view(np.uint8)[swizzled(linear, swizzle)].view(np.uint16)
    np.testing.assert_array_equal(stored, got)
    want = np.zeros_like(target)
    for row, values in zip(rows[::-1], got, strict=True):
        if 0 <= row < 20:
            want[row, 16 : 16 + width] = values
    if len(set(rows)) == 4:  # two stores to one row have no order
        np.testing.assert_array_equal(target, want)
        assert result.verdict == "clean"


@pytest.mark.parametrize(("at", "verdict"), [(0, "clean"), (512, "clean"), (1024, "clean"), (256, "review")])
def test_four_rows_may_start_in_the_middle_of_a_pattern(at, verdict):
    """Of 128 bytes each: two copies fill the eight rows of a pattern."""
    source = np.random.default_rng(0).integers(1, 1000, (20, 64)).astype(np.uint16)
    target, raw = np.zeros_like(source), np.zeros(256, np.uint16)
    maps = [ptxsim.TensorMap(a, box=(64, 1), swizzle=128) for a in (source, target)]
    text = TEXT.replace("b8 tile[{size}]", "b8 tile[2048]").replace("u32 %r6, tile;", f"u32 %r6, tile+{at};")
    result = ptxsim.load(text.format(size=512)).launch("k", args=[*maps, raw, 0, 3, 0, 17, 9])
    assert result.verdict == verdict, result.findings
    stored = raw.view(np.uint8)[swizzled(np.arange(at, at + 512), 128) - at]
    np.testing.assert_array_equal(stored.view(np.uint16).reshape(4, 64), source[[3, 0, 17, 9]])


def test_a_box_of_more_rows_is_refused():
    source = np.zeros((20, 128), np.uint16)
    wide = ptxsim.TensorMap(source, box=(32, 4))
    result = ptxsim.load(TEXT.format(size=256)).launch(
        "k", args=[wide, wide, np.zeros(128, np.uint16), 0, 0, 1, 2, 3], max_instructions=10_000
    )
    assert any("four rows of a tensor map" in f.message for f in result.findings)
