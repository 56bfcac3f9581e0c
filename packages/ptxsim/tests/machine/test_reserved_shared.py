"""Reserved shared memory, where libraries keep their state for tiles of several warps."""

import numpy as np
import pytest

import ptxsim

TEXT = """.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 more[];
.visible .entry k(.param .u64 po) {
.shared .align 16 .b8 own[NOWN];
.reg .b64 %o, %a; .reg .b32 %s, %t, %x, %n; .reg .pred %p;
ld.param.u64 %o, [po]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.u64 %o, %o, %a;
mov.u32 %s, %reserved_smem_offset_N; cvt.u64.u32 %a, %s; cvta.shared.u64 %a, %a;
setp.eq.u32 %p, %t, 0; @%p st.u32 [%a+284], 7; bar.sync 0; ld.u32 %x, [%a+284];
mov.u32 %n, own; min.u32 %n, %n, %s; sub.u32 %s, %s, %n; st.shared.u32 [own], %x; st.shared.u32 [more], %x;
st.global.u32 [%o], %x; ret; }
"""


def launch(number: int, own: int, dynamic: int):
    out = np.zeros(32, np.uint32)
    text = TEXT.replace("_N;", f"_{number};").replace("NOWN", str(own))
    result = ptxsim.load(text).launch("k", grid=1, block=32, args=[out], shared_bytes=dynamic)
    return out, result


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("own", "dynamic"), [(4, 16), (1000, 4096)])
def test_it_is_memory_of_the_cta_apart_from_the_kernels_own(number, own, dynamic):
    out, result = launch(number, own, dynamic)
    assert (out == 7).all() and not [f for f in result.findings if "reserved" in f.message], result.findings


def test_it_is_not_charged_to_the_kernel():
    most = 227 * 1024
    assert (launch(1, 16, most - 16)[0] == 7).all()
    with pytest.raises(ValueError, match="shared memory"):
        launch(1, 16, most)
