"""Results in tensor memory that a product overwrites before anybody has read them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.lifecycle.lost_results import LostResults
from ptxsim.events.records import Footprint, Rectangle, TmemCells

D = (Rectangle(0, 0, 128, 0, 8),)
CELLS = TmemCells.of(0, *np.broadcast_arrays(np.arange(128), np.arange(8)[:, None]))


@pytest.mark.parametrize(
    "does, lost",
    [
        ("new add read new", 0),
        ("new add new", 1),
        ("new new", 0),
        ("new read change new", 1),
        ("new read change add new", 1),
        ("change new", 0),
        ("new operand new", 0),
        ("new read change read new", 0),
    ],
)
def test_who_has_read_what_is_overwritten(does, lost):
    said: list = []
    checks = LostResults(None, SimpleNamespace(add=lambda *args: said.append(args), by_identity={}))
    checks.start(SimpleNamespace(ctas=1))
    for what in does.split():
        made = Footprint((0,), cells_written=D, tile=(128, 8))
        if what in ("read", "change"):
            checks.tmem_access(None, None, CELLS, what == "change")
            continue
        if what == "operand":
            made = Footprint((0,), cells_read=D, cells_written=(Rectangle(0, 0, 128, 8, 8),), tile=(128, 8))
        work = SimpleNamespace(footprint=made, accumulates=what == "add", partial=False, where=None)
        checks.tensor_execute(None, [work])
    checks.finish(None)
    assert len(said) == lost
