"""What tests of the grader share."""

import parked
import pytest


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    parked.use(monkeypatch)
