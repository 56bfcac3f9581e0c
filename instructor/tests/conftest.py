"""Shared setup of the grader's tests."""

import parked
import pytest


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    parked.use(monkeypatch)
