"""Rows that the lanes of an ldmatrix give twice, beside rows that nobody reads."""

from __future__ import annotations

import pytest
from truth import Rule, lines, run_rule

FILL = "mad.lo.u32 %x4, %t, 16, %sm; st.shared.v4.b32 [%x4], {%t, %t, %t, %t}; bar.sync 0;"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%x5];"


@pytest.mark.parametrize(
    "lane, rest, wrong",
    [("%t", "", False), ("%x6", "", True), ("%x6", "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%x4];", False)],
)
def test_rows_that_are_read_twice(lane, rest, wrong):
    text = lines(FILL, f"and.b32 %x6, %t, 15; mad.lo.u32 %x5, {lane}, 16, %sm;", LOAD, rest)
    rule = Rule("rows", text, threads=32, target="sm_90a")
    found = [f.evidence.get("cause") for f in run_rule(rule, text, "program").findings]
    assert found == ["matrix-rows"] * wrong
