"""How long a grid of unequal clusters takes: when a cluster ends, the next in grid order starts in its place.

The first clusters are distributed over the SMs (or groups of SMs as large as a cluster) in turn until all are
full. Clusters on the same SM progress together, at the speed that a replay of as many equal clusters has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

MANY = 100_000  # with more clusters, the unevenness at the end of the grid is negligible
SAME = 1.0 + 1e-9  # times whose ratio is smaller are the same


def stretch(shares: Sequence[float], groups: int, slots: int, cycles: Callable[[int], float]) -> float:
    """Time of the grid, as a share of its time if all clusters were as long as the longest.

    shares: length of each cluster in grid order, the longest 1; empty: all are equal. slots: clusters that
    fit on an SM at a time. cycles: n -> cycles of n clusters of the longest kind that start together on an
    SM.
    """
    if not len(shares) or min(shares) == max(shares):
        return 1.0
    if len(shares) > MANY:
        return float(np.mean(shares))
    most = min(slots, -(-len(shares) // groups))
    played = sorted({min(most, 2**power) for power in range(most.bit_length() + 1)})
    paces = np.interp(range(most + 1), played, [cycles(n) for n in played]).tolist()
    return makespan(shares, groups, most, paces) / makespan([1.0] * len(shares), groups, most, paces)


def makespan(lengths: Sequence[float], groups: int, slots: int, paces: Sequence[float]) -> float:
    """When the last cluster ends, in cycles. paces[n]: cycles in which n clusters on an SM progress by 1."""
    waiting = iter(lengths)
    sms: list[list[float]] = [[] for _ in range(groups)]  # progress of an SM at which its clusters end
    done = dict.fromkeys(range(groups), 0.0)  # progress of the SMs where clusters have just ended
    ending: list[tuple[float, int]] = []
    at = 0.0
    while True:
        _start(waiting, sms, done, slots)
        for number, progress in done.items():
            if ends := sms[number]:
                heappush(ending, (at + (ends[0] - progress) * paces[len(ends)], number))
        if not ending:
            return at
        at = ending[0][0]
        done = {}
        while ending and ending[0][0] <= at * SAME:
            number = heappop(ending)[1]
            done[number] = sms[number][0]
            while sms[number] and sms[number][0] <= done[number] * SAME:
                heappop(sms[number])


def _start(waiting: Iterator[float], sms: list[list[float]], done: dict[int, float], slots: int) -> None:
    """Starts waiting clusters on the SMs where some have ended, always on the SM with the fewest clusters."""
    room = [(len(sms[number]), number) for number in done if len(sms[number]) < slots]
    heapify(room)
    while room and (length := next(waiting, None)) is not None:
        count, number = heappop(room)
        heappush(sms[number], done[number] + length)
        if count + 1 < slots:
            heappush(room, (count + 1, number))
