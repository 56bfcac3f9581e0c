"""Warp instructions a second of the saved kernels without checks: `python -m research.foreign.pace`.

One process, processor time of the launch alone, the best of a few runs; the slowest first. Where a kernel is
short, what a launch costs beside the running of its clusters counts too: the second pace is without it, and
`--least` leaves out kernels of fewer warp instructions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from unittest import mock

from ptxsim.launch import LoadedModule
from ptxsim.machine.cluster import Cluster
from research.foreign.cases import Case, load_cases

ASKED = 5e6  # a second


def paces(least: int, runs: int, only: str) -> Iterator[tuple[float, float, int, float, str]]:
    """(instructions a second, the same of the clusters' runs, instructions, seconds, name) of each kernel."""
    for case in load_cases():
        if only not in case.name:
            continue
        count, seconds, running = fastest(case, runs)
        if count >= least:
            yield count / seconds, count / running, count, seconds, case.name


def fastest(case: Case, runs: int) -> tuple[int, float, float]:
    """Warp instructions of a run without checks, its seconds of processor time, and those of its clusters."""
    count, best, spent = 0, (float("inf"), 0.0), [0.0, 0.0]
    with timed(LoadedModule, "launch", spent, 0), timed(Cluster, "run", spent, 1):
        for _ in range(runs):
            spent[:] = 0.0, 0.0
            count = case.run(checks=False).stats["warp_instructions"]
            best = min(best, (spent[0], spent[1]))
    return count, *best


def timed(owner: type, name: str, spent: list[float], number: int):
    """A context in which the processor time of a method is added to spent[number]."""
    plain = getattr(owner, name)

    def run(*args, **keywords):
        start = time.process_time()
        try:
            return plain(*args, **keywords)
        finally:
            spent[number] += time.process_time() - start

    return mock.patch.object(owner, name, run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    found = sorted(paces(options.least, options.runs, options.only))
    for pace, running, count, seconds, name in found:
        print(f"{pace / 1e6:8.2f} {running / 1e6:8.2f} M/s {count:10,} in {1e3 * seconds:8.2f} ms  {name}")
    for what, some in zip(("in all", "running"), list(zip(*found, strict=True))[:2], strict=True):
        below, middle = sum(pace < ASKED for pace in some), statistics.median(some)
        numbers = f"slowest {min(some) / 1e6:.2f} M/s, median {middle / 1e6:.2f}"
        print(f"{what}: {numbers}, {below} of {len(some)} below {ASKED / 1e6:.0f}")


if __name__ == "__main__":
    main()
