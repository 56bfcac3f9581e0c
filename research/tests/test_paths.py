"""The same kernel checked and unchecked, under two orders: the same results on every path.

Uses kernels of other compilers (research/foreign) and the ten references; `test_random_programs.py` does the
same with random ones.
"""

import numpy as np
import pytest

from instructor.solutions import gemm_kernels
from research.foreign.cases import load_cases
from tirxlab.devices import sim
from tirxlab.rubric import load_rubric
from tirxlab.toolchain.build import build
from utils import prepare_data

CASES = {case.name: case for case in load_cases()}
ORDERS = ("program", "adverse")


# products of several tcgen05.mma: those pending together are summed at once, which rounds D differently
ROUNDED = {"cute_multicast_sm100", "cute_pair_multicast_sm100", "cute_pair_sm100", "cute_tcgen05_sm100"}


def outputs(case, order: str, checks: bool) -> dict[str, np.ndarray]:
    case.run(order, checks)
    return {name: x.copy() for name, x in case.values.items() if isinstance(x, np.ndarray)}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_foreign_kernels(name):
    first = outputs(CASES[name], "program", True)
    for order, checks in (("program", False), ("adverse", True), ("adverse", False)):
        for array, values in outputs(CASES[name], order, checks).items():
            if name in ROUNDED and values.dtype == np.float32:
                np.testing.assert_allclose(values, first[array], rtol=1e-5, atol=1e-4)
            else:
                assert values.tobytes() == first[array].tobytes(), f"{array}: order {order}, checks {checks}"


def smallest(step: int) -> tuple[int, int, int]:
    """The smallest size at which a step is checked."""
    rubric = load_rubric()
    return min((*rubric.uneven[step], *rubric.sizes(step)), key=np.prod)


@pytest.mark.slow
@pytest.mark.parametrize("step", sorted(load_rubric().uneven))
def test_references(step):
    size = smallest(step)
    a, b, c = prepare_data(*size)
    artifact = build(getattr(gemm_kernels, f"hgemm_v{step}")(*size))
    found = set()
    for order in ORDERS:
        for checks in (True, False):
            run = sim.run(artifact, [a, b, c.copy()], order=order, checks=checks)
            assert run.verdict in (("clean", "review") if checks else ("not checked",))
            found.add(next(iter(run.outputs.values())).tobytes())
    assert len(found) == 1
