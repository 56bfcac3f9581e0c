"""A load into what a tensor core still reads, as where Q and a stage of K share memory."""

from __future__ import annotations

import pytest
from truth import Rule, lines, run_rule, wait

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor

DESC = encode_matrix_descriptor(MatrixDescriptor(1024, 128, 128, 0))
FETCH = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
USED = wait(0, at=8)  # by the thread that loads again
TEXT = lines(  # thread 0 loads Q and copies it to tensor memory; thread 32 then loads K to the same place
    *(f"@%lead mbarrier.init.shared::cta.b64 [%bar+{at}], 1;" for at in (0, 8, 16)),
    "@%lead fence.mbarrier_init.release.cluster;",
    "@%w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar+64], 32; bar.sync 0;",
    "ld.shared.u32 %x8, [%bar+64]; setp.eq.u32 %q, %t, 32; @%q bra AGAIN; @!%lead bra END;",
    f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 2048; {FETCH} [%sm], [%in], 2048, [%bar];",
    wait(0),
    f"tcgen05.fence::after_thread_sync; mov.b64 %y8, {DESC};",
    "tcgen05.cp.cta_group::1.128x128b [%x8], %y8;",
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar+8];",
    wait(0, at=8) + " // before the end",
    "bra END;",
    "AGAIN: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+16], 2048;",
    USED,
    f"{FETCH} [%sm], [%in], 2048, [%bar+16]; {wait(0, at=16)}",
    "END: bar.sync 0; tcgen05.fence::after_thread_sync;",
    "@%w0 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8]; @%w0 tcgen05.wait::ld.sync.aligned;",
    "@%w0 st.global.u32 [%myout], %r0;",
    "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x8, 32;",
)


@pytest.mark.parametrize("order", ["program", 7])
def test_the_later_load_should_have_waited(order):
    rule = Rule("overtaken", TEXT, (f"\n{USED}\n", "\n"))
    assert not [f for f in run_rule(rule, TEXT, order).findings if f.severity == "error"]
    races = [f for f in run_rule(rule, rule.broken, order).findings if f.evidence.get("cause") == "overtaken"]
    assert len(races) == 1
    assert "this load did not wait for buffer + 8200 B: the tcgen05.cp still reads" in races[0].message
    assert "2048, [%bar+16]" in races[0].where["ptx"]
