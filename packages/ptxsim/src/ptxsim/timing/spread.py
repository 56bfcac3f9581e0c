"""Estimates how the work of a grid is distributed over its clusters: runs some and counts their instructions.

A persistent kernel with 2.2 tiles per CTA gives three tiles to some CTAs and two to the others; a triangle of
tiles gives each cluster a different number. Work is the number of tensor-core instructions, or of all
instructions if there are none. Clusters between two that do equal work are assumed to do the same; if the two
differ, one between them is run too, until the uncertainty is below CLOSE of the total. A grid may be periodic
(the row blocks of one head after those of another); then only its first period is examined (_period).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ptxsim.grid.single import single_cluster
from ptxsim.jit import bytecode
from ptxsim.machine.blas import one_thread
from ptxsim.machine.launch_view import Launch
from ptxsim.timing.listening import listens

CLOSE = 0.01  # accepted uncertainty, as a share of the work of the grid
SAME = 0.005  # relative difference of equal clusters; failed polls are instructions too
MOST = 16  # clusters that are run at most


@dataclass(frozen=True)
class Spread:
    """The distribution of the work of one launch."""

    largest: int  # index of the cluster with the most work, of those that were run
    mean: float  # mean work of a cluster, as a share of the largest one's
    shares: tuple[float, ...] = ()  # work of each cluster in grid order, as such a share; () if all are equal


def spread(launch: Launch) -> Spread:
    """Runs clusters without moving data. A grid whose clusters wait for each other counts as even."""
    count = math.prod(launch.clusters)
    if count == 1 or listens(launch.program):
        return Spread(0, 1.0)
    run = cache(_counter(launch))
    what = 0 if run(0)[0] or run(count - 1)[0] else 1
    return _spread(lambda index: run(index)[what], count, launch.clusters)


def _spread(run, count: int, grid: tuple[int, ...]) -> Spread:
    """The distribution. run: index -> instructions of this cluster; grid: clusters along each axis."""
    period = _period(run, count, grid)
    found = _counted(run, period)
    largest = max(found, key=lambda index: (found[index], -index))
    places = sorted(found)
    shares = np.interp(range(period), places, [found[place] / found[largest] for place in places])
    shares = np.resize(shares, count)  # repeats the period
    even = _same(min(found.values()), found[largest])
    return Spread(largest, float(shares.mean()), () if even else tuple(shares.tolist()))


def _period(run, count: int, grid: tuple[int, ...]) -> int:
    """The period of the work in clusters; `count` if the work is not periodic or seems to be even."""
    if _same(run(0), run(count - 1)):
        return count
    for period in (_straight(run, count), grid[0], grid[0] * grid[1]):
        looked_at = count - 1, period, 2 * period - 1, count // 2, count // 3
        if 1 < period < count and all(_same(run(i % period), run(i)) for i in looked_at if i < count):
            return period
    return count


def _straight(run, count: int) -> int:
    """The first cluster whose work is not on the line through the first two. `count` if all are on it, or if
    the line is level, since repeating a level line is even.
    """
    low, high = 1, 2
    step = run(1) - run(0)
    if _same(run(0), run(1)):
        return count

    def fits(index: int) -> bool:
        return _same(run(index), run(0) + step * index)

    while high < count and fits(high):
        low, high = high, 2 * high
    high = min(high, count)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return high


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(one, other)


def _counter(launch: Launch):
    """A function: index -> (tensor instructions, all instructions) of this cluster."""
    cluster = single_cluster(launch)
    cluster.dry = True

    def run(index: int) -> tuple[int, int]:
        cluster.forget_counts()
        with one_thread():
            cluster.start(index)
            cluster.run(alone=True)
        return cluster.tensor_operations, int(cluster.control[bytecode.EXECUTED])

    return run


def _counted(run, count: int) -> dict[int, int]:
    """Index -> instructions, for the first cluster, the last, and those between that have to be run."""
    found = {index: run(index) for index in (0, count - 1, _inside(0, count - 1))}
    while len(found) < MOST:
        places = sorted(found)
        gaps = [(_unknown(found, a, b), a, b) for a, b in zip(places, places[1:], strict=False)]
        worst, a, b = max(gaps)
        if sum(gap for gap, _, _ in gaps) <= CLOSE * _total(found) or not worst:
            break
        found[_inside(a, b)] = run(_inside(a, b))
    return found


def _inside(a: int, b: int) -> int:
    """A cluster between two others; not the middle, which may be in step with the rows of the grid."""
    return a + round((b - a) * 0.382)


def _unknown(counted: dict[int, int], a: int, b: int) -> float:
    """Possible error, in instructions, of the sum over the clusters between `a` and `b`."""
    return 0.0 if _same(counted[a], counted[b]) else abs(counted[a] - counted[b]) * (b - a - 1) / 2


def _total(counted: dict[int, int]) -> float:
    """Instructions of all clusters; those between two that were run count as the mean of the two."""
    places = sorted(counted)
    between = sum(
        (b - a - 1) * (counted[a] + counted[b]) / 2 for a, b in zip(places, places[1:], strict=False)
    )
    return between + sum(counted.values())
