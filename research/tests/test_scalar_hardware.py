"""Scalar instructions, to the bit, against an H200's results (research/chip/record_scalar.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scalar_eval import find, run, thin

from research.chip import digests, record_scalar

RECORD = np.load(Path(__file__).parent / "data" / "scalar_h200.npz")
NAMES = RECORD["names"].tolist()


def test_the_seed_gives_what_the_gpu_was_given():
    every = np.stack([record_scalar.sources(name) for name in NAMES])
    assert record_scalar.digest(every) == RECORD["sources"]


@pytest.mark.parametrize("name", thin(NAMES, 4))
def test_matches_the_gpu(name):
    row = NAMES.index(name)
    op = find(name)
    sources, recorded = record_scalar.sources(name), RECORD["digests"][row]
    borrows = np.uint64(name.startswith("sub"))  # the borrow is recorded; CC.CF holds its complement
    results = run(op, *sources[: len(op.src)], carry=sources[5] ^ borrows)
    result, *carry = results if isinstance(results, tuple) else (results,)
    assert digests.difference(recorded[0], result) == ""
    assert digests.difference(recorded[1], carry[0] ^ borrows if carry else np.zeros_like(result)) == ""
