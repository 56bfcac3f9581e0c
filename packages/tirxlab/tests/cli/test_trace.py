"""./lab trace: the chart fits its width, any cluster can be drawn, files are
complete, bad input is one line.
"""

import io
import json

import pytest
from rich.console import Console

from ptxsim.trace.schedule import LOADS, TENSOR, Event, Lane, Timeline
from ptxsim.trace.schedule import Costs as Ticks
from tirxlab.cli import trace, trace_chart
from tirxlab.cli.common import REFERENCE
from tirxlab.steps import sections

K = ["--kernels", str(REFERENCE)]
SIZE = ["--size", "128x128x512"]


def test_the_chart_shows_loads_under_mmas_in_step_5_and_not_in_step_4(run):
    pictures = {}
    for step in ("4", "5"):
        status, out, _ = run("trace", step, *K, *SIZE)
        lines = out.splitlines()
        assert status == 0 and max(map(len, lines)) <= trace_chart.WIDTH
        rows = {line[:30].strip(): line[30:].ljust(70) for line in lines[2:9]}
        pictures[step] = list(zip(rows[LOADS], rows[TENSOR], strict=True))
        assert "not a unit of time" in out and "loads and MMAs overlap in" in out
    assert ("L", "M") in pictures["5"] and ("L", "M") not in pictures["4"]


def test_warps_of_one_role_share_a_row_and_others_are_left_out(run):
    _, out, _ = run("trace", "7", *K, *SIZE)
    titles = [line[:17].strip() for line in out.splitlines()[3:9]]
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


@pytest.mark.parametrize(
    "suffix, words",
    [(".json", b'"traceEvents"'), (".svg", b"<svg "), (".png", b"PNG"), (".html", b"Timeline of step 5")],
)
def test_files_are_written_whole(run, tmp_path, suffix, words):
    if suffix == ".png":
        pytest.importorskip("typst", reason="a PNG is drawn by typst, the extra `slides`")
    file = tmp_path / f"step5{suffix}"
    file.write_text("old")
    status, out, _ = run("trace", "5", *K, *SIZE, "--out", str(file))
    assert status == 0 and words in file.read_bytes() and out.endswith(f"written to {file}\n")
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


def test_any_cluster_can_be_drawn(run):
    status, out, _ = run("trace", "9", "512", *K, "--cluster", "3")
    first, second = out.splitlines()[:2]
    assert status == 0 and first.startswith("step 9 at 512, CTAs 6-7 of 148: ")
    assert second.startswith("cluster 3 of 74: SMs 6-7 of 148, wave 1 of 1")
    _, out, _ = run("trace", "1", "--size", "128x128x64", *K, "--json")
    assert json.loads(out)["cluster"] == 0


def test_with_a_chip_times_are_modelled(run):
    status, out, _ = run("trace", "4", "256", *K, "--chip", "b200")
    assert status == 0 and out.startswith("step 4 at 256, CTA 0 of 4, as a B200 would: ")
    assert "modelled, not measured" in " ".join(out.split()) and "A tick is not" not in out
    _, out, _ = run("trace", "4", "256", *K, "--chip", "b200", "--json")
    assert json.loads(out)["unit"] == "ns"


def test_a_kernel_that_cannot_be_built_is_one_message_and_leaves_no_file(run, tmp_path):
    parts = sections(REFERENCE.read_text())
    hostile = "    import os\n    os._exit(0)\n"
    head, rest = parts[4].split("\n", 1)
    parts[4] = f"{head}\n{hostile}{rest}"
    file, target = tmp_path / "gemm_kernels.py", tmp_path / "x.svg"
    file.write_text("".join(parts.values()))
    for command in (["trace", "4", "--out", str(target)], ["compare", "4", "5"]):
        status, out, err = run(*command, "--kernels", str(file), *SIZE)
        assert status in (1, 2) and out == "" and err.count("\n") == 1 and "step 4" in err, command
    assert not target.exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["12"], "step 12 does not exist"),
        (["4,5"], "takes one step"),
        (["4", "--size", "100"], "step 4 at 100: M must be a multiple of 128 (got 100)"),
        (["4", "--size", "x"], "is not a size"),
        (["4", "--out", "x.pdf"], "--out x.pdf: the name must end in .html, .json, .svg or .png"),
        (["4", "128", "--size", "256"], "the size is given twice"),
        (["4", "256", "--cluster", "4"], "--cluster 4: there is no cluster 4: the grid has 4"),
        (["4", "--out", "nowhere/x.svg"], "--out nowhere/x.svg: there is no folder nowhere"),
        (["4", "--cost", "clock=2"], "'clock=2' is not a cost: write NAME=N"),
        (["4", "--cost", "load=fast"], "'load=fast' is not a cost"),
        (["4", "--cost", "load=0"], "cost load is a whole number from 1 on (got 0)"),
        (["4", "--order", "fast"], "is not an order"),
        (["4", "--chip", "a100"], "--chip takes b200 or h200"),
        (["4", "--chip", "b200", "--cluster", "1"], "leave out --cluster"),
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


LONG = "CTA 0 WG1 warp 0 (TMA, cp.async, MMA, write-back)"


def waiting(ticks: int = 26_880, title: str = LONG) -> Timeline:
    """A warp that waits for a load."""
    lanes = [
        Lane(0, "warp 0", title, ("TMA",), 0.1, 0.9, {"tma2mma": 20_000, "mma2tma": 400}),
        Lane(0, LOADS, LOADS, ()),
    ]
    load = Event(0, LOADS, "load", "A to Asmem, part 1 of 4", end=ticks, line=12)
    wait = Event(0, "warp 0", "wait", "tma2mma[0]", after=[0], phase=0, begin=1, end=ticks)
    return Timeline([load, wait], lanes, ticks, Ticks(), True)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_nothing_is_wider_than_the_terminal_or_columns(monkeypatch, width, terminal):
    screen = io.StringIO()
    known = {"width": width} if terminal else {}
    console = Console(
        file=screen, force_terminal=terminal, color_system=None, soft_wrap=not terminal, **known
    )
    monkeypatch.setattr(trace, "output", lambda: console)
    monkeypatch.setenv("COLUMNS", str(width))
    trace.show(waiting(), "step 7 at 256", "cluster 0 of 148: SM 0 of 148, wave 1 of 1", None)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert max(len(line.rstrip()) for line in lines if "." * 9 in line) == width  # the chart uses all of it
    assert "tma2mma[0] phase 0, 26,879 ticks" in " ".join(" ".join(lines).split())


def test_without_terminal_and_columns_a_chart_has_100_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert trace.environ_width() == trace_chart.WIDTH == 100


@pytest.mark.parametrize(
    "end, unit, words", [(26_880, "ticks", ["|5,000", "ticks"]), (26_880, "ns", ["|5", "µs"])]
)
def test_the_axis_has_round_marks_where_they_belong_and_a_unit(end, unit, words):
    line = trace_chart.axis(end, unit, 20, 100).plain
    assert line.startswith(" " * 20 + "|0 ") and line.endswith(words[1]) and len(line) == 100
    assert line.index(words[0]) == 20 + int(5000 * 80 / end)


def test_runs_to_compare_have_one_scale(run):
    status, out, _ = run("compare", "4", "5", "--size", "256x128x256", *K)
    loads = [line for line in out.splitlines() if line.startswith(LOADS)]
    assert status == 0 and len(loads) == 2 and out.count("|0 ") == 1
    assert "Predicted times: ./lab compare 4 5 --chip b200" in out  # ticks hide what TMA gains
    four, five = (line.rstrip() for line in loads)
    assert len(five) < len(four)


def test_with_a_chip_compare_predicts_and_runs_nothing(run):
    command = "compare", "4", "5", "--size", "256x128x256", "--chip", "b200", *K
    status, out, _ = run(*command)
    words = " ".join(out.split())
    assert status == 0 and "predicted ms" in out and "verdict" not in out
    assert "modelled, not measured" in words and out.count("|0 ") == 1 and "Predicted times" not in out
    _, out, _ = run(*command, "--json")
    said = json.loads(out)
    assert said["chip"] == "b200" and all(step["predicted ms"] > 0 for step in said["steps"].values())


@pytest.mark.parametrize(
    "more, words",
    [(["--chip", "h100"], "--chip takes b200 or h200"), (["--chip", "b200", "--device", "sim"], "leave out")],
)
def test_compare_refuses_a_chip_that_it_cannot_use(run, more, words):
    status, out, err = run("compare", "4", "5", *K, *more)
    assert status == 2 and out == "" and words in err
