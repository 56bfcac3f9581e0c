"""./lab trace: the chart fits 100 columns, files are whole, bad input is one line."""

import json

import pytest

from lab_cli import trace_chart
from lab_cli.common import REFERENCE
from ptxsim.trace.schedule import LOADS, TENSOR, Event, Lane, Timeline
from ptxsim.trace.schedule import Costs as Ticks
from tirxlab.steps import sections

K = ["--kernels", str(REFERENCE)]
SIZE = ["--size", "128x128x512"]


def test_the_chart_shows_loads_under_mmas_in_step_5_and_not_in_step_4(run):
    pictures = {}
    for step in ("4", "5"):
        status, out, _ = run("trace", step, *K, *SIZE)
        lines = out.splitlines()
        assert status == 0 and max(map(len, lines)) <= trace_chart.WIDTH
        rows = {line[:30].strip(): line[30:].ljust(70) for line in lines[1:8]}
        pictures[step] = list(zip(rows[LOADS], rows[TENSOR], strict=True))
        assert "not a unit of time" in out and "loads and MMAs overlap in" in out
    assert ("L", "M") in pictures["5"] and ("L", "M") not in pictures["4"]


def test_warps_of_one_role_share_a_row_and_others_are_left_out(run):
    _, out, _ = run("trace", "7", *K, *SIZE)
    titles = [line[:17].strip() for line in out.splitlines()[2:8]]
    assert titles == [
        "WG1 warp 3 (TMA)", "TMA loads", "WG1 warp 0 (MMA)", "tensor core", "WG0 (write-back)", "TMA stores",
    ]  # fmt: skip


def test_json_has_the_events_and_their_costs(run):
    status, out, _ = run("trace", "8", *K, *SIZE, "--json", "--cost", "latency=0", "--cost", "mma=8192")
    said = json.loads(out)
    assert status == 0 and said["finished"] and said["costs"]["latency"] == 0 and said["costs"]["mma"] == 8192
    loads = [e for e in said["events"] if e["kind"] == "load"]
    assert len(loads) == 16 and all(e["end"] - e["begin"] == 16384 // 64 for e in loads)
    assert said["overlaps"]["loads and MMAs"]["ticks"] > 0
    assert said["not_checked"] == ["147 of 148 CTAs: they were not run"]


@pytest.mark.parametrize("suffix, words", [(".json", '"traceEvents"'), (".svg", "<svg ")])
def test_files_are_written_whole(run, tmp_path, suffix, words):
    file = tmp_path / f"step5{suffix}"
    file.write_text("old")
    status, out, _ = run("trace", "5", *K, *SIZE, "--out", str(file))
    assert status == 0 and words in file.read_text() and out.endswith(f"written to {file}\n")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_deadlock_is_shown_up_to_the_standstill(run, tmp_path):
    parts = sections(REFERENCE.read_text())
    parts[4] = parts[4].replace("phase = phase ^ 1", "pass")
    file = tmp_path / "gemm_kernels.py"
    file.write_text("".join(parts.values()))
    status, out, _ = run("trace", "4", "--kernels", str(file), *SIZE)
    assert status == 1
    assert "up to the standstill" in out.splitlines()[0]
    assert "!!!" in out and "error: deadlock: " in out and max(map(len, out.splitlines()[:8])) <= 100


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["12"], "step 12 does not exist"),
        (["4,5"], "takes one step"),
        (["4", "--size", "100"], "step 4 at 100: M must be a multiple of 128 (got 100)"),
        (["4", "--size", "x"], "is not a size"),
        (["4", "--out", "x.png"], "--out x.png: the name must end in .json or .svg"),
        (["4", "--out", "nowhere/x.svg"], "--out nowhere/x.svg: there is no folder nowhere"),
        (["4", "--cost", "clock=2"], "'clock=2' is not a cost: write NAME=N"),
        (["4", "--cost", "load=fast"], "'load=fast' is not a cost"),
        (["4", "--cost", "load=0"], "cost load is a whole number from 1 on (got 0)"),
        (["4", "--order", "fast"], "is not an order"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, arguments, words):
    status, out, err = run("trace", *arguments, *K)
    assert status == 2 and out == "" and err.startswith("lab: ") and err.count("\n") == 1
    assert words in err


def test_a_column_shows_what_covers_most_of_it_in_small_letters_below_half():
    lanes = [Lane(0, TENSOR, TENSOR, ())]
    events = [Event(0, TENSOR, "mma", "", begin=b, end=e) for b, e in ((0, 10), (10, 14), (26, 30))]
    timeline = Timeline(events, lanes, 880, Ticks(), True)
    (_, line) = trace_chart.chart(timeline)
    assert line.plain[len(TENSOR) + 1 :].rstrip() == "Mmm" and len(line.plain) == trace_chart.WIDTH


@pytest.mark.parametrize("width, expected", [(72, 72), (300, trace_chart.WIDTH), (10, trace_chart.MIN_WIDTH)])
def test_a_chart_is_as_wide_as_the_terminal(width, expected):
    lanes = [Lane(0, TENSOR, TENSOR, ())]
    timeline = Timeline([Event(0, TENSOR, "mma", "", begin=0, end=10)], lanes, 880, Ticks(), True)
    assert {len(line.plain) for line in trace_chart.chart(timeline, width)} == {expected}
