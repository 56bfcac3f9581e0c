"""Tensor maps whose dimensions overlap: they may reach past their array, as long as no copy does. FlashMLA
reads the halves of a row of 64 elements as two rows of a map that counts 64 elements in each.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

TEXT = """
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 from[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
    .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p;
    .shared .align 1024 .b8 tile[128]; .shared .align 8 .b64 bar;
    mov.b64 %d1, from; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out];
    ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y]; mov.u32 %r3, tile; mov.u32 %r4, bar;
    mbarrier.init.shared::cta.b64 [%r4], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r3], [%d1, {%r1, %r2}], [%r4];
AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r4], 0; @!%p bra AGAIN;
    cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r3], 128;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("x", [0, 32])
def test_only_copies_must_stay_inside(order, x):
    source, out = np.arange(64, dtype=np.uint16), np.zeros(64, np.uint16)
    halves = ptxsim.TensorMap(source, box=(32, 2), dims=(64, 2), strides=(64,))
    result = ptxsim.load(TEXT).launch("k", args=[halves, out, x, 0], order=order)
    if x:
        assert {f.kind for f in result.findings if f.severity == "error"} >= {"out-of-bounds"}
    else:
        assert result.verdict == "clean", result.findings
        np.testing.assert_array_equal(out, source)


def test_rows_behind_the_array_are_refused():
    with pytest.raises(ValueError, match="reach 256 B of an array of 128 B"):
        ptxsim.TensorMap(np.zeros(64, np.uint16), box=(32, 2), dims=(64, 2))
