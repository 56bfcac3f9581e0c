"""What a finding about a mutant must name: the changed line, or what the changed value affects."""

from __future__ import annotations

import pytest

from research.mutation.locate import localised

KERNEL = """def kernel():
    A_ROW, B_ROW = 64, 32
    TILE_BYTES = A_ROW + B_ROW
    full = TMABar(2)
    free = TMABar(2)
    other = TMABar(2)
    unused = 0

    full.arrive(0, TILE_BYTES)
    free.wait(0, ld_phase.phase)
    tma_phase.move_to_next_stage()
"""
SAID = "full[0] expected 96 B, TMA delivered 128 B"
CASES = {
    "the line itself": (2, "64", "32", "anything [line 2]", 2, "line"),
    "a value of several that are set at once": (2, "32", "16", SAID, None, "name"),
    "what the old name led to": (11, "ld_phase", "tma_phase", "free[0] let phase 0 pass twice", None, "name"),
    "another barrier": (11, "ld_phase", "tma_phase", "other[0] let phase 0 pass twice", None, ""),
    "a value that leads nowhere": (7, "0", "1", SAID, None, ""),
}


@pytest.mark.parametrize("line, old, new, message, where, found", CASES.values(), ids=CASES)
def test_a_finding_names_the_place(line, old, new, message, where, found):
    finding = {"message": message, "where": {"line": where}}
    row = {"text": KERNEL, "lines": [line], "old": old, "new": new, "operator": "exchange"}
    assert localised(row | {"outcome": {"findings": [finding]}}) == found
