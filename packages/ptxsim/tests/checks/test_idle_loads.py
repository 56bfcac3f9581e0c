"""Several threads load one element, and one of them stores the result in place."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.global .align 4 .b32 kept;
.visible .entry k(.param .u64 p_data, .param .u64 p_other) {{
.reg .b64 %data, %other, %wide, %own; .reg .b32 %t, %e, %x, %y, %z; .reg .pred %owner, %has, %q;
.shared .align 16 .b8 tile[512]; .local .align 4 .b8 own_place[4];
ld.param.u64 %data, [p_data]; ld.param.u64 %other, [p_other]; mov.u32 %t, %tid.x; and.b32 %e, %t, 31;
setp.lt.u32 %owner, %t, {owners}; mul.wide.u32 %wide, %e, 4; add.u64 %data, %data, %wide;
mul.wide.u32 %own, %t, 4; add.u64 %other, %other, %own;
ld.global.u32 %x, [%data];
{body}
ret;
}}
"""
IN_PLACE = "mad.lo.u32 %y, %x, 3, 1; @%owner st.global.u32 [%data], %y;"
SHAPED = {  # use of the value -> verdict
    "one thread stores it": (IN_PLACE, "review"),
    "in a loop": ("mov.u32 %z, 3; AGAIN: ld.global.u32 %x, [%data]; add.u32 %x, %x, 1;"
        "@%owner st.global.u32 [%data], %x; sub.u32 %z, %z, 1; setp.ne.u32 %q, %z, 0; @%q bra AGAIN;",
        "review"),
    "a barrier stands between": ("bar.sync 0;" + IN_PLACE, "clean"),
    "others store it elsewhere": (IN_PLACE + "st.global.u32 [%other], %x;", "error"),
    "others store it elsewhere, by a guard": (IN_PLACE + "@!%owner st.global.u32 [%other], %x;", "error"),
    "others store it in a variable": (IN_PLACE + "@!%owner st.global.u32 [kept], %x;", "error"),
    "others keep it in local memory": (IN_PLACE + "@!%owner st.local.u32 [own_place], %x;", "error"),
    "others store it anywhere": (IN_PLACE + "@!%owner st.u32 [%other], %x;", "error"),
    "the guard hangs on it": ("setp.lt.u32 %has, %x, 9; and.pred %has, %has, %owner;"
        "@%has st.global.u32 [%data], %x;", "error"),
    "the place hangs on it": ("and.b32 %y, %x, 4; cvt.u64.u32 %wide, %y; add.u64 %wide, %other, %wide;"
        + IN_PLACE + "@%owner st.global.u32 [%wide], %t;", "error"),
    "a branch hangs on it": ("setp.eq.u32 %q, %x, 77; @%q bra OUT;" + IN_PLACE + "OUT:", "error"),
    "others get it": (IN_PLACE + "shfl.sync.idx.b32 %z, %x, 0, 31, -1; @%owner st.global.u32 [%other], %z;",
        "error"),
    "it is added up": (IN_PLACE + "red.shared.add.u32 [tile], %x;", "error"),
}  # fmt: skip


def launched(body: str, owners: int, order: str):
    data, other = np.arange(32, dtype=np.uint32), np.zeros(96, np.uint32)
    module = ptxsim.load(KERNEL.format(owners=owners, body=body))
    return module.launch("k", block=96, args=[data, other], order=order), data


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize(("body", "verdict"), SHAPED.values(), ids=SHAPED)
def test_a_load_that_changes_nothing_is_a_review(body, verdict, order):
    result, _ = launched(body, 32, order)
    assert result.verdict == verdict, list(map(str, result.findings))
    if verdict == "review":
        assert {found.kind for found in result.findings} == {"race"}
        assert all("store nothing that depends on it" in found.message for found in result.findings)


def test_where_a_copy_is_stored_too_it_is_an_error():
    result, _ = launched(IN_PLACE, 64, "program")
    assert result.verdict == "error"
