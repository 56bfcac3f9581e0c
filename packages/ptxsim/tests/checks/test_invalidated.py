"""A diagnosis after mbarrier.inval has ended the barriers that it speaks of."""

import numpy as np
import pytest
from truth import ORDERS, START

import ptxsim

NOT_AWAITED = """
@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster; bar.sync 0;
@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;
@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 16, [%bar];
bar.sync 0; ld.shared.u32 %x1, [%sm]; bar.sync 0;
@%lead mbarrier.inval.shared.b64 [%bar];
ret;
}
"""


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_that_nobody_awaits_before_its_barrier_ends(order):
    """Its bytes may also come when the barrier is no more."""
    text = START.format(target="sm_90a", directives="") + NOT_AWAITED
    arrays = [np.zeros(4096, np.uint32), np.zeros(4096, np.uint32)]
    run = ptxsim.load(text).launch("k", block=64, args=arrays, order=order)
    assert run.verdict == "error" and {"race"} <= {f.kind for f in run.findings} <= {"race", "mbarrier"}
    assert any("was not waited for" in f.message or f.kind == "mbarrier" for f in run.findings)
