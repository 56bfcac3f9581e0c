"""Tensor memory that is freed while an MMA is under way: which waits have missed its commit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ptxsim.checks.barrier_history import BarrierHistory, Signals, Waits
from ptxsim.checks.diagnosis.last_commit import missed_commit


@pytest.mark.parametrize(
    "phases, seen, again, how",
    [(3, 2, None, ""), (3, 1, None, "2 times"), (3, 1, (1, 0), "twice on phase 1")],
)
def test_the_waits_for_a_commit(phases, seen, again, how):
    waits = Waits(seen, 1, again=again, rows={0}, count=2)
    history = BarrierHistory(0, 0, 1, {("commit", 5, 0): Signals(1)}, seen=seen, waits={1: waits})
    program = SimpleNamespace(by_row=[SimpleNamespace(src=None, line=7)])
    cluster = SimpleNamespace(mbarriers={(0, 64): SimpleNamespace(phase=phases)})
    case = SimpleNamespace(histories={(0, 64): history}, cluster=cluster, program=program, name=str)
    found = missed_commit(case)
    assert found is None if not how else found.text.endswith(f"(PTX line 7) have passed {how}")
