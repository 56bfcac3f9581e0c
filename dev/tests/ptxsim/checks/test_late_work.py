"""Work that completes late keeps the place of its issue, and leaves alone where its warp waits by then."""

import pytest

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
