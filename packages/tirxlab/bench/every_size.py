"""Runs the reference kernels at every size of the rubric on the simulator and compares with numpy.

    python packages/tirxlab/bench/every_size.py [--steps 1,2] [--orders program,adverse] [--largest N] ..

One line per run: step, size, order, right?, verdict, CTAs run, seconds, seconds of numpy's own product of the
same matrices (the baseline), peak memory of this process. Exit code 1 if any product is wrong.
"""

from __future__ import annotations

import argparse
import functools
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from instructor.solutions import gemm_kernels
from tirxlab.devices import sim
from tirxlab.rubric import load_rubric
from tirxlab.toolchain.build import build
from utils import WrongResult, compare, prepare_data, reference


def sizes_of(step: int) -> list[tuple[int, int, int]]:
    rubric = load_rubric()
    rows = {tuple(size) for size in (*rubric.sizes(step), *rubric.uneven.get(step, ()))}
    return sorted(rows, key=lambda s: s[0] * s[1] * s[2])


@functools.lru_cache(maxsize=1)
def problem(size: tuple[int, int, int]) -> tuple:
    """A, B, their product by numpy, and the seconds it took."""
    a, b, _ = prepare_data(*size, seed=1)
    start = time.perf_counter()
    expected = reference(a, b)
    return a, b, expected, time.perf_counter() - start


def is_right(c: np.ndarray, expected: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    try:
        compare(c, expected, a, b)
    except WrongResult:
        return False
    return True


def run_one(step: int, size: tuple[int, int, int], order: str, checks: bool) -> bool:
    artifact = build(getattr(gemm_kernels, f"hgemm_v{step}")(*size))
    a, b, expected, base = problem(size)
    c = np.full_like(expected, np.nan)
    start = time.perf_counter()
    run = sim.run(artifact, [a, b, c], order=order, checks=checks)
    seconds = time.perf_counter() - start
    right = is_right(c, expected, a, b)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    name = "x".join(map(str, size))
    print(
        f"step {step:2} {name:>15} {order:8} {'right' if right else 'WRONG'} {run.verdict:12} "
        f"{run.stats['ctas']:5} CTAs {seconds:7.1f} s (numpy {base:6.2f} s) peak {peak:.2f} GB",
        flush=True,
    )
    return right


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default="1,2,3,4,5,6,7,8,9,10")
    parser.add_argument("--orders", default="program,adverse")
    parser.add_argument("--smallest", type=int, default=0, help="leave out sizes with M*N*K below N^3")
    parser.add_argument("--largest", type=int, default=8192, help="leave out sizes with M*N*K above N^3")
    parser.add_argument("--checks", action="store_true")
    options = parser.parse_args()
    good = True
    for step in map(int, options.steps.split(",")):
        for size in sizes_of(step):
            if options.smallest**3 <= np.prod(size, dtype=np.int64) <= options.largest**3:
                for order in options.orders.split(","):
                    good &= bool(run_one(step, size, order, options.checks))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
