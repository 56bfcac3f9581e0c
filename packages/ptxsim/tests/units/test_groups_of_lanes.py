"""Lanes of one warp that synchronise in separate groups, wherever they are: each group by its member mask."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptxsim

TEXT = """
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 masks, .param .u64 ways, .param .u64 out)
{{
    .reg .b32 %t, %m, %w, %o, %lane; .reg .b64 %d<8>; .reg .pred %p, %q;
    ld.param.u64 %d1, [masks]; ld.param.u64 %d2, [ways]; ld.param.u64 %d3, [out];
    mov.u32 %t, %tid.x; mul.wide.u32 %d0, %t, 4;
    add.u64 %d1, %d1, %d0; add.u64 %d2, %d2, %d0; add.u64 %d3, %d3, %d0;
    ld.global.u32 %m, [%d1]; ld.global.u32 %w, [%d2];
    setp.eq.u32 %p, %w, 1; setp.eq.u32 %q, %w, 2;
    @%p bra ONE;
    @%q bra TWO;
    {meet} bra END;
ONE: {meet} bra END;
TWO: {meet}
END:
    st.global.u32 [%d3], %o;
    ret;
}}
"""
MEETS = {  # what the lanes of a group exchange -> its value from their lane numbers
    "redux.sync.max.u32 %o, %t, %m;": max,
    "redux.sync.add.u32 %o, %t, %m;": sum,
    "vote.sync.ballot.b32 %o, 1, %m;": lambda lanes: sum(1 << lane for lane in lanes),
    "bfind.u32 %lane, %m; shfl.sync.idx.b32 %o, %t, %lane, 31, %m;": max,
    "bar.warp.sync %m; mov.u32 %o, %m;": lambda lanes: sum(1 << lane for lane in lanes),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("meet", MEETS)
@pytest.mark.parametrize("order", ["program", "adverse"])
def test_each_group_meets_by_its_mask(meet, seed, order):
    draw = random.Random(f"{meet}{seed}")
    group_of = [draw.randrange(2 + seed % 3) for _ in range(32)]
    groups = [[lane for lane in range(32) if group_of[lane] == g] for g in group_of]
    masks = np.array([sum(1 << lane for lane in lanes) for lanes in groups], np.uint32)
    ways, out = np.array([draw.randrange(3) for _ in range(32)], np.uint32), np.zeros(32, np.uint32)
    text = TEXT.format(meet=meet).replace("vote.sync.ballot.b32 %o, 1", "vote.sync.ballot.b32 %o, %p1")
    text = text.replace(".reg .pred %p, %q;", ".reg .pred %p, %q, %p1; setp.eq.u32 %p1, 0, 0;")
    result = ptxsim.load(text).launch("k", block=32, args=[masks, ways, out], order=order)
    assert [f for f in result.findings if f.severity == "error"] == []
    assert out.tolist() == [MEETS[meet](lanes) for lanes in groups]
