"""A sum in tensor memory that is read before the last MMA that its reader has let in is done."""

from __future__ import annotations

from truth import ORDERS, Rule, lines, run_rule, wait

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor

DESC = encode_matrix_descriptor(MatrixDescriptor(1024, 128, 256, 0))
LAST = wait(1, at=8)
ROUNDS = lines(  # warp 4 lets thread 0 multiply, twice, and reads the sum after the second time
    "@%lead mbarrier.init.shared::cta.b64 [%bar], 32; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;",
    "@%w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar+64], 32; mov.u32 %x1, 0;",
    "CLEAR: add.u32 %x2, %mine, %x1; st.shared.u32 [%x2], 0; add.u32 %x1, %x1, 640;",
    "setp.lt.u32 %q, %x1, 4096; @%q bra CLEAR; fence.proxy.async.shared::cta; bar.sync 0;",
    "ld.shared.u32 %x8, [%bar+64]; mov.u32 %x1, 0; @%w4 bra READS; @!%lead bra END;",
    f"mov.b64 %y8, {DESC}; mov.u32 %x9, {1 << 4 | 2 << 17 | 8 << 24};",
    "MULTIPLIES:",
    wait("%x1"),
    "tcgen05.fence::after_thread_sync; setp.ne.u32 %p, %x1, 0;",
    "tcgen05.mma.cta_group::1.kind::f16 [%x8], %y8, %y8, %x9, %p;",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar+8];",
    "add.u32 %x1, %x1, 1; setp.lt.u32 %p, %x1, 2; @%p bra MULTIPLIES; bra END;",
    "READS: mbarrier.arrive.shared::cta.b64 _, [%bar];",
    wait(0, at=8),
    "mbarrier.arrive.shared::cta.b64 _, [%bar];",
    LAST,
    "tcgen05.fence::after_thread_sync;",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8]; tcgen05.wait::ld.sync.aligned;",
    "st.global.u32 [%myout], %r0; tcgen05.fence::before_thread_sync;",
    "END: bar.sync 0; @%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x8, 32;",
)


def test_a_sum_that_is_not_waited_for_is_not_handed_back_early():
    """Its reader has let the MMAs in as often as before, but waits for them once less."""
    rule = Rule("sum", ROUNDS, (f"\n{LAST}\n", "\n\n"), threads=160)
    for order in ORDERS:
        assert not [f for f in run_rule(rule, ROUNDS, order).findings if f.severity == "error"]
    races = [f for f in run_rule(rule, rule.broken, "program").findings if f.kind == "race"]
    causes = {f.evidence["cause"] for f in races if "tcgen05.ld" in f.message}
    assert causes <= {"answers-more", "waits-less"} and causes
