"""Lanes of one warp that exchange values through memory (PTX ISA 9.7.13.2)."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_broken, check_kept, lines

NEXT_LANE = "xor.b32 %x2, %x0, 4; add.u32 %x2, %sm, %x2;"
RULE = Rule(
    "through-shared-memory",
    lines(
        NEXT_LANE,
        "st.shared.u32 [%mine], %t;",
        "bar.warp.sync 0xffffffff;",
        "ld.shared.u32 %r1, [%x2]; st.global.u32 [%myout], %r1;",
    ),
    ("bar.warp.sync 0xffffffff;", ""),
    "race",
    words="no __syncwarp() between these two lanes of one warp",
)


@pytest.mark.parametrize("order", ORDERS)
def test_they_need_a_barrier_of_the_warp(order):
    check_kept(RULE, order)
    check_broken(RULE, order)
