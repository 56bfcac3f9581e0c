"""Warp-instructions per second of the main loop on step 3, next to a numpy baseline measured in the same run.

    python packages/tirxlab/bench/inner_loop.py [SIZE]

The rate counts the time of calls of the compiled loop, in one process, less the stopwatch's own time for an
empty call. The baseline is one 32-lane numpy operation, the least that an interpreter without compiled code
would pay for each instruction.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from instructor.solutions import gemm_kernels
from ptxsim import launch
from ptxsim.grid import processes as parallel
from tirxlab.devices import sim
from tirxlab.toolchain.build import build
from utils import prepare_data


class Stopwatch:
    """Wraps the compiled loop and adds up its time."""

    def __init__(self, loop):
        self.loop, self.seconds, self.calls = loop, 0.0, 0

    def __call__(self, *args):
        start = time.perf_counter()
        try:
            return self.loop(*args)
        finally:
            self.seconds += time.perf_counter() - start
            self.calls += 1

    @staticmethod
    def own_cost(count: int = 100_000) -> float:
        """Seconds that a stopped call of nothing seems to take."""
        watch = Stopwatch(lambda _: None)
        for _ in range(count):
            watch(0)
        return watch.seconds / count


def numpy_baseline(count: int = 20_000) -> float:
    a, b = np.ones(32, np.uint64), np.ones(32, np.uint64)
    start = time.perf_counter()
    for _ in range(count):
        np.add(a, b, out=a)
    return count / (time.perf_counter() - start)


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    artifact = build(gemm_kernels.hgemm_v3(size, size, size))
    arrays = list(prepare_data(size, size, size))
    sim.run(artifact, arrays, checks=False)  # compiles and warms up
    watch = Stopwatch(launch.main_loop(launch.fast_calls()))
    launch.main_loop = lambda fast: watch
    parallel.cores = lambda: 1
    best = 0.0
    for _ in range(5):
        watch.seconds, watch.calls = 0.0, 0
        run = sim.run(artifact, arrays, checks=False)
        seconds = watch.seconds - watch.calls * watch.own_cost()
        best = max(best, run.stats["warp_instructions"] / seconds)
    base = numpy_baseline()
    print(f"step 3 at {size}^3: {best / 1e6:.1f} M warp-instructions/s in the loop (best of 5)")
    print(f"numpy dispatch baseline: {base / 1e6:.2f} M/s; ratio {best / base:.1f}")


if __name__ == "__main__":
    main()
