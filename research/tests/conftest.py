"""Fixtures that several tests of the studies share."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

TIRX_KERNELS = Path(__file__).resolve().parents[1] / "tirx_kernels"


@pytest.fixture
def tool(monkeypatch):
    """A module of tirx_kernels, which its scripts import by its plain name."""
    monkeypatch.syspath_prepend(TIRX_KERNELS)
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        if str(TIRX_KERNELS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
