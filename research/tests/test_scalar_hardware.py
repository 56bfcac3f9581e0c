"""Scalar instructions against what an H200 computed (recorded by research/chip/record_scalar.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scalar_eval import find, run, thin

from research.chip import record_scalar

RECORD = np.load(Path(__file__).parent / "data" / "scalar_h200.npz")
NAMES = RECORD["names"].tolist()
INFINITY = {"f32": 0x7F800000, "f64": 0x7FF0000000000000, "f16": 0x7C00, "bf16": 0x7F80, "tf32": 0x7F800000}


def canonical(bits: np.ndarray, name: str, kind: str) -> list[int]:
    """The patterns with every NaN made the same: PTX leaves most NaN payloads open."""
    mods = name.split(".")[1:]
    floats = [m.removesuffix("x2") for m in mods if m.removesuffix("x2") in INFINITY]
    held = kind if kind in INFINITY else floats[0] if floats and kind[0] == "b" else None
    if held is None or name.startswith(("slct", "cvt.rn.satfinite", "cvt.rn.relu.satfinite.e")):
        return bits.tolist()
    inf = INFINITY[held]
    if kind == "b32" and inf < 1 << 16:
        low, high = (
            canonical(part, name, held) for part in (bits & np.uint64(0xFFFF), bits >> np.uint64(16))
        )
        return list(zip(low, high, strict=True))
    sign = 1 << (inf.bit_length())
    return ["nan" if x % sign > inf else x for x in bits.tolist()]


def test_the_seed_gives_what_the_gpu_was_given():
    every = np.stack([record_scalar.sources(name) for name in NAMES])
    assert record_scalar.digest(every) == RECORD["sources"]


@pytest.mark.parametrize("name", thin(NAMES, 4))
def test_matches_the_gpu(name):
    row = NAMES.index(name)
    op = find(name)
    sources, recorded = record_scalar.sources(name), RECORD["results"][row]
    borrows = np.uint64(name.startswith("sub"))  # recorded is the borrow; CC.CF holds its complement
    results = run(op, *sources[: len(op.src)], carry=sources[5] ^ borrows)
    results = results if isinstance(results, tuple) else (results,)
    for k, (result, kind) in enumerate(zip(results, (*op.dst, "u64"), strict=False)):
        chip = recorded[k] ^ borrows if k == len(op.dst) else recorded[k]
        assert canonical(result, name, kind) == canonical(chip, name, kind)
