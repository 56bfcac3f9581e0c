"""A store to what other lanes of the warp have read needs no barrier if its value depends on their reads."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

REDUCED = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<3>;
    .shared .align 4 .b32 scale;
    mov.u32 %r0, scale; mov.u32 %r1, %tid.x;
    setp.eq.u32 %p, %r1, 0;
    @%p st.shared.u32 [%r0], 3;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r2, [%r0];
    add.u32 %r3, %r2, %r1;
    EXCHANGE
    @%p st.shared.u32 [%r0], STORED;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r6, [%r0];
    ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r1, 4; add.u64 %d0, %d0, %d1;
    st.global.u32 [%d0], %r6;
    ret;
}
"""
MOST = "redux.sync.max.u32 %r4, %r3, 0xffffffff;"
FIRST = "shfl.sync.idx.b32 %r4, %r3, 31, 31, 0xffffffff;"


def run(exchange: str, stored: str, used: str = "%r6"):
    """used: what each thread stores at the end."""
    out = np.zeros(32, np.uint32)
    text = REDUCED.replace("EXCHANGE", exchange).replace("STORED", stored)
    text = text.replace("st.global.u32 [%d0], %r6;", f"st.global.u32 [%d0], {used};")
    return out, ptxsim.load(text).launch("k", grid=1, block=32, args=[out])


@pytest.mark.parametrize("exchange", [MOST, FIRST])
def test_what_comes_from_the_values_that_were_read_is_no_error(exchange):
    out, result = run(exchange, "%r4")
    assert out.tolist() == [34] * 32
    assert [(f.kind, f.severity) for f in result.findings] == [("race", "review")]
    assert result.verdict == "review"


@pytest.mark.parametrize(
    "exchange, stored",
    [("", "%r3"), ("", "7"), (MOST, "7"), (MOST, "%r3"), (MOST.replace("%r3", "%r1"), "%r4")],
    ids=["own value", "constant", "constant behind", "own value behind", "of other registers"],
)
def test_what_does_not_come_from_them_is(exchange, stored):
    result = run(exchange, stored, used="%r3")[1]
    assert ("race", "error") in [(f.kind, f.severity) for f in result.findings]
