"""A thread that announces bytes at a barrier without loading is named if another one's load supplies them."""

import numpy as np
import pytest

import ptxsim

TEXT = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pin) {
.reg .b32 %t, %a, %b; .reg .b64 %in; .reg .pred %lead, %other, %p;
.shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %lead, %t, 0; setp.eq.u32 %other, %t, 32;
mov.u32 %a, buffer; mov.u32 %b, bar; ld.param.u64 %in, [pin]; cvta.to.global.u64 %in, %in;
@%lead mbarrier.init.shared.b64 [%b], 2; @%lead fence.mbarrier_init.release.cluster; bar.sync 0;
@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16;
@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%in], 16, [%b];
SECOND
W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra W;
ret;
}
"""


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        ("@%other mbarrier.arrive.shared.b64 _, [%b];", None),
        ("@%other mbarrier.arrive.expect_tx.shared.b64 _, [%b], 16;", "announced-besides"),
    ],
)
def test_who_announces_and_loads_nothing(second, cause):
    data = np.zeros(16, np.uint8)
    result = ptxsim.load(TEXT.replace("SECOND", second)).launch("k", block=64, args=[data])
    assert (result.verdict == "clean") == (cause is None), result.findings
    for finding in result.findings[:1]:
        assert finding.evidence["cause"] == cause
        assert "warp 1 lane 0 announces bytes here, too" in finding.message
