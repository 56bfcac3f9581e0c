"""What identifies an event: its arguments and the state of its barrier, but no place in global memory."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptxsim.checks.repeats import event_keys
from ptxsim.checks.repeats.global_rows import GlobalRows
from ptxsim.events.bus import EVENTS, MAKE_TOKENS
from ptxsim.events.records import Footprint, SharedSpan, TensorWork
from ptxsim.machine.tensor_map import TensorMap

FOOTPRINT, SPAN = Footprint((0,)), SharedSpan.of(0, np.arange(4))


def arguments() -> dict:
    """A value for each parameter of events."""
    shape = SimpleNamespace(number=1, expected=32)
    barrier = SimpleNamespace(phase=1, pending=1, expected=2, tx=0)
    cluster = SimpleNamespace(mbarriers={(0, 64): barrier}, alive=[9] * 8, unit_state={("bar", 0, 3): shape})
    split = SimpleNamespace(row=5, warp=0, mask=1, cta=0, index=0)
    work = SimpleNamespace(where=split, footprint=FOOTPRINT, accumulates=True, partial=False)
    tmap = TensorMap(np.zeros((64, 64), np.float16), (8, 8))
    log = np.array([[5, 0, 1 << 40, 8]])
    split_like = {"split": split, "waiting": [split], "work": work, "works": [work]}
    places = {"place": (0, 64), "places": [(0, 64)], "token": [(0, 5)], "start": (0, 0), "tmap": tmap}
    places["tokens"] = [[(0, 5)]]
    names = (
        "number",
        "cta",
        "lane",
        "lanes",
        "members",
        "parity",
        "columns",
        "depth",
        "group",
        "row",
        "rank",
        "offset",
    )
    numbers = dict.fromkeys((*names, "size", "allowed"), 3)
    arrays = {
        "span": SPAN,
        "cells": (np.zeros((1, 1), int),) * 2,
        "chunks": np.arange(4),
        "reads": log,
        "writes": log,
    }
    flags = dict.fromkeys(("relaxed", "write", "after", "reading"), False)
    others = {"cluster": cluster, "mods": {"x"}, "registers": (), "kind": "store", "ranks": [0], "log": log}
    return split_like | places | numbers | arrays | flags | others


ROW = dict.fromkeys(("mods", "registers", "cluster", "works"))  # the row fixes them, or see below
OTHERS = ROW | {  # parameter -> another value, where it is no number
    "place": (0, 128),
    "places": [(1, 64)],
    "kind": "load",
    "start": 32,
    "waiting": [],
    "token": [(1, 5)],
    "tokens": [[(1, 5)]],
    "ranks": [1],
    "span": SharedSpan.of(0, np.arange(8)),
    "work": SimpleNamespace(footprint=Footprint((0,)), accumulates=True, partial=False),
    "cells": (np.ones((1, 1), int), np.zeros((1, 1), int)),
    "chunks": np.arange(8),
    "tmap": TensorMap(np.zeros((64, 64), np.float16), (8, 16)),
    "split": SimpleNamespace(row=6, warp=0, mask=1, cta=0, index=0),
    **dict.fromkeys(("reads", "writes", "log"), np.array([[5, 0, (1 << 40) + 4, 8]])),
}
CASES = [
    (e, p)
    for e in event_keys.OURS
    for p in EVENTS[e]
    if OTHERS.get(p, 0) is not None and not (p == "start" and "tmap" in EVENTS[e])
]


def key_of(event: str, given: dict) -> tuple:
    keys = []
    numbers = key_of.numbers
    space = {"append": keys.append, "tokens": lambda: 0, "state": event_keys.state, "form": event_keys.form}
    space |= {"number": numbers, "inside": lambda log: GlobalRows()(log)[0], "box": lambda *_: None}
    event_keys.function(event, event_keys.RECORD, space)(*[given[p] for p in EVENTS[event]])
    return keys[0]


key_of.numbers = event_keys.Numbers()


@pytest.mark.parametrize("event, parameter", CASES)
def test_a_key_tells_arguments_apart(event, parameter):
    given = arguments()
    known = OTHERS.get(parameter, given[parameter] + 1 if isinstance(given[parameter], int) else None)
    given["cluster"].mbarriers[0, 128] = given["cluster"].mbarriers[0, 64]
    given["cluster"].unit_state["bar", 0, 4] = given["cluster"].unit_state["bar", 0, 3]
    assert key_of(event, given) == key_of(event, arguments() | {"cluster": given["cluster"]})
    assert key_of(event, given) != key_of(event, given | {parameter: known})


@pytest.mark.parametrize("event", [e for e in event_keys.OURS if "place" in EVENTS[e] and e != "tmem_alloc"])
def test_a_key_holds_the_state_of_the_barrier(event):
    given, other = arguments(), arguments()
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


def test_numbers_are_never_given_twice(monkeypatch):
    monkeypatch.setattr(event_keys, "MOST_ARRAYS", 4)
    numbers, kept = event_keys.Numbers(), [np.arange(n) for n in range(40)]
    assert len({numbers(array) for array in kept}) == 40
    assert numbers(np.arange(39)) == numbers(kept[39])


def test_work_is_told_by_all_that_the_row_does_not_say():
    fields = set(TensorWork.__annotations__) - {"name", "text", "where", "group"}
    assert {f"work.{field}" for field in fields} == set(event_keys._PARTS["work"].split(", "))
