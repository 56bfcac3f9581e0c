"""Work that completes late keeps the position of its issue, and is not affected by its warp's later waits."""

import numpy as np
import pytest
from truth import START, wait

import ptxsim

PTX = """
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {
    .reg .b32 %t, %w;
    .reg .pred %p;
    .shared .align 8 .b64 bar;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared::cta.b64 [bar], 64;
    barrier.sync 0;
    shr.u32 %w, %t, 5;
    setp.ne.u32 %p, %w, 0;
    @%p bra SECOND;
    // @src 10
    bar.sync 1, 64;
SECOND:
    // @src 20
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
    // @src 30
    barrier.sync 0;
    ret;
}
"""


@pytest.mark.parametrize("order", ["program", "adverse", 1, 2])
def test_a_deadlock_names_the_line_of_the_wait_not_of_late_work(order):
    (finding,) = ptxsim.load(PTX).launch("k", block=64, order=order).findings
    assert finding.kind == "deadlock"
    assert {wait["who"]: wait["line"] for wait in finding.evidence["waits"]} == {"warp 0": 10, "warp 1": 30}


def test_a_copy_may_race_with_what_an_earlier_cluster_copied_by_more_queues():
    """Agents of another cluster have their own numbers, which this cluster may not have assigned yet."""
    stores = "\n".join(
        f"@%lead cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 16; "
        f"@%lead cp.async.bulk.commit_group; // {i}"
        for i in range(4)
    )
    text = (
        START.format(target="sm_90a", directives="")
        + f"""
mov.u32 %x1, %ctaid.x; setp.ne.u32 %p, %x1, 0;
@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;
st.shared.u32 [%mine], %t; fence.proxy.async.shared::cta; bar.sync 0;
@%p bra READ;
{stores}
@%lead cp.async.bulk.wait_group 0;
ret;
READ:
@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;
@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%out], 16, [%bar];
{wait(0)}
ret;
}}
"""
    )
    out = np.zeros(4096, np.uint32)
    result = ptxsim.load(text).launch("k", grid=2, block=64, args=[np.zeros(4096, np.uint32), out])
    assert {f.kind for f in result.findings if f.severity == "error"} == {"race"}
