"""The first run: another process compiles what the checks call, for the argument types that a run uses."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.checks.lifecycle import shared_memory
from ptxsim.checks.race import shadow_access
from ptxsim.grid import first_run

COMPILED = shadow_access.touch_log, shadow_access.touch_spans, shared_memory.follow_log


def prepared():
    return ptxsim.load(ptxsim._SMALL).prepare("small", 1, 32, 1, 0, [np.zeros(32, np.uint32)])


def test_it_compiles_what_a_run_calls():
    first_run.compile_checks(prepared())
    before = [set(function.overloads) for function in COMPILED]
    assert all(before)
    ptxsim.warm_up()
    assert [set(function.overloads) for function in COMPILED] == before


@pytest.mark.parametrize("cold", [True, False])
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("fails", [True, False])
def test_another_process_does_it_while_there_is_none(cold, cores, fails, monkeypatch, tmp_path):
    def compile_checks(launch):
        (tmp_path / "done").write_text(launch.program.name)
        assert not fails

    monkeypatch.setattr(first_run, "_FIRST", iter([True]))
    monkeypatch.setattr(first_run, "is_cold", lambda: cold)
    monkeypatch.setattr(first_run, "cores", lambda: cores)
    monkeypatch.setattr(first_run, "compile_checks", compile_checks)
    for _ in range(2):
        assert prepared().loop is not None
    done = list(tmp_path.iterdir())
    assert bool(done) == (cold and cores > 1)
    assert not done or done[0].read_text() == "small"
