"""Correct but unusual kernels compute the right product and lead to no error, in both orders.

By default one twin of each step; all of them with `./lab test --all` (marked slow).
"""

from __future__ import annotations

import pytest
from corpus import Bug, after, before, build_bug, run_bug, wrong_result
from twins import CHANGES, TWINS

QUICK = {next(t.name for t in TWINS[i:] if t.step == step) for step in range(1, 11) for i in [7 * step % 5]}


def test_there_are_many_and_each_change_applies():
    assert len({twin.name for twin in TWINS}) == len(TWINS) >= 60
    assert {twin.name.partition("-")[2] for twin in TWINS} == {change.name for change in CHANGES}


@pytest.mark.parametrize(
    "twin",
    [pytest.param(t, id=t.name, marks=() if t.name in QUICK else pytest.mark.slow) for t in TWINS],
)
def test_no_error(twin):
    artifact = build_bug(twin)
    for order in ("program", "adverse"):
        run = run_bug(twin, artifact, order)
        assert not [str(f) for f in run.findings if f.severity != "review"]
        assert wrong_result(twin, run) == ""


@pytest.mark.parametrize("step", [5, 6])
def test_memory_that_two_buffers_use_in_turn(step):
    """The result is in the memory of the stages, and each use of one waits for the use of the other."""
    over = (
        before("Dsmem = pool.alloc", "pool.move_base_to(1024)"),
        after("Dsmem = pool.alloc", "pool.move_base_to(1024 + PIPE_DEPTH * TILE_BYTES)"),
    )
    twin = Bug("in-turn", step, (256, 384, 320), over, "", "", "Loads begin behind the store.", ctas=2)
    artifact = build_bug(twin)
    for order in ("program", "adverse"):
        run = run_bug(twin, artifact, order)
        assert not run.findings
        assert wrong_result(twin, run) == ""
