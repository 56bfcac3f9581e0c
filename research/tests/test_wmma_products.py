"""The time model's view of wmma: the work of the mma.sync that a product becomes, and its loads."""

import numpy as np
import pytest

from ptxsim.timing.chip import chip
from ptxsim.timing.predict import predict, sample
from research.foreign.cases import load_cases

CASES = {case.name: case for case in load_cases()}


@pytest.mark.parametrize("name, size, half", [("shared", (64, 64, 96), 1), ("bfloat", (32, 8, 64), 0)])
@pytest.mark.parametrize("part, sms", [("h200", 132), ("b200", 148)])
def test_products_are_counted_as_those_of_mma_sync(name, size, half, part, sms):
    case = CASES[f"nvcc_{name}_sm90a"]
    spec = case.launch
    args = [case._argument(one) for one in spec["args"]]
    shape = {key: tuple(spec[key]) for key in ("grid", "block", "cluster")}
    launch = case.module.prepare(spec["entry"], shared_bytes=0, args=args, **shape)
    found = predict(sample(launch, sms=sms), chip(part))
    assert found.costed.product_flops == 2 * np.prod(size)
    assert found.costed.half == half and found.cycles > 0
    reads = found.costed.execution.reads
    assert len(reads) == 2 and min(reads.values()) > 0  # A and B
