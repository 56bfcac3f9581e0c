"""A wgmma of 64 rows on a smaller tile: the warps whose rows lie beyond it store nothing, so what else comes
to be there changes nothing. DeepGEMM multiplies tiles of 16 and 32 rows in this way.
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, lines, run_rule, wait

SHAPE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
# A: 8 rows of 16 bytes in 128 B, the next 8 behind them, the second half of k after 1024 B; B after 2048 B
PRODUCT = lines(
    "shr.u32 %x3, %sm, 4; cvt.u64.u32 %y2, %x3; or.b64 %y2, %y2, 0x800400000;",
    "add.u64 %y3, %y2, 128; wgmma.fence.sync.aligned;",
    f"{SHAPE} {{%f0, %f1, %f2, %f3}}, %y2, %y3, %p, 1, 1, 0, 0;",
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
)
ROWS = "setp.ge.u32 %q, %t, 64; @%q bra END;"  # warps 2 and 3 multiply rows 32 to 63
STORE = "add.f32 %f4, %f0, %f1; st.global.f32 [%myout], %f4;"
MATRIX = "cvt.rn.f16x2.f32 %x5, %f0, %f1; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%x6+12288], {%x5};"


def severities(at: int, after: str, order) -> set[str]:
    """Thread 128 loads 512 bytes to a place that the product may read meanwhile."""
    text = lines(
        "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;",
        "mov.u32 %x2, 0; shl.b32 %x4, %t, 5; add.u32 %x4, %x4, %sm; and.b32 %x6, %t, 7; shl.b32 %x6, %x6, 4;",
        "shr.u32 %x7, %t, 5; shl.b32 %x7, %x7, 7; add.u32 %x6, %x6, %x7; add.u32 %x6, %x6, %sm;",
        "@!%w4 st.shared.v4.u32 [%x4], {%x2, %x2, %x2, %x2};",
        "@!%w4 st.shared.v4.u32 [%x4+16], {%x2, %x2, %x2, %x2};",
        "fence.proxy.async; bar.sync 0; setp.ne.u32 %p, %t, %t; setp.eq.u32 %q, %t, 128; @%q bra LOADS;",
        "@%w4 bra END;",
        PRODUCT,
        after,
        "bra END;",
        "LOADS: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        f"[%sm+{at}], [%in], 512, [%bar]; {wait(0)}",
        "END:",
    )
    found = run_rule(Rule("rows", text, threads=160, target="sm_90a"), text, order).findings
    return {f.severity for f in found if f.kind == "race"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", [STORE, MATRIX])
def test_only_rows_that_are_stored_matter(store, order):
    assert severities(512, ROWS + store, order) == {"review"}
    assert severities(512, store, order) == {"error"}  # warps 2 and 3 store, too
    assert severities(0, ROWS + store, order) == {"error"}  # rows 0 to 31
    assert severities(2048, ROWS + store, order) == {"error"}  # all warps multiply with B
    assert severities(4096, ROWS + store, order) == set()


@pytest.mark.parametrize("order", ORDERS)
def test_a_result_that_decides_or_goes_elsewhere_matters(order):
    decides = "setp.gt.f32 %q, %f0, 0f00000000; @%q bra END;"
    assert severities(512, ROWS + decides + STORE, order) == {"error"}
    passes = "mov.b32 %x5, %f0; shfl.sync.idx.b32 %x5, %x5, 0, 31, -1;"
    assert severities(512, passes + ROWS + STORE, order) == {"error"}
