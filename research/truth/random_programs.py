"""Checks that random kernels without races give the same bytes and verdict on every path of the simulator.

    python -m research.truth.random_programs SEED [--count N] [--jobs]

Runs kernels SEED * 1,000,000 .. checked and unchecked under three orders (with --jobs in one process and
two as well), prints each difference, and exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import time

from research.truth.kernels import kernel_of
from research.truth.paths import differences, of_kernel

BLOCK = 1_000_000  # seeds of kernels from one seed of the bench


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--jobs", action="store_true")
    given = parser.parse_args()
    bad, done, start = 0, 0, time.monotonic()
    for seed in range(given.seed * BLOCK, given.seed * BLOCK + given.count):
        found = differences(*of_kernel(kernel_of(seed)), jobs=(1, 2) if given.jobs else (1,))
        done += 1
        bad += bool(found)
        for line in found:
            print(f"kernel {seed}: {line}", flush=True)
        if time.monotonic() - start > 60 * given.minutes:
            break
    print(f"{done} kernels, {bad} differ between paths; {time.process_time():.0f} s of processor time")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
