"""What a thread passes on of other clusters, found step by step, is what all of its events give at once."""

from __future__ import annotations

import ctypes
import random
from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.race.other_clusters import ADDRESS, AGENT, EPOCH, LENGTH, TAG, OtherClusters, _join

AGENTS, PLACES = 6, 4


class AtOnce(OtherClusters):
    def _passed_on(self, by, row):
        rows: dict = {}
        for event in self.events[1 : self.used]:
            if row[event[AGENT]] >= event[EPOCH]:
                told = (ctypes.c_int32 * int(event[LENGTH])).from_address(int(event[ADDRESS]))
                _join(rows, int(event[TAG]), np.array(told, np.int32))
        return rows


def told(kind: type[OtherClusters], seed: int) -> list:
    """The flags after random reads, fences, barriers and writes of three clusters."""
    draw, others = random.Random(seed), kind(3)
    for now in (1, 2, 3):
        others.begin(now)
        clock = np.eye(AGENTS, dtype=np.int32)
        wide = [np.zeros(AGENTS, np.int32) for _ in range(AGENTS)]  # what each has released by its last fence
        clocks = SimpleNamespace(clock=clock, epoch=lambda agent, clock=clock: int(clock[agent, agent]))
        for _ in range(120):
            agent, place = draw.randrange(AGENTS), draw.randrange(PLACES)
            how = SimpleNamespace(acquires=draw.random() < 0.5, writes=draw.random() < 0.5)
            step = draw.random()
            if step < 0.4:
                others.read(clocks, agent, place, how)
            elif step < 0.5:
                others.fence(clocks, agent, draw.random() < 0.5)
                wide[agent] = clock[agent].copy()
                clock[agent, agent] += 1
            elif step < 0.6:  # a barrier of two threads
                both = [agent, draw.randrange(AGENTS)]
                clock[both] = clock[both].max(0)
                clock[both, both] += 1
            elif step < 0.8:
                others.write(place, agent, clock[agent].copy(), True, 0)
                clock[agent, agent] += 1
            else:
                others.write(place, agent, wide[agent], False, 0)
    return [{tag: row.tolist() for tag, row in others.flags.get(p, {}).items()} for p in range(PLACES)]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_passed_on(seed):
    assert told(OtherClusters, seed) == told(AtOnce, seed)
