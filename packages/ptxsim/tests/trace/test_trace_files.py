"""Files made from a timeline: valid Chrome trace events with arrows, and pictures of bounded size."""

import json
import re
import xml.etree.ElementTree as xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxsim.trace.bands import Bar, arranged, arrows, bands, rows
from ptxsim.trace.drawing import ARROWS, BAR, COLOURS, LEFT, WIDTH, described, stack, svg
from ptxsim.trace.export import chrome, shown
from ptxsim.trace.scale import marks, step_of, words
from ptxsim.trace.schedule import BARRIERS, LOADS, TENSOR, Costs, Event, Lane, Timeline, schedule, summarise

SVG = "{http://www.w3.org/2000/svg}"
REQUIRED = {  # ph -> keys that the Trace Event Format requires
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "i": {"name", "cat", "pid", "tid", "ts", "s"},
    "M": {"name", "pid", "tid", "args"},
    "s": {"name", "cat", "pid", "tid", "ts", "id"},
    "f": {"name", "cat", "pid", "tid", "ts", "id", "bp"},
}


def pipeline(turns: int, unit: str = "ticks") -> Timeline:
    """One warp loads, one multiplies, with a barrier in each direction as in step 7; four readers idle."""
    events: list[Event] = []

    def note(*about, **more) -> int:
        events.append(Event(0, *about, **more))
        return len(events) - 1

    last = {"warp 0": None, "warp 1": None}
    empty = None
    for turn in range(turns):
        after = [n for n in (last["warp 0"], empty) if n is not None]
        wait = note("warp 0", "wait", "mma2tma[0]", after=after, phase=turn - 1)
        issue = note("warp 0", "issue", "TMA load", after=[wait], line=10)
        load = note(LOADS, "load", "A <to> Asmem", 16384, after=[issue], line=10)
        full = note(BARRIERS, "phase", "tma2mma[0]", after=[load], phase=turn)
        before = [last["warp 1"]] if last["warp 1"] is not None else []
        wait = note("warp 1", "wait", "tma2mma[0]", after=[*before, full], phase=turn)
        made = note("warp 1", "issue", "tcgen05.mma", after=[wait])
        mma = note(TENSOR, "mma", "MMA 128x128", 128 * 128 * 16, after=[made], line=20)
        commit = note(TENSOR, "commit", "commit", after=[mma])
        empty = note(BARRIERS, "phase", "mma2tma[0]", after=[commit], phase=turn)
        last |= {"warp 0": issue, "warp 1": made}
    for warp in range(4, 8):
        note(f"warp {warp}", "wait", "mma2ld[0]", after=[empty], phase=0)
        note(f"warp {warp}", "TMEM read", "TMEM read", 4096, after=[len(events) - 1])
    lanes = [Lane(0, "warp 0", "WG0 warp 0 (TMA)", ("TMA",)), Lane(0, LOADS, LOADS, ())]
    lanes += [Lane(0, "warp 1", "WG0 warp 1 (MMA)", ("MMA",)), Lane(0, TENSOR, TENSOR, ())]
    lanes += [Lane(0, f"warp {4 + i}", f"WG1 warp {i} (write-back)", ("write-back",)) for i in range(4)]
    ticks = schedule(events, Costs())
    made = Timeline(events, [summarise(events, ticks, lane) for lane in lanes], ticks, Costs(), True)
    made.unit = unit  # as from a time model
    return made


# ---- arrangement ----


def test_warps_of_a_role_are_one_band_and_their_equal_events_one_bar():
    found = arranged(pipeline(2))
    assert [band.title for band in found][-1] == "WG1 (write-back)" and len(found) == 5
    assert [(bar.first.kind, len(bar.events)) for bar in found[-1].bars] == [("wait", 4), ("TMEM read", 4)]


def test_an_arrow_goes_from_what_completed_the_phase_to_the_wait():
    timeline = pipeline(3)
    found = {arrow.wait: timeline.events[arrow.signal] for arrow in arrows(timeline)}
    for number, event in enumerate(timeline.events):
        if event.kind == "wait" and event.end > event.begin:
            wanted = {"tma2mma[0]": "load", "mma2tma[0]": "mma", "mma2ld[0]": "mma"}[event.name]
            assert found[number].kind == wanted and found[number].end == event.end
        else:
            assert number not in found


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=40))
def test_rows_hold_everything_once_and_nothing_overlaps(spans):
    events = [Event(0, LOADS, "load", str(i), begin=b, end=b + d) for i, (b, d) in enumerate(spans)]
    made = rows(events)
    assert sorted(e.name for row in made for e in row) == sorted(e.name for e in events)
    assert all(a.end <= b.begin for row in made for a, b in zip(row, row[1:], strict=False))


# ---- Chrome's trace events ----


@pytest.mark.parametrize("unit, scale", [("ticks", 1), ("ns", 1e-3)])
def test_trace_events_have_what_the_format_asks_for(unit, scale):
    timeline = pipeline(5, unit)
    data = json.loads(json.dumps(chrome(timeline, "a pipeline")))
    events = data["traceEvents"]
    assert all(REQUIRED[event["ph"]] <= set(event) for event in events)
    longest = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert longest == pytest.approx(timeline.ticks * scale)
    assert {e["pid"] for e in events} == {0} and data["otherData"]["finished"] is True


def test_flow_events_come_in_pairs_inside_the_slices_that_they_join():
    timeline = pipeline(5)
    events = chrome(timeline, "")["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]

    def enclosing(flow):
        (found,) = [
            s for s in slices
            if s["tid"] == flow["tid"] and s["ts"] <= flow["ts"] < s["ts"] + s["dur"]
        ]  # fmt: skip
        return found

    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == len(arrows(timeline)) > 8
    for number, start in starts.items():
        end = ends[number]
        assert end["bp"] == "e" and (start["name"], start["cat"]) == (end["name"], end["cat"])
        assert enclosing(start)["cat"] in ("load", "mma") and enclosing(end)["cat"] == "wait"
        assert start["ts"] <= end["ts"]


def test_a_long_run_keeps_its_first_events_and_says_so():
    timeline = pipeline(50)
    made = chrome(timeline, "", most=100)
    kept = [e for e in made["traceEvents"] if e["ph"] in "Xi"]
    assert len(kept) == 100 and len(chrome(timeline, "")["traceEvents"]) > 300
    (note,) = made["otherData"]["notes"]
    assert note.startswith("events after ") and note.endswith(
        f" of {100 + int(note.split(': ')[1].split()[0])}"
    )
    assert max(e["ts"] for e in kept) <= sorted(e.begin for e in timeline.events if shown(e))[100]


# ---- pictures ----


def test_a_picture_has_axis_labels_arrows_and_only_escaped_names():
    root = xml.fromstring(svg(pipeline(4), "step <4>"))
    said = [node.text for node in root.iter(SVG + "text")]
    assert any("step <4>" in text for text in said) and "ticks" in said and "1,000" in said
    assert "tma2mma[0]" in said and "WG1 (write-back)" in said  # a wait is labelled with its barrier
    titles = [node.text for node in root.iter(SVG + "title")]
    assert any(t.endswith("ends the wait for tma2mma[0]") for t in titles)
    assert any("load: A <to> Asmem" in t and "16,384 B, line 10" in t for t in titles)


def test_a_picture_of_a_long_run_is_bounded():
    short, long = (svg(pipeline(turns), "x") for turns in (40, 4000))
    assert len(long) < 12 * len(short) and len(long) < 3_000_000
    assert len(pointing(xml.fromstring(long))) == ARROWS


def pointing(root: xml.Element) -> list[tuple[str, str]]:
    """(path, tooltip) of each arrow."""
    (group,) = [g for g in root.iter(SVG + "g") if "marker-end" in g.attrib]
    return [(path.attrib["d"], g.findtext(SVG + "title", "")) for g in group for path in g.iter(SVG + "path")]


def test_each_bar_is_a_stroke_from_its_begin_to_its_end_and_says_what_it_is():
    timeline = pipeline(1)
    root = xml.fromstring(svg(timeline, "x"))
    parents = {child: parent for parent in root.iter() for child in parent}
    bars = [path for path in root.iter(SVG + "path") if parents[path].get("stroke-width") == str(BAR)]
    said = {bar.findtext(SVG + "title", ""): bar for bar in bars}
    assert len(said) == len(bars) and "" not in said
    (load,) = [bar for title, bar in said.items() if title.startswith("load: A <to> Asmem")]
    (event,) = [e for e in timeline.events if e.kind == "load" and e.name == "A <to> Asmem"]
    x, _, width = map(float, re.findall(r"[\d.]+", load.attrib["d"]))
    scale = WIDTH / timeline.ticks
    assert (
        x == pytest.approx(LEFT + event.begin * scale, abs=0.06)
        and parents[load].get("stroke") == COLOURS["load"]
    )
    assert width == pytest.approx((event.end - event.begin) * scale, abs=0.06)


def test_each_arrow_says_which_wait_it_ends():
    timeline = pipeline(4)
    found = pointing(xml.fromstring(svg(timeline, "x")))
    assert len(set(found)) == len(found) > 4
    names = {timeline.events[a.wait].name for a in arrows(timeline)}
    assert {title.partition(" ends the wait for ")[2] for _, title in found} == names


def test_runs_are_stacked_on_one_axis_in_one_unit():
    one, two = pipeline(2, "ns"), pipeline(8, "ns")
    root = xml.fromstring(stack([("two turns", one), ("eight turns", two)]))
    said = [node.text for node in root.iter(SVG + "text")]
    assert [text for text in said if "turns:" in text] == [
        f"two turns: {words(one.ticks, 'ns')}", f"eight turns: {words(two.ticks, 'ns')}"
    ]  # fmt: skip
    assert (
        said.count("0") == 1
        and "modelled, not measured" in said[[i for i, t in enumerate(said) if "modelled" in t][0]]
    )


def test_a_run_that_hangs_shows_where():
    timeline = pipeline(1)
    timeline.finished = False
    end = timeline.ticks
    timeline.events.append(Event(0, "warp 0", "stuck", "mma2tma[0]", phase=3, begin=end - 200, end=end))
    said = svg(timeline, "hangs")
    assert "up to the standstill" in said and "waits forever for mma2tma[0], phase 3" in said


# ---- the axis ----


@settings(max_examples=200)
@given(st.floats(1, 1e9), st.integers(1, 20))
def test_marks_are_round_and_as_many_as_asked_for(end, most):
    found = marks(end, most)
    assert found[0] == 0 and found[-1] <= end and len(found) <= most + 1
    lead = f"{step_of(end, most):.0e}"[0]
    assert lead in "125"


@pytest.mark.parametrize(
    "value, unit, said",
    [(1536, "ticks", "1,536 ticks"), (840, "ns", "840 ns"), (23400, "ns", "23.4 µs"), (0.5, "ns", "0.5 ns")],
)
def test_times_in_words(value, unit, said):
    assert words(value, unit) == said


def test_a_bar_is_described_in_a_line():
    (bar, *_) = [b for band in arranged(pipeline(1)) for b in band.bars if b.first.kind == "mma"]
    assert described(bar, "ticks").startswith("mma: MMA 128x128, ") and described(bar, "ticks").endswith(
        "262,144 MACs, line 20"
    )
    assert len(bands(pipeline(1))) == 5


def test_a_bar_that_is_named_as_its_kind_is_named_once():
    event = Event(0, "warp 0", "shared read", "shared read", begin=2, end=9, line=7)
    assert described(Bar(event, 2, 9, [0], 16), "ticks") == "shared read, 2 to 9 ticks, 16 B, line 7"
