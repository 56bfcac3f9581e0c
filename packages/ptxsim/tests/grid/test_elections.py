"""What goes wrong only if elect.sync takes another lane than the lowest is a review, with the chip's data."""

import numpy as np
import pytest

import ptxsim

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.reg .b64 %in, %out, %o; .reg .b32 %t, %b, %x; .reg .pred %e, %zero, %both, %p;
.shared .align 16 .b8 s[128]; .shared .align 8 .b64 bar[1];
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x; mov.u32 %b, bar; mul.wide.u32 %o, %t, 4; add.u64 %out, %out, %o;
setp.eq.u32 %zero, %t, 0; elect.sync _|%e, -1; and.pred %both, %e, %zero;
@%e mbarrier.init.shared.b64 [%b], 1; @%e fence.mbarrier_init.release.cluster;
bar.sync 0;
{}
ret; }
"""
LOAD = """@%LEADER mbarrier.arrive.expect_tx.shared.b64 _, [%b], BYTES;
@%e cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%in], 128, [%b];
W: mbarrier.try_wait.parity.shared.b64 %p, [%b], 0; @!%p bra W;
ld.shared.f32 %x, [s]; st.global.f32 [%out], %x;"""
SHARED = "@%e st.shared.f32 [s], 2.0; SYNC @%zero ld.shared.f32 %x, [s]; st.global.f32 [%out], %x;"
STORE = "@%e bra ALL; @!%zero bra ALL; ret; ALL: mov.f32 %x, 1.0; st.global.f32 [%out], %x;"


def _run(text, order):
    arrays = np.ones(32, np.float32), np.full(32, np.nan, np.float32)
    program = ptxsim.load(KERNEL.replace("{}", text))
    return program.launch("k", block=32, args=list(arrays), order=order, arg_names=["x", "D"]), arrays[1]


@pytest.mark.parametrize(
    "text, kind",
    [
        (LOAD.replace("LEADER", "both").replace("BYTES", "128"), "deadlock"),
        (SHARED.replace("SYNC", "").replace("@%zero ld", "mov.f32 %x, 2.0; @%zero ld"), "race"),
        (STORE, "uninitialized"),
    ],
)
@pytest.mark.parametrize("order, verdict", [("program", "clean"), ("adverse", "review"), ("all", "review")])
def test_only_wrong_with_another_lane(text, kind, order, verdict):
    result, out = _run(text, order)
    assert result.verdict == verdict, result.findings
    assert not np.isnan(out).any()
    told = [f for f in result.findings if f.evidence["cause"] == "elects-lowest"]
    assert [f.kind for f in told] == [kind] * (verdict == "review")
    assert all("taking the lowest lane" in f.message for f in told)


@pytest.mark.parametrize("leader", ["e", "zero", "both"])
def test_wrong_with_every_lane_stays_an_error(leader):
    result, _ = _run(LOAD.replace("LEADER", leader).replace("BYTES", "256"), "adverse")
    assert result.verdict == "error", result.findings
    causes = ["bytes-announced", "bytes", *["elects-lowest"] * (leader == "both")]
    assert [f.evidence["cause"] for f in result.findings] == causes
