"""A pipeline reads ahead in its last round, and another warp already writes there."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p_out) {{
.reg .b64 %out, %wide; .reg .b32 %t, %at, %x, %y, %n, %sum, %more; .reg .pred %last, %skip, %again, %q;
.shared .align 16 .b8 tile[1024];
ld.param.u64 %out, [p_out]; mov.u32 %t, %tid.x; mul.wide.u32 %wide, %t, 4; add.u64 %out, %out, %wide;
mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at; st.shared.u32 [%at], %t; mov.u32 %sum, 0; mov.u32 %n, 0;
mov.u32 %more, %n; xor.b32 %y, %t, 32; mov.u32 %at, tile; mad.lo.u32 %at, %y, 4, %at; setp.lt.u32 %q, %t, 32;
bar.sync 0;
ld.shared.u32 %x, [%at];
ROUND:
{body}
}}
"""
AHEAD = """add.u32 %sum, %sum, %x; bar.sync 0; ld.shared.u32 %x, [%at]; add.u32 %n, %n, 1;
setp.eq.u32 %last, %n, 3; @!%last bra ROUND; mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at;
"""
AFTER = """{before} @%q bra AFTER; st.shared.u32 [%at], 7;
AFTER: {behind} bar.sync 0; st.global.u32 [%out], {value}; ret;
"""
AGAIN = """
bar.sync 0; mov.u32 %n, 0; setp.{test}.s32 %skip, %more, 0; @%skip bra SKIP; ld.shared.u32 %x, [%at];
SKIP: mov.u32 %y, %more; setp.ne.s32 %again, %y, 0; @%again bra ROUND;"""
SHAPED = {  # (before one warp writes, after that, what is stored) -> verdict
    "in vain": ("", "", "%sum", "review"),
    "a barrier stands between": ("bar.sync 0;", "", "%sum", "clean"),
    "used behind the next barrier": ("", "", "%x", "error"),
    "used before it": ("", "add.u32 %sum, %sum, %x;", "%sum", "error"),
    "copied and used": ("", "mov.u32 %y, %x;", "%y", "error"),
    "copied in vain": ("", "mov.u32 %y, %x;", "%sum", "review"),
    "loaded anew for more rounds": ("", AGAIN.format(test="eq"), "%sum", "review"),
    "used in more rounds": ("", AGAIN.format(test="ne"), "%sum", "error"),
}


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize(("before", "behind", "value", "verdict"), SHAPED.values(), ids=SHAPED)
def test_what_is_read_ahead_in_vain_is_a_review(before, behind, value, verdict, order):
    body = AHEAD + AFTER.format(before=before, behind=behind, value=value)
    result = ptxsim.load(KERNEL.format(body=body)).launch(
        "k", block=64, args=[np.zeros(64, np.uint32)], order=order
    )
    assert result.verdict == verdict, list(map(str, result.findings))
    assert all("on no way" in found.message for found in result.findings if verdict == "review")
