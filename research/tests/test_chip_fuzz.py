"""Random instructions against an H200's results in every register (research/chip/fuzz.py), NaNs to the bit.

No result is seen only by its partner instruction: CC.CF after sub.cc is read by both addc and subc, for
example.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scalar_eval import thin

from research.chip import digests, fuzz_record

RECORD = np.load(Path(__file__).parent / "data" / "fuzz_h200.npz")
STEPS = 8  # steps per test


@pytest.mark.parametrize("start", thin(range(0, len(RECORD["names"]), STEPS), 16))
def test_as_the_chip(start):
    assert fuzz_record.compare(RECORD, start, start + STEPS) == []


def test_the_carry_chains_mix_additions_and_subtractions():
    chains = [n for n in RECORD["names"].tolist() if "+" in n]
    assert any(n.startswith("sub.cc") and "addc" in n for n in chains)
    assert any(n.startswith("add.cc") and "subc" in n for n in chains)


def test_one_bit_that_differs_is_told_and_mostly_where():
    rng = np.random.default_rng(0)
    row = rng.integers(0, 1 << 64, 32, np.uint64) >> rng.integers(0, 64, 32, np.uint64)
    kept, located = digests.of(row[None])[0], 0
    assert digests.difference(kept, row) == ""
    for thread, bit in np.ndindex(32, 64):
        other = row.copy()
        other[thread] ^= np.uint64(1 << bit)
        told = digests.difference(kept, other)
        assert told
        located += told == f"1 threads or more, ptxsim has in {thread}: {int(other[thread]):#x}"
    assert located > 0.7 * 32 * 64
