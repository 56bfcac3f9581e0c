"""A lane hands a place back for its warp: an instruction that all lanes execute together keeps the order of
the reads before it on chips that we know, so the lack of __syncwarp() is a review.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {{
.reg .b64 %in, %out, %wide; .reg .b32 %t, %x, %at, %full, %empty; .reg .pred %first, %other, %p;
.reg .b32 %a<4>; .reg .f32 %f<4>;
.shared .align 16 .b32 data[32]; .shared .align 8 .b64 bars[2];
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; and.b32 %x, %t, 31;
setp.eq.u32 %first, %x, 0; setp.ge.u32 %other, %t, 32; mov.u32 %full, bars; add.u32 %empty, %full, 8;
mul.wide.u32 %wide, %x, 4; add.u64 %out, %out, %wide; mov.u32 %at, data; mad.lo.u32 %at, %x, 4, %at;
mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;
mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [%full], 1; @%p mbarrier.init.shared.b64 [%empty], 1;
@%p fence.mbarrier_init.release.cluster; bar.sync 0;
@!%other bra READER;
@!%first bra END;
mbarrier.arrive.expect_tx.shared.b64 _, [%full], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%in], 128, [%full];
FREE: mbarrier.try_wait.parity.shared.b64 %p, [%empty], 0; @!%p bra FREE;
mbarrier.arrive.expect_tx.shared.b64 _, [%full], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%in+128], 128, [%full];
bra END;
READER:
W0: mbarrier.try_wait.parity.shared.b64 %p, [%full], 0; @!%p bra W0;
{reader}
W1: mbarrier.try_wait.parity.shared.b64 %p, [%full], 1; @!%p bra W1;
END: ret; }}
"""
READ = "ld.shared.u32 %x, [%at]; st.global.u32 [%out], %x;"
MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, "
    "{%a0, %a1}, {%f0, %f1, %f2, %f3};"
)
ARRIVE = "@%first mbarrier.arrive.shared.b64 _, [%empty];"


@pytest.mark.parametrize(
    "reader, told",
    [
        (READ + "bar.warp.sync -1;" + ARRIVE, None),
        (READ + "TOGETHER" + ARRIVE, ("review", "handed-for-warp")),
        (READ + ARRIVE, ("error", "arrives-alone")),  # lanes may still be before their read
        (READ + ARRIVE + "TOGETHER", ("error", "arrives-alone")),
        ("TOGETHER" + READ + ARRIVE, ("error", "arrives-alone")),
        (READ + "TOGETHER" + ARRIVE + READ, ("error", "early")),
    ],
)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_lane_that_arrives_for_its_warp(reader, told, order):
    data, out = np.arange(64, dtype=np.uint32), np.zeros(32, np.uint32)
    text = KERNEL.format(reader=reader.replace("TOGETHER", MMA))
    result = ptxsim.load(text).launch("k", block=64, args=[data, out], order=order)
    found = {(f.severity, f.evidence.get("cause")) for f in result.findings}
    assert found == ({told} if told else set()), list(map(str, result.findings))
