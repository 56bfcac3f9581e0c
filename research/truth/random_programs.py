"""Checks that random kernels without races give the same bytes and verdict on every path of the simulator.

    python -m research.truth.random_programs SEED [--count N] [--jobs]

Runs kernels SEED * 1,000,000 .. checked and unchecked under three orders (with --jobs in one process and
two as well), prints each difference, and exits with 1 if there is any.
"""

from __future__ import annotations

import sys
import time

from research import by_seed
from research.truth.kernels import kernel_of
from research.truth.paths import differences, of_kernel


def main() -> int:
    parser = by_seed.parser(__doc__)
    parser.add_argument("--jobs", action="store_true")
    given = parser.parse_args()
    bad = done = 0
    for seed in by_seed.in_time(by_seed.numbers(given), given.minutes):
        found = differences(*of_kernel(kernel_of(seed)), jobs=(1, 2) if given.jobs else (1,))
        done += 1
        bad += bool(found)
        for line in found:
            print(f"kernel {seed}: {line}", flush=True)
    print(f"{done} kernels, {bad} differ between paths; {time.process_time():.0f} s of processor time")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
