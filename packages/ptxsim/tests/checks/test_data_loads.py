"""Volatile and relaxed loads of data that nothing orders after the store: no race (8.7.1), but luck."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD

import ptxsim

KERNEL = """.visible .entry k(.param .u64 p) {{
  .shared .align 4 .b8 s[512]; .reg .b64 %p, %i; .reg .b32 %x, %y, %t, %a; .reg .pred %q;
  ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4; add.u64 %p, %p, %i;
  mov.u32 %a, s; mad.lo.u32 %a, %t, 4, %a; mov.u32 %y, 0;
  {body}
  st.global.u32 [%p], %x;
}}"""
STORE, LOAD = "st.volatile.shared.u32 [%a], %t;", "ld.volatile.shared.u32 %x, [%a+{off}];"
FIRST = "setp.ge.u32 %q, %t, 32; @%q exit; "
CLEAR = "st.volatile.shared.u32 [%a+256], 0; bar.sync 0;"


@pytest.mark.parametrize(
    "body, verdict",
    [
        (STORE + LOAD.format(off=4), "review"),
        (STORE + "bar.sync 0;" + LOAD.format(off=4), "clean"),
        (STORE + "bar.warp.sync -1;" + FIRST + LOAD.format(off=0), "clean"),
        (STORE + "bar.sync 0;" + FIRST + LOAD.format(off=4) + STORE, "review"),
        (
            STORE.replace("volatile", "relaxed.cta") + LOAD.format(off=4).replace("volatile", "relaxed.cta"),
            "review",
        ),
        (STORE + LOAD.format(off=4) + "setp.eq.u32 %q, %x, 7; @%q bra OUT; OUT:", "clean"),
    ],
)
def test_what_a_load_of_data_gets_is_luck(body, verdict):
    """Without a barrier after the store, or before the next store; a load that decides a branch asks."""
    text = HEAD + KERNEL.format(body=CLEAR + body)
    result = ptxsim.load(text).launch("k", grid=1, block=64, args=[np.zeros(64, np.uint32)])
    assert result.verdict == verdict, result.findings
    assert all("what is loaded is luck" in finding.message for finding in result.findings)
