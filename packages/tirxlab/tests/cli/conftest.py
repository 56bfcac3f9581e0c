"""Fixtures that tests of the commands share."""

import parked
import pytest
from cli_fixtures import kernels, run  # noqa: F401


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    parked.use(monkeypatch)
