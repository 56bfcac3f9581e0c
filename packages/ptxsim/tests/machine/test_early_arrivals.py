"""An elected lane that only has work for the tensor core keeps its warp's time slice."""

from __future__ import annotations

import numpy as np

import ptxsim
from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor
from ptxsim.machine.cluster import Cluster

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 pout) {
.shared .align 1024 .b8 tile[32768]; .shared .align 8 .b64 bar; .shared .align 4 .b32 where;
.reg .b64 %out, %wide, %bits; .reg .b32 %t, %bar, %at, %d, %x; .reg .pred %p, %e, %first;
ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mov.u32 %bar, bar; mov.u32 %at, where;
setp.ne.u32 %first, %t, 0;
mov.u32 %x, tile; mad.lo.u32 %x, %t, 4, %x; mul.wide.u32 %wide, %t, 4; add.u64 %out, %out, %wide;
"""
ONES = "st.shared.b32 [%x+{at}], 1006648320;"  # two halves of 1.0
BEGIN = """@!%first mbarrier.init.shared::cta.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%at], 32; fence.proxy.async; bar.sync 0;
ld.shared.b32 %d, [%at]; mov.b64 %bits, {bits}; tcgen05.fence::after_thread_sync;"""
MMA = """elect.sync _|%e, -1; @!%e bra MEET{i};
tcgen05.mma.cta_group::1.kind::f16 [%d], %bits, %bits, 134479888, %p;
MEET{i}: add.u32 %x, %x, 0;
"""
END = """elect.sync _|%e, -1; @!%e bra WAIT;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0; @!%p bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x}, [%d]; tcgen05.wait::ld.sync.aligned;
st.global.b32 [%out], %x; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32; ret; }
"""


def launched(products: int):
    """(column 0 of D, lanes 0 to 31; the Result) of so many sums of 16 ones, each after an elect.sync."""
    bits = encode_matrix_descriptor(MatrixDescriptor(1024, 128, 256, 0))
    ones = "".join(ONES.format(at=at) for at in range(0, 4096, 128))
    work = "setp.eq.u32 %p, %t, %t;\n".join(MMA.format(i=i) for i in range(products))
    text = HEAD + ones + BEGIN.format(bits=bits) + "setp.ne.u32 %p, %t, %t;\n" + work + END
    out = np.zeros(32, np.float32)
    result = ptxsim.load(text).launch("k", block=32, args=[out])
    return out, result


def test_mmas_that_an_elected_lane_issues_one_by_one_take_one_turn(monkeypatch):
    turns = []
    step = Cluster._step
    monkeypatch.setattr(Cluster, "_step", lambda self, g: (turns.append(g), step(self, g))[1])
    taken = {}
    for products in (1, 8):
        turns.clear()
        out, result = launched(products)
        assert result.verdict == "clean" and (out == 16 * products).all()
        taken[products] = len(turns)
    assert taken[8] == taken[1]
