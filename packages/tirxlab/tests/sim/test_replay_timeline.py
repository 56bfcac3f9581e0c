"""A replay as a timeline: nanoseconds, in the order that the program and the units allow."""

import itertools
import json
from collections import defaultdict

import pytest

from ptxsim.trace.bands import arrows
from ptxsim.trace.export import chrome
from ptxsim.trace.schedule import BARRIERS, LOADS, STORES, TENSOR
from tirxlab.cli.common import REFERENCE
from tirxlab.cli.trace_run import built_step
from tirxlab.forecast import timed

SIZE = (2048, 2048, 256)  # two tiles for the first CTA of step 7


@pytest.fixture(scope="module")
def seven():
    return timed(built_step(REFERENCE, 7, SIZE), "b200", 2.0 * SIZE[0] * SIZE[1] * SIZE[2])


def test_times_are_nanoseconds_within_the_predicted_time(seven):
    found, timeline = seven
    assert timeline.unit == "ns" and timeline.finished
    assert 0 < timeline.ticks < found.ms * 1e6
    assert all(0 <= e.begin <= e.end <= timeline.ticks for e in timeline.events)


def test_nothing_ends_before_what_it_waited_for(seven):
    _, timeline = seven
    for event in timeline.events:
        for before in (timeline.events[number] for number in event.after):
            assert event.end >= before.begin
            if event.kind == "wait" and before.lane in (BARRIERS, LOADS, TENSOR, STORES):
                assert event.end >= before.end - 1e-6


def test_waits_carry_the_names_of_their_barriers_and_arrows_end_them(seven):
    _, timeline = seven
    names = {e.name.partition("[")[0] for e in timeline.events if e.kind == "wait"}
    assert {"tma2mma", "mma2tma", "mma2ld", "ld2mma"} <= names
    assert not any("shared memory +" in e.name for e in timeline.events)
    kinds = {(timeline.events[a.signal].kind, timeline.events[a.wait].name[:7]) for a in arrows(timeline)}
    assert ("load", "tma2mma") in kinds and ("mma", "mma2tma") in kinds
    titles = [lane.title for lane in timeline.lanes]
    assert titles[:4] == ["WG1 warp 3 (TMA)", LOADS, "WG1 warp 0 (MMA)", TENSOR]


def test_a_trace_file_of_it_is_in_microseconds(seven):
    _, timeline = seven
    data = chrome(timeline, "step 7")
    last = max(e["ts"] + e["dur"] for e in data["traceEvents"] if e["ph"] == "X")
    assert last == pytest.approx(timeline.ticks / 1000, rel=0.01) and data["displayTimeUnit"] == "ns"


def test_a_trace_file_of_it_keeps_the_rules_that_perfetto_has(seven):
    """The Trace Event Format: slices of a track nest or follow each other, names are given once, flows are
    pairs in order of time that begin and end within slices.
    """
    data = json.loads(json.dumps(chrome(seven[1], "step 7"), allow_nan=False))
    events = data["traceEvents"]
    assert all(isinstance(e["name"], str) and e["name"] and e["ts"] >= 0 for e in events)
    named = [(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"]
    assert len(named) == len(set(named))
    tracks = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            assert e["dur"] >= 0 and ("thread_name", e["pid"], e["tid"]) in named
            tracks[e["pid"], e["tid"]].append((round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"]))))
    for slices in tracks.values():
        slices.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(slices))
    flows = defaultdict(list)
    for e in events:
        if e["ph"] in "sf":
            flows[e["id"]].append(e)
            at = round(1000 * e["ts"])
            assert any(a <= at < b or a == at == b for a, b in tracks[e["pid"], e["tid"]]), e
    assert len(flows) > 20
    for start, end in flows.values():
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e") and start["ts"] <= end["ts"]
