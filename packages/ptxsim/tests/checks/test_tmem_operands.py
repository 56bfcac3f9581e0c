"""Columns that a product reads as A or as scale factors must have been written."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.lifecycle.tensor_memory import TmemLife
from ptxsim.events.records import Footprint, Rectangle


@pytest.mark.parametrize("written, said", [((), 1), ((4,), 0), ((8,), 1)])
def test_the_columns_of_an_operand(written, said):
    found: list = []
    program = SimpleNamespace(instrs=())
    cluster = SimpleNamespace(ctas=1, program=program)
    reporter = SimpleNamespace(by_identity={}, add=lambda *args, **more: found.append(args))
    checks = TmemLife(SimpleNamespace(), reporter)
    checks.start(cluster)
    checks.written[0, :, list(written)] = True
    cells = (Rectangle(0, 0, 128, 4, 4),)
    made = Footprint((0,), cells_read=cells, cells_written=(Rectangle(0, 0, 128, 16, 8),), tile=(128, 8))
    where = SimpleNamespace(cluster=cluster, thread=0)
    work = SimpleNamespace(name="tcgen05.mma", footprint=made, accumulates=False, partial=False, where=where)
    checks.tensor_execute(cluster, [work, work])
    assert len(found) == said and np.all(checks.written[0, :, 16:24])
