"""The result of a run depends only on its input, not on hash seeds, addresses,
or contents of fresh memory.
"""

import os
import subprocess
import sys

import digests
import pytest

RUNS = ("programs=5", "kernels=3", "torch=12", "foreign=4")
# glibc's settings that give every block its own mapping, so that a freed block is seldom reused.
SCATTERED = {"MALLOC_MMAP_THRESHOLD_": "256", "MALLOC_MMAP_MAX_": "60000", "MALLOC_PERTURB_": "1"}
ENVIRONMENTS = {
    "two threads": {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "2"},
    "poisoned memory": {"PYTHONHASHSEED": "2", "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165"},
    "scattered memory": {"PYTHONHASHSEED": "3", "PYTHONMALLOC": "malloc", **SCATTERED},
    "one thread": {"PYTHONHASHSEED": "4", "OPENBLAS_NUM_THREADS": "1", "PTXSIM_JOBS": "1"},
}


def python(*arguments: str, **environment: str) -> str:
    """The output of Python with pytest's search path and some more variables."""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected():
    lines = [
        f"{name}: {value}"
        for group, _, count in (run.partition("=") for run in RUNS)
        for name, value in digests.GROUPS[group](int(count))
    ]
    assert len({line.split(": ")[1] for line in lines}) > 20  # they are not all the same
    return lines


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_results_do_not_depend_on_the_process(name, expected):
    assert python("-m", "digests", *RUNS, **ENVIRONMENTS[name]).splitlines() == expected


@pytest.mark.parametrize(("seed", "poison"), [(1, 165), (2, 90)])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's variables")
def test_the_environments_differ_in_what_they_say(seed, poison):
    """The order of a set, and the contents of fresh memory: a simulator that
    used either would fail the test.
    """
    show = "import numpy as np; print(*{'a', 'b', 'c', 'd', 'e'}); print(*set(np.empty(5000, 'u1')[64:]))"
    environment = {"PYTHONHASHSEED": str(seed), "MALLOC_PERTURB_": str(poison)}
    order, filled = python("-c", show, **environment).splitlines()
    assert filled == str(poison ^ 255)
    assert order != python("-c", show, **environment | {"PYTHONHASHSEED": "7"}).splitlines()[0]
