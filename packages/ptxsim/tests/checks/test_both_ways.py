"""One barrier used in both directions, and stages that a third role hands back:
reported from fake records.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.barrier_history import BarrierHistory, History, Signals, Waits
from ptxsim.checks.diagnosis.both_ways import both_ways
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.running_ahead import _unused_handed_back
from ptxsim.checks.lifecycle.unwritten_outputs import _blocks
from ptxsim.checks.lifecycle.useless_stores import Stores, _diagonal
from ptxsim.frontend.ast import Instr, Location
from ptxsim.isa.address_map import SHARED_START
from ptxsim.report.findings import Reporter

LOADER, ISSUER, WRITER = 0, 1, 2  # warps
FULL, FREE = (0, SHARED_START), (0, SHARED_START + 8)


def fake() -> tuple[SimpleNamespace, History, Reporter]:
    reporter = Reporter([("full", "uint64", SHARED_START, 8), ("free", "uint64", SHARED_START + 8, 8)])
    history = History(None, reporter)
    history.barriers |= {FULL: BarrierHistory(0, 0, 1), FREE: BarrierHistory(0, 0, 1)}
    instrs = [Instr(None, "", (), (), 0, "", Location(10 + row)) for row in range(8)]
    cluster = SimpleNamespace(
        bus=SimpleNamespace(observers=[history]), warps_per_cta=4, ctas=1, waits={}, mbarriers={},
        program=SimpleNamespace(instrs=instrs, by_row=dict(enumerate(instrs)), several_files=False),
    )  # fmt: skip
    return cluster, history, reporter


@pytest.mark.parametrize("how", ["commit", "arrive"])
@pytest.mark.parametrize("threads", [1, 32])
@pytest.mark.parametrize("waiters", [{ISSUER, WRITER}, {ISSUER}, {WRITER}])
def test_two_sides_that_signal_and_wait(how, threads, waiters):
    cluster, history, reporter = fake()
    full = history.barriers[FULL]
    full.sources[how, ISSUER, 1] = Signals(1, 3)
    full.sources["arrive", WRITER, 2] = Signals((1 << threads) - 1, 3 * threads)
    full.waits |= {warp: Waits(0, 1, rows={3}) for warp in waiters}
    found = both_ways(Case(cluster, reporter), FULL)
    assert (found is not None) == (how == "commit" and threads == 1 and len(waiters) == 2)
    if found is not None:
        assert "full[0], init(1), is signalled by warp 1 lane 0 (line 11) and by warp 2 lane 0" in found.text


@pytest.mark.parametrize("signals", [1, 2, 3, 5])
@pytest.mark.parametrize("waits", [1, 2, 3])
def test_stages_that_a_third_hands_back(signals, waits):
    cluster, history, reporter = fake()
    history.barriers[FULL].sources["arrive", LOADER, 1] = Signals(1, waits, announces=True)
    history.barriers[FULL].waits[ISSUER] = Waits(0, 1, rows={2}, count=waits)
    history.barriers[FREE].waits[LOADER] = Waits(0, 1, fresh=3, rows={3})
    history.barriers[FREE].sources["arrive", WRITER, 4] = Signals(1, signals)
    found = _unused_handed_back(Case(cluster, reporter), FULL)
    assert (found.cause.id if found else None) == ("unused-third" if signals > waits else None)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("tiles", [(2, 3), (3, 2), (4, 4)])
def test_one_tile_in_a_corner_is_named(first, tiles):
    rows, columns = (128 * n for n in tiles)
    left = np.zeros((rows, columns), bool)
    left[(slice(128), slice(128)) if first else (slice(-128, None), slice(-128, None))] = True
    text, cause = _blocks(left)
    corner = (0, 127, 0, 127) if first else (rows - 128, rows - 1, columns - 128, columns - 1)
    assert text == ", rows {} to {} of columns {} to {}".format(*corner)
    assert cause == ("first-left-out" if first else "last-left-out")


@pytest.mark.parametrize("columns", [0, 64, 128])
@pytest.mark.parametrize("rows", [0, 128])
def test_a_peer_that_stores_behind_along_both_axes(rows, columns):
    starts = {0: [(0, 0), (64, 0)], 1: [(columns, rows), (64 + columns, rows)]}
    found = _diagonal(Stores(starts=starts), 1)
    assert found == (
        f"CTA 1 stores {columns} columns and {rows} rows past CTA 0, each time" if rows and columns else ""
    )
    starts[1][1] = (columns, rows)  # not the same distance each time
    assert not _diagonal(Stores(starts=starts), 1)
