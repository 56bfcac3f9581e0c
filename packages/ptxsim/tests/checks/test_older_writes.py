"""Atomics of many clusters on one word: a plain read must come after all of them, not only after the last."""

import numpy as np
import pytest

import ptxsim

CTAS = 80  # more than run together
TEXT = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 psum, .param .u64 pticket, .param .u64 pout) {
.reg .b32 %t, %old, %v; .reg .b64 %sum, %ticket, %out; .reg .pred %p;
ld.param.u64 %sum, [psum]; ld.param.u64 %ticket, [pticket]; ld.param.u64 %out, [pout];
mov.u32 %t, %tid.x;
red.relaxed.gpu.global.add.u32 [%sum], 1;
bar.sync 0;
setp.ne.u32 %p, %t, 0; @%p bra END;
atom.ORDER.gpu.global.add.u32 %old, [%ticket], 1;
setp.ne.u32 %p, %old, 79; @%p bra END;
ld.global.u32 %v, [%sum]; st.global.u32 [%out], %v;
END: ret;
}
"""


@pytest.mark.parametrize(("takes", "verdict"), [("acq_rel", "clean"), ("relaxed", "error")])
@pytest.mark.parametrize("order", ["program", 3])
def test_a_plain_read_after_atomics_of_many_clusters(takes, verdict, order):
    arrays = [np.zeros(1, np.uint32) for _ in range(3)]
    loaded = ptxsim.load(TEXT.replace("ORDER", takes))
    result = loaded.launch("k", grid=CTAS, block=64, args=arrays, order=order)
    assert result.verdict == verdict, result.findings
    if verdict == "clean":
        assert arrays[0] == arrays[2] == CTAS * 64
    else:
        assert result.findings[0].kind == "race"
