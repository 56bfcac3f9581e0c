"""Random instructions against what an H200 left in every register (research/chip/fuzz.py), NaNs to the bit.

No result is read back by a partner: what sub.cc leaves in CC.CF is read by addc and by subc, for instance.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scalar_eval import thin

from research.chip import fuzz

RECORD = np.load(Path(__file__).parent / "data" / "fuzz_h200.npz")
STEPS = 20  # of one test


@pytest.mark.parametrize("start", thin(range(0, len(RECORD["names"]), STEPS), 8))
def test_as_the_chip(start):
    assert fuzz.compare(RECORD, start, start + STEPS) == []


def test_the_carry_chains_mix_additions_and_subtractions():
    chains = [n for n in RECORD["names"].tolist() if "+" in n]
    assert any(n.startswith("sub.cc") and "addc" in n for n in chains)
    assert any(n.startswith("add.cc") and "subc" in n for n in chains)
