"""A wait that names the wrong barrier: every pair of barriers of a pipeline with three roles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.barrier_history import BarrierHistory, History, Signals, Waits
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.misnamed import misnamed, missent
from ptxsim.frontend.ast import Instr, Location
from ptxsim.isa.address_map import SHARED_START
from ptxsim.jit import bytecode
from ptxsim.report.findings import Reporter

LOADS, MULTIPLIES, STORES = 0, 1, 2
NAMES = ["full", "free", "done", "back"]
SIGNALS = {"full": LOADS, "free": MULTIPLIES, "done": MULTIPLIES, "back": STORES}
WAITS = {"full": MULTIPLIES, "free": LOADS, "done": STORES, "back": MULTIPLIES}
TEXT = type("Text", (), {"by_row": {}, "instrs": ()})  # contains no further signal
ROW = {name: 10 + row for row, name in enumerate(NAMES)}  # row of the wait that is meant for it


class Program:
    """Rows one after the other. ends: rows where control flow ends."""

    several_files = False

    def __init__(self, instrs, ends=()):
        self.instrs, self.by_row = instrs, dict(enumerate(instrs))
        self.code = np.zeros((len(instrs), bytecode.COLUMNS), np.int64)
        self.code[list(ends), bytecode.OP] = bytecode.EXIT


def pipeline():
    """(barrier by name, the case): barriers without any event yet."""
    place = {name: (0, SHARED_START + 8 * n) for n, name in enumerate(NAMES)}
    reporter = Reporter([(name, "uint64", place[name][1], 8) for name in NAMES])
    history = History(None, reporter)
    history.barriers |= {at: BarrierHistory(0, 0, 1) for at in place.values()}
    instrs = [Instr(None, "", (), (), 0, "", Location(row)) for row in range(20)]
    cluster = SimpleNamespace(
        bus=SimpleNamespace(observers=[history]), warps_per_cta=4, ctas=1, waits={}, splits={},
        launch=SimpleNamespace(program=TEXT, shared_offsets={}),
        program=Program(instrs),
    )  # fmt: skip
    return place, Case(cluster, reporter)


def found(renamed: dict[str, str], left_out="", stands=False, peeled=False, often=4):
    """The finding if each wait for a key of `renamed` names its value instead; the wait may block forever
    there. peeled: each wait has a second line, as where a loop's first round stands before the loop.
    """
    place, case = pipeline()
    for name, warp in SIGNALS.items():
        case.histories[place[name]].sources["arrive", warp, 1 + NAMES.index(name)] = Signals(1, 4)
    for name, warp in WAITS.items():
        at = place[renamed.get(name, name)]
        if name == left_out:
            continue
        if stands and name in renamed:
            case.cluster.waits[32 * warp] = SimpleNamespace(kind="mbarrier", detail={"place": at})
            case.cluster.splits[32 * warp] = SimpleNamespace(row=ROW[name])
        else:
            rows = case.histories[at].waits.setdefault(warp, Waits(0, 1, rows=set(), count=often)).rows
            rows |= {ROW[name], ROW[name] + len(NAMES)} if peeled else {ROW[name]}
    return misnamed(case)


def test_a_wait_that_comes_once_is_not_for_what_is_signalled_in_every_round():
    """In an attention kernel the loader and the MMAs wait once for Q; a wait in the loop is missing."""
    assert found({"free": "full"}).cause.id == "misnamed"
    assert found({"free": "full"}, often=1) is None


RENAMED = [(a, b) for a in NAMES for b in NAMES if a != b]


@pytest.mark.parametrize("stands", [False, True])
@pytest.mark.parametrize("meant, named", RENAMED)
def test_a_wait_that_names_another_barrier(meant, named, stands):
    told = found({meant: named}, stands=stands)
    assert f"nobody ever waits for {meant}" in told.text and f"line {ROW[meant]}" in told.text
    if told.cause.id == "misnamed":
        assert told.row == ROW[meant] and f"line {ROW[named]}" not in told.text
    else:
        assert told.cause.id == "one-misnamed" and f"line {ROW[named]}" in told.text


def test_the_record_parts_most_of_them():
    told = [found({meant: named}).cause.id for meant, named in RENAMED]
    assert told.count("misnamed") >= len(told) - 4


@pytest.mark.parametrize("left_out", NAMES)
def test_a_wait_that_is_left_out_is_no_wrong_name(left_out):
    assert found({}) is None
    assert found({}, left_out=left_out) is None


@pytest.mark.parametrize("left_out", ["free", "back"])
def test_two_lines_of_those_who_signal_the_neglected_barrier_are_not_wrong(left_out):
    assert found({}, left_out=left_out, peeled=True) is None


def sent(renamed: dict[str, str], left_out: str = "", ends=()):
    """The finding if each signal for a key of `renamed` goes to its value instead."""
    place, case = pipeline()
    case.cluster.program = Program(case.cluster.program.instrs, ends)
    for name, warp in SIGNALS.items():
        if name != left_out:
            source = "arrive", warp, 1 + NAMES.index(name)
            case.histories[place[renamed.get(name, name)]].sources[source] = Signals(
                1, 4, announces=name == "full"
            )
    case.histories[place["full"]].sources["load", LOADS, 5] = Signals(1, 4)
    for name, warp in WAITS.items():
        case.histories[place[name]].waits[warp] = Waits(0, 1, rows={ROW[name]})
    return missent(case)


@pytest.mark.parametrize("meant, named", RENAMED)
def test_a_signal_that_names_another_barrier(meant, named):
    told = sent({meant: named})
    line = f"line {1 + NAMES.index(meant)}"
    assert f"nobody signals {meant}, for which" in told.text and line in told.text
    assert told.cause.id == "one-missent" or told.row == 1 + NAMES.index(meant)


@pytest.mark.parametrize("left_out", NAMES)
def test_a_signal_that_is_left_out_is_no_wrong_name(left_out):
    assert sent({}) is None
    assert sent({}, left_out) is None


def test_lines_in_both_arms_of_a_branch_are_no_wrong_name():
    """The MMA warp commits to `free` at one of two lines; its commit to `done` is left out."""
    assert sent({"done": "free"}).cause.id == "one-missent"
    assert sent({"done": "free"}, ends=[1 + NAMES.index("free")]) is None


def test_lines_that_init_counts_together_are_no_wrong_name():
    """Two lines signal `done`, whose init counts both, and nobody signals `free`."""
    place, case = pipeline()
    case.histories[place["full"]].sources["arrive", LOADS, 1] = Signals(1, 4, announces=True)
    case.histories[place["back"]].sources["arrive", STORES, 4] = Signals(1, 4)
    for row, warp in ((2, MULTIPLIES), (3, LOADS)):
        case.histories[place["done"]].sources["arrive", warp, row] = Signals(1, 4)
    for name, warp in WAITS.items():
        case.histories[place[name]].waits[warp] = Waits(0, 1, rows={ROW[name]})
    assert missent(case) is not None
    case.histories[place["done"]].count = 2
    assert missent(case) is None
