"""When the garbage collector looks for cycles while runs start and end."""

import gc
import itertools

import pytest

from ptxsim.grid import processes
from ptxsim.grid.processes import only_new_garbage


def test_of_runs_in_several_threads_one_tells_the_collector():
    """Otherwise the end of each run would trigger a full collection in the next."""
    with only_new_garbage():
        before = gc.get_freeze_count(), gc.get_threshold()
        for _ in range(2):
            with only_new_garbage():  # as another thread would
                pass
        assert (gc.get_freeze_count(), gc.get_threshold()) == before and before[0] > 0
    assert gc.get_freeze_count() == 0


@pytest.fixture
def clock(monkeypatch):
    """Processor time, in which a full collection takes a second; records when one ran."""
    now, full, frozen = [0.0], [], []

    def collect():
        if not frozen:
            full.append(now[0])
            now[0] += 1.0

    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.setattr(gc, "unfreeze", frozen.clear)
    monkeypatch.setattr(processes.time, "process_time", lambda: now[0])
    monkeypatch.setattr(processes, "_not_before", 0.0)
    monkeypatch.setattr(processes, "_RUNS", itertools.count(1))
    return now, full


def test_full_collections_take_a_hundredth_of_the_time_at_most(clock, monkeypatch):
    monkeypatch.setattr(processes, "COLLECT_EVERY", 1)
    now, full = clock
    for _ in range(250):
        with only_new_garbage():
            now[0] += 1.0
    assert full == [1.0, 102.0, 203.0]


def test_one_run_in_many_ends_with_a_full_collection(clock):
    now, full = clock
    for _ in range(2 * processes.COLLECT_EVERY):
        with only_new_garbage():
            now[0] += 1.0
    assert full == [processes.COLLECT_EVERY, 2.0 * processes.COLLECT_EVERY + 1]
