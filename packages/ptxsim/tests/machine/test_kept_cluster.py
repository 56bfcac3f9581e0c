"""Unchecked launches of one kernel and shape share a cluster (machine/kept_cluster.py): nothing of one launch
may show in the next, and no reference to it is kept.
"""

import gc
import weakref

import numpy as np
import pytest

import ptxsim

BARRIERS = 80  # more than the table of mbarriers can hold at first
KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 count) {
.shared .align 1024 .b8 buffer[1024];
.local .align 4 .b8 own[8];
.reg .b64 %in, %out, %wide; .reg .b32 %t, %n, %x, %y, %z, %o, %at, %i, %never; .reg .pred %p, %q;
ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; ld.param.u32 %n, [count];
mov.u32 %t, %tid.x;
mul.wide.u32 %wide, %t, 4; add.u64 %in, %in, %wide; add.u64 %out, %out, %wide;
mov.u32 %at, buffer; shl.b32 %y, %t, 2; add.u32 %y, %at, %y;
ld.shared.u32 %z, [%y];
ld.local.u32 %i, [own];
xor.b32 %z, %z, %i;
xor.b32 %z, %z, %never;
ld.global.u32 %x, [%in];
add.u32 %z, %z, %x;
st.local.u32 [own], %t;
st.shared.u32 [%y], %x;
mov.u32 %at, more;
setp.ne.u32 %p, %t, 0;
@%p bra DONE;
mov.u32 %i, 0;
NEXT:
mbarrier.init.shared.b64 [%at], 1;
add.u32 %at, %at, 8; add.u32 %i, %i, 1;
setp.lt.u32 %q, %i, %n;
@%q bra NEXT;
DONE:
mov.u32 %o, %nctaid.x;
add.u32 %z, %z, %o;
st.global.u32 [%out], %z;
ret;
}
"""


def launched(module, block: int, grid: int, barriers: int, seed: int):
    """(its output, its counts) for an unchecked launch on its own numbers."""
    data = np.random.default_rng(seed).integers(0, 1 << 30, block, np.uint32)
    out = np.zeros(block, np.uint32)
    args = [data, out, np.uint32(barriers)]
    result = module.launch("k", grid=grid, block=block, shared_bytes=8 * BARRIERS, args=args, checks=False)
    return out.tolist(), {key: value for key, value in result.stats.items() if key != "seconds"}


@pytest.mark.parametrize("seed", range(4))
def test_a_launch_on_a_kept_cluster_is_as_one_on_its_own(seed):
    rng, module = np.random.default_rng(seed), ptxsim.load(KERNEL)
    for number in range(12):
        shape = int(rng.choice([32, 64, 100])), int(rng.choice([1, 2])), int(rng.choice([1, 3, BARRIERS]))
        assert launched(module, *shape, number) == launched(ptxsim.load(KERNEL), *shape, number)


def test_the_next_launch_of_the_same_shape_takes_it_and_another_does_not():
    module = ptxsim.load(KERNEL)
    kept = module.programs["k"].kept_cluster
    launched(module, 64, 1, 1, 0)
    (_, first), (_, again) = kept._kept, (launched(module, 64, 2, 1, 1), kept._kept)[1]
    assert first is again
    launched(module, 32, 1, 1, 2)
    assert kept._kept[1] is not first


def test_a_launch_with_a_finding_leaves_none():
    module = ptxsim.load(KERNEL)
    short, out = np.zeros(8, np.uint32), np.zeros(32, np.uint32)
    args = [short, out, np.uint32(1)]
    result = module.launch("k", block=32, shared_bytes=8 * BARRIERS, args=args, checks=False)
    assert [found.kind for found in result.findings] == ["out-of-bounds"]
    assert module.programs["k"].kept_cluster._kept is None
    assert launched(module, 32, 1, 1, 5) == launched(ptxsim.load(KERNEL), 32, 1, 1, 5)


def test_it_holds_no_array_of_the_launch():
    module = ptxsim.load(KERNEL)
    data, out = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    args = [data, out, np.uint32(1)]
    module.launch("k", block=32, shared_bytes=8 * BARRIERS, args=args, checks=False)
    gone = [weakref.ref(data), weakref.ref(out)]
    del args, data, out
    gc.collect()
    assert module.programs["k"].kept_cluster._kept is not None and [one() for one in gone] == [None, None]
