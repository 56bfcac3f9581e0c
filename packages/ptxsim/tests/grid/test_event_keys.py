"""What identifies an event: its arguments and the state of its barrier, but not its addresses in global
memory.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.events.bus import EVENTS, MAKE_TOKENS
from ptxsim.events.records import (
    Arrival,
    BarArrival,
    BulkCopy,
    Commit,
    CopyArrival,
    Fence,
    Footprint,
    Operand,
    PhaseWait,
    SharedSpan,
    TensorWork,
    TmemCells,
)
from ptxsim.grid.repeats import event_keys
from ptxsim.grid.repeats.global_rows import GlobalRows
from ptxsim.machine.tensor_map import TensorMap

FOOTPRINT, SPAN = Footprint((0,)), SharedSpan.of(0, np.arange(4))
TENSOR = TensorMap(np.zeros((64, 64), np.float16), (8, 8))
OPERAND = Operand("a", 0, SPAN.chunks, "f16", 64, False, False)
CELLS = TmemCells.of(0, *np.zeros((2, 1, 1), int))
LOGS = ("reads", "writes", "log")
COPY = BulkCopy("load", TENSOR, (0, 0), 0, 128, None, (SPAN,), ((0, 64),))


def arguments(event: str = "mbarrier_arrive") -> dict:
    """A value for each parameter of events."""
    barrier = SimpleNamespace(phase=1, pending=1, expected=2, tx=0)
    cluster = SimpleNamespace(mbarriers={(0, 64): barrier}, alive=[9] * 8)
    split = SimpleNamespace(row=5, warp=0, mask=1, cta=0, index=0)
    work = SimpleNamespace(where=split, footprint=FOOTPRINT, accumulates=True, partial=False)
    log = np.array([[5, 0, 1 << 40, 8]])
    split_like = {"split": split, "waiting": [split], "work": work, "works": [work]}
    names = ["number", "start", "cta", "lane", "members", "columns", "depth", "group", "allowed", "arrivals"]
    tokens = {"token": [(0, 5)], "tokens": [[(0, 5)]]}
    records = {"copy": COPY, "span": SPAN, "cells": CELLS, "commit": Commit(((0, 64),))}
    records |= {"wait": PhaseWait(1, (0, 64), 0, True), "fence": Fence(True, False, False, False)}
    records |= {"operands": (OPERAND,), "into": (0, (1, 2))}
    flags = dict.fromkeys(("relaxed", "write", "after", "reading", "fresh"), False)
    records["arrival"] = ARRIVALS.get(event, (None,))[0]
    others = {"cluster": cluster, "kind": "store", "place": (0, 64), **dict.fromkeys(LOGS, log)}
    return split_like | dict.fromkeys(names, 3) | tokens | records | flags | others


ARRIVALS = {  # event -> its arrival, and another one
    "bar_arrive": (BarArrival(3, None, True), BarArrival(3, 64, True)),
    "mbarrier_arrive": (Arrival(1, (0, 64), 1, True), Arrival(1, (0, 64), 1, True, 16)),
    "cp_async_signal": (CopyArrival(((0, 64),), True), CopyArrival(((1, 64),), True)),
}
ARRIVALS["cp_async_arrive"] = ARRIVALS["cp_async_signal"]
ROW = dict.fromkeys(("fence", "cluster", "works"))  # determined by the row, or tested below
OTHERS = ROW | {  # parameter -> another value, if it is not a number
    "place": (0, 128),
    "kind": "load",
    "waiting": [],
    "token": [(1, 5)],
    "tokens": [[(1, 5)]],
    "span": SharedSpan.of(0, np.arange(8)),
    "work": SimpleNamespace(footprint=Footprint((0,)), accumulates=True, partial=False),
    "cells": TmemCells.of(0, *np.zeros((2, 1, 1), int)),
    "copy": COPY._replace(offset=64),
    "commit": Commit(((1, 64),)),
    "operands": (),
    "into": (0, (1, 3)),
    "wait": PhaseWait(1, (0, 64), 1, True),
    "split": SimpleNamespace(row=6, warp=0, mask=1, cta=0, index=0),
    **dict.fromkeys(LOGS, np.array([[5, 0, (1 << 40) + 4, 8]])),
}
CASES = [
    (e, p)
    for e in event_keys.OURS
    for p in EVENTS[e]
    if OTHERS.get(p, 0) is not None and not (p == "copy" and "token" in EVENTS[e])
]


def key_of(event: str, given: dict) -> tuple:
    keys = []
    space = {"append": keys.append, "tokens": lambda: 0, "state": event_keys.state, "form": event_keys.form}
    space |= {"inside": lambda log: GlobalRows(np.zeros(99, np.int64))(log)[0], "box": lambda *_: None}
    event_keys.function(event, event_keys.RECORD, space)(*[given[p] for p in EVENTS[event]])
    return keys[0]


@pytest.mark.parametrize("event, parameter", CASES)
def test_a_key_tells_arguments_apart(event, parameter):
    given = arguments(event)
    known = OTHERS.get(parameter, given[parameter] + 1 if isinstance(given[parameter], int) else None)
    known = ARRIVALS[event][1] if parameter == "arrival" else known
    given["cluster"].mbarriers[0, 128] = given["cluster"].mbarriers[0, 64]
    assert key_of(event, given) == key_of(event, arguments(event) | {"cluster": given["cluster"]})
    assert key_of(event, given) != key_of(event, given | {parameter: known})


@pytest.mark.parametrize(
    "event",
    [e for e in event_keys.OURS if "place" in EVENTS[e] and e != "tmem_alloc"]
    + ["mbarrier_arrive", "mbarrier_wait", "mbarrier_blocked"],
)
def test_a_key_holds_the_state_of_the_barrier(event):
    given, other = arguments(event), arguments(event)
    other["cluster"].mbarriers[0, 64].tx = 16
    assert key_of(event, given) != key_of(event, other)


@pytest.mark.parametrize("event", ["accesses", "cp_async_issue"])
def test_where_in_global_memory_does_not_matter(event):
    given = arguments()
    for name in ("log", "reads"):
        given[name] = np.array([[5, 0, 0x7000_0000_0000, 8]])
    moved = given | {name: given[name] + [[0, 0, 64, 0]] for name in ("log", "reads")}
    wider = given | {name: given[name] + [[0, 0, 0, 8]] for name in ("log", "reads")}
    assert key_of(event, given) == key_of(event, moved) != key_of(event, wider)


def test_where_a_box_lies_matters_only_at_an_edge():
    tmap = TensorMap(np.zeros((64, 64), np.float16), (8, 8))
    inside, moved, out = (event_keys.form(tmap, start) for start in ((0, 0), (8, 40), (60, 0)))
    assert inside == moved != out
    assert event_keys.form(tmap, (60, 0)) == event_keys.form(tmap, (60, 8)) != event_keys.form(tmap, (62, 0))


def test_every_event_that_makes_a_token_gives_one_with_its_number():
    for event in MAKE_TOKENS:
        space = {"append": [].append, "tokens": lambda: 4, "form": event_keys.form, "box": lambda *_: None}
        space["inside"] = lambda log: b""
        given = arguments()
        token = event_keys.function(event, event_keys.RECORD, space)(*[given[p] for p in EVENTS[event]])
        assert token == [(4, 5)]


@pytest.mark.parametrize(
    "field, other",
    [
        ("tensor", TensorMap(np.zeros((64, 64), np.float16), (8, 16))),
        ("start", (60, 0)),
        ("offset", 64),
        ("size", 64),
        ("source", SPAN),
        ("targets", (SharedSpan.of(0, np.arange(4)),)),
        ("barriers", ((1, 64),)),
    ],
)
def test_a_copy_is_told_by_all_that_the_row_does_not_say(field, other):
    given = arguments()
    assert key_of("copy_issue", given) != key_of(
        "copy_issue", given | {"copy": COPY._replace(**{field: other})}
    )


def test_work_is_told_by_all_that_the_row_does_not_say():
    fields = {"footprint", *TensorWork._fields} - {"name", "text", "where", "group", "task"}
    assert {f"work.{field}" for field in fields} == set(event_keys._PARTS["work"].split(", "))
