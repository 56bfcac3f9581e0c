"""Processes that one test leaves idle serve the next one, but not in another environment."""

import os

import parked
import pytest

from tirxlab.pool import Pool


@pytest.fixture
def pid_of(monkeypatch):
    """The process that works for a test of that name, with another environment variable or none."""
    parked.use(monkeypatch)

    def ask(test: str, variable: str = "") -> int:
        with monkeypatch.context() as patch:
            patch.setenv("PYTEST_CURRENT_TEST", f"{test} (call)")
            patch.setenv("LAB_OF_THIS_TEST", variable)
            with Pool(1) as pool:
                pool.submit("pid", os.getpid)
                ((_, pid),) = pool.results()
        return pid

    return ask


def test_the_name_of_a_test_does_not_count(pid_of):
    assert pid_of("one") == pid_of("another")


def test_any_other_variable_does(pid_of):
    assert pid_of("one") != pid_of("one", "set")
