"""Warp instructions per second of the saved kernels without checks: `python -m research.foreign.pace`.

One process, processor time of the launch alone, the best of a few runs; the slowest first. If a kernel is
short, the cost of a launch beyond its clusters' runs counts too: the last pace is without it, and `--least`
leaves out kernels with fewer warp instructions. The first pace is without the arithmetic of tensor cores,
which no simulator can avoid: it measures what ours adds, and the goal applies to it.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

from ptxsim.jit import bytecode
from ptxsim.launch import LoadedModule
from ptxsim.machine.cluster import Cluster
from ptxsim.units import tcgen05_mma, tcgen05_result
from research.foreign.cases import Case, load_cases

ASKED = 5e6  # instructions per second, the goal
TCGEN05 = (  # its arithmetic: operands decoded to floats, products, and their use
    *((tcgen05_mma, name) for name in ("read_operand", "_multiplied")),
    (tcgen05_result, "accumulate"),
)


class Pace(NamedTuple):
    added: float  # instructions per second, of the time that the simulator adds
    launch: float  # the same, of the whole launch
    clusters: float  # the same, of the clusters' runs alone
    count: int  # warp instructions
    seconds: float  # processor time of a launch
    arithmetic: float  # part of `seconds` in products of tensor cores
    name: str


def paces(least: int, runs: int, only: str) -> Iterator[Pace]:
    for case in load_cases():
        if only in case.name:
            count, seconds, running, products = fastest(case, runs)
            if case.run(checks=False).stats["tensor_operations"] and not products:
                products = max(0.0, running - fastest(case, runs, dry=True)[2])
            if count >= least:
                paces = (count / spent for spent in (seconds - products, seconds, running))
                yield Pace(*paces, count, seconds, products, case.name)


def fastest(case: Case, runs: int, dry: bool = False) -> tuple[int, float, float, float]:
    """Warp instructions of a run without checks, its processor seconds, those of its clusters, and those of
    tcgen05's arithmetic. dry: without the arithmetic of other products.
    """
    count, best = 0, (float("inf"), 0.0, 0.0)
    spent = [0.0, 0.0, 0.0]
    with contextlib.ExitStack() as stack:
        stack.enter_context(timed(LoadedModule, "launch", spent, 0))
        stack.enter_context(timed(Cluster, "run", spent, 1))
        for owner, name in TCGEN05:
            stack.enter_context(timed(owner, name, spent, 2))
        if dry:
            stack.enter_context(mock.patch.object(Cluster, "start", _dry(Cluster.start)))
        for _ in range(runs):
            spent[:] = 0.0, 0.0, 0.0
            count = case.run(checks=False).stats["warp_instructions"]
            best = min(best, (spent[0], spent[1], spent[2]))
    return count, *best


def _dry(start):
    def begin(cluster, index: int) -> None:
        start(cluster, index)
        cluster.control[bytecode.DRY] = 1

    return begin


def timed(owner, name: str, spent: list[float], number: int):
    """A context in which the processor time of a function or method is added to spent[number]."""
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
    print("M/s: added   launch clusters  instructions      ms  products  kernel")
    for one in found:
        rates = " ".join(f"{rate / 1e6:8.2f}" for rate in one[:3])
        times = f"{1e3 * one.seconds:8.2f} {one.arithmetic / one.seconds:8.0%}"
        print(f"    {rates}  {one.count:12,} {times}  {one.name}")
    for what, rates in zip(("added", "launch", "clusters"), list(zip(*found, strict=True))[:3], strict=True):
        below, middle = sum(rate < ASKED for rate in rates), statistics.median(rates)
        numbers = f"slowest {min(rates) / 1e6:.2f} M/s, median {middle / 1e6:.2f}"
        print(f"{what}: {numbers}, {below} of {len(rates)} below {ASKED / 1e6:.0f}")


if __name__ == "__main__":
    main()
