"""Warp instructions a second of the saved kernels without checks: `python -m research.foreign.pace`.

One process, processor time, the best of a few runs; the slowest first. Where a kernel is short, its launch
counts too: `--least` leaves out kernels of fewer warp instructions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from research.foreign.cases import Case, load_cases


def paces(least: int, runs: int, only: str) -> Iterator[tuple[float, int, float, str]]:
    """(warp instructions a second, warp instructions, seconds, name) of each kernel."""
    for case in load_cases():
        if only not in case.name:
            continue
        count, seconds = fastest(case, runs)
        if count >= least:
            yield count / seconds, count, seconds, case.name


def fastest(case: Case, runs: int) -> tuple[int, float]:
    """Warp instructions of a run without checks, and its seconds of processor time."""
    count, best = 0, float("inf")
    for _ in range(runs):
        start = time.process_time()
        count = case.run(checks=False).stats["warp_instructions"]
        best = min(best, time.process_time() - start)
    return count, best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    for pace, count, seconds, name in sorted(paces(options.least, options.runs, options.only)):
        print(f"{pace / 1e6:8.2f} M/s {count:10,} in {seconds:7.3f} s  {name}")


if __name__ == "__main__":
    main()
