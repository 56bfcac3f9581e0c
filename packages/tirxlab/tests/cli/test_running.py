"""Commands that run kernels: check, score, compare, bench, demo, doctor; tables, JSON, exit status."""

import json

import pytest

from tirxlab.cli import doctor
from tirxlab.cli.common import REFERENCE, output
from tirxlab.cli.outcomes import table
from tirxlab.cli.runs import Job, quick_or_all, run_jobs
from tirxlab.steps import read_skeleton, sections

K = ["--kernels", str(REFERENCE), "--device", "sim"]


@pytest.fixture
def broken(tmp_path):
    """The solutions with three mistakes: step 1 does not accumulate, step 2 does not build, step 3 hangs."""
    parts = sections(REFERENCE.read_text())
    edits = {
        1: ("accum=False", "accum=True"),
        2: ("Tx.cast(", "Tx.cats("),
        3: ("phase_mma = phase_mma ^ 1", "pass"),
    }
    for step, (old, new) in edits.items():
        assert old in parts[step]
        parts[step] = parts[step].replace(old, new)
    file = tmp_path / "gemm_kernels.py"
    file.write_text("".join(parts.values()))
    return file


def test_a_passing_check_says_what_comes_next(run):
    status, out, _ = run("check", "1", *K)
    assert status == 0
    assert "128x128x64" in out and "clean" in out
    assert out.splitlines()[-1].endswith("Next: step 2, K-loop accumulation; then ./lab check 2")


def test_check_as_json_has_the_counts_of_the_run(run):
    status, out, _ = run("check", "3", *K, "--size", "256", "--json")
    said = json.loads(out)
    (row,) = said["runs"]
    assert status == 0 and said["passed"] and row["right"] and row["verdict"] == "clean"
    assert row["stats"]["ctas"] == 4 and row["stats"]["tensor_operations"] == 4 * 4 * 4


def test_check_tries_more_orders(run):
    status, out, _ = run(
        "check", "2", *K, "--size", "128x128x192", "--order", "adverse", "--orders", "2", "--json"
    )
    assert status == 0 and [row["order"] for row in json.loads(out)["runs"]] == ["adverse", 0, 1]


def test_a_failing_check_shows_the_findings_and_stops(run, broken):
    status, out, _ = run("check", "1,3", "--kernels", str(broken), "--device", "sim")
    assert status == 1
    assert "step 1 at 128x128x64" in out and "Next:" not in out
    assert "   3  " not in out


def test_a_step_that_does_not_build_names_its_line(run, broken):
    status, out, _ = run("check", "2", "--kernels", str(broken), "--device", "sim")
    assert status == 1 and "not built" in out
    assert "cats" in out and "more runs were not made" in out


def test_a_hang_is_a_finding(run, broken):
    status, out, _ = run("check", "3", "--kernels", str(broken), "--device", "sim", "--size", "256", "--json")
    (row,) = json.loads(out)["runs"]
    assert status == 1 and row["verdict"] == "error"
    assert row["findings"]


def test_score_gives_points_for_right_steps_only(run, tmp_path):
    parts, theirs = sections(read_skeleton()), sections(REFERENCE.read_text())
    parts[1], parts[2] = theirs[1], theirs[2].replace("phase_mma ^ 1", "phase_mma")
    file = tmp_path / "gemm_kernels.py"
    file.write_text("".join(parts.values()))
    status, out, _ = run("score", "1,2,3", "--kernels", str(file), "--device", "sim", "--json")
    said = json.loads(out)
    assert status == 1 and (said["earned"], said["possible"]) == (5, 20)
    assert [row["earned"] for row in said["steps"]] == [5, 0, 0]
    assert said["steps"][0]["speed"] == "not measured"
    assert said["steps"][2]["right"] == "not implemented yet"
    assert said["steps"][1]["problems"]


def test_score_of_a_file_without_one_finished_step_is_zero(run, kernels):
    status, out, _ = run("score", "--kernels", kernels(), "--device", "sim")
    assert status == 1 and "0 of 100 points" in out


def test_compare_shows_what_tma_changes(run):
    status, out, _ = run("compare", "3", "4", *K, "--size", "256", "--json")
    three, four = json.loads(out)["steps"].values()
    assert status == 0
    assert three["bytes by TMA"] == 0
    # 4 CTAs load 4 K tiles of A and B (16 KiB each) and store a tile of D.
    assert four["bytes by TMA"] == 4 * (4 * 2 * 16384 + 128 * 128 * 2)
    assert three["CTAs"] == four["CTAs"] == 4


def test_bench_on_the_simulator_measures_nothing_and_says_so(run):
    status, out, _ = run("bench", "1", *K)
    assert status == 0 and "speed not measured" in out


def test_jobs_in_processes_come_back_in_their_order(capsys):
    jobs = [Job(REFERENCE, 1, (128, 128, 64), "sim"), Job(REFERENCE, 2, (128, 128, 192), "sim")]
    outcomes = run_jobs(jobs, "two")
    assert [(o.step, o.passed) for o in outcomes] == [(1, True), (2, True)]
    output().print(table(outcomes))
    lines = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert lines[-2:] == [["1", "128x128x64", "yes", "clean"], ["2", "128x128x192", "yes", "clean"]]


def test_demo_covers_ten_steps_and_uneven_sizes():
    sizes = {step: quick_or_all(step, "sim") for step in range(1, 11)}
    assert all(sizes.values())
    assert (4608, 768, 1088) in sizes[10] and (1408, 384, 1088) in sizes[7] and (384, 640, 192) in sizes[3]
    assert all(max(size) <= 1024 or len(set(size)) > 1 for step in sizes for size in sizes[step])
    assert (8192, 8192, 8192) in quick_or_all(10, "sim", full=True)


def test_demo_without_a_finished_step_says_what_to_do(run, kernels):
    status, out, err = run("demo", "--kernels", kernels())
    assert status == 1 and "no finished step" in err and out == ""


def test_demo_of_finished_steps_prints_the_table(run, tmp_path):
    parts, theirs = sections(read_skeleton()), sections(REFERENCE.read_text())
    file = tmp_path / "gemm_kernels.py"
    file.write_text("".join({**parts, 1: theirs[1]}.values()))
    status, out, _ = run("demo", "--kernels", str(file))
    assert status == 0
    assert out.splitlines()[0].split() == ["step", "size", "right?", "verdict", "seconds"]
    assert out.splitlines()[1].split()[:4] == ["1", "128x128x64", "yes", "clean"]
    assert "1 of 1 runs right" in out


def test_doctor_says_what_can_be_done_here(run):
    status, out, _ = run("doctor", "--json")
    said = json.loads(out)
    assert status == 0 and said["can"]["build kernels"] and said["can"]["simulate them"]
    assert {f["state"] for f in said["findings"]} <= {doctor.GOOD, doctor.MISSING, doctor.OPTIONAL}
    assert all(f["hint"] for f in said["findings"] if f["state"] != doctor.GOOD)


def test_doctor_fails_where_the_compiler_is_missing(run, monkeypatch):
    def no_nvrtc():
        return doctor.Finding("nvrtc", doctor.MISSING, "gone", "install it")

    probes = tuple(no_nvrtc if probe is doctor.nvrtc else probe for probe in doctor.PROBES)
    monkeypatch.setattr(doctor, "PROBES", probes)
    status, out, _ = run("doctor")
    assert status == 1 and "install it" in out


def test_a_large_size_is_checked_as_a_small_one_is(run):
    status, out, _ = run("check", "4", "--size", "1152x1024x1024", "--json", *K)
    runs = json.loads(out)["runs"]
    assert status == 0 and all(each["right"] and each["verdict"] == "clean" for each in runs)


def test_a_size_of_ones_own_does_not_pass_the_step(run):
    """Other sizes may still fail: the closing line says what was run, and what remains to be run."""
    status, out, _ = run(
        "check", "1", "--size", "128x128x64", "--order", "adverse", "--kernels", str(REFERENCE)
    )
    assert status == 0 and "passes" not in out
    last = (
        "Step 1 is right (128x128x64, order adverse only). Next: all of its sizes and orders, ./lab check 1"
    )
    assert out.splitlines()[-1] == last
