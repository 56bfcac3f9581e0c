"""run_modal.py without an account: its functions run here by `.local()`, on the simulator."""

import importlib.metadata
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from packaging.specifiers import SpecifierSet
from processes import Signpost

from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.rubric import tomllib
from tirxlab.steps import StepError, read_skeleton, sections

pytest.importorskip("modal", reason="Modal is not installed")
run_modal = importlib.import_module("run_modal")  # ends the process if Modal is missing
pytestmark = pytest.mark.filterwarnings("ignore:.*executing locally")
SOLUTIONS = REFERENCE.read_text()
CASES = [(1, (128, 128, 64), "integer"), (1, (128, 128, 64), "random")]


def on_sim(artifact, arrays):
    return run_modal.run_artifact.local(artifact, arrays, device="sim")


def test_a_passing_step_is_reported_with_its_counts():
    row = run_modal.run_step.local(1, SOLUTIONS, limit=280, device="sim", full=False)
    assert row["outcome"] == "passed", row["output"]
    assert row["counts"]["passed"] == 1 and row["counts"]["failures"] == 0
    assert row["counts"]["skipped"] == 1  # the speed check


def test_a_failing_step_is_reported_with_the_end_of_its_output():
    row = run_modal.run_step.local(2, read_skeleton(), limit=280, device="sim", full=False)
    assert row["outcome"] == "failed" and row["counts"]["passed"] == 0
    assert "step 2 is not implemented yet" in row["output"]


def test_a_hung_step_is_killed_and_reported():
    row = run_modal.run_step.local(1, "import signal\nsignal.pause()\n", limit=1, device="sim")
    assert row["outcome"] == "hung" and row["seconds"] >= 1


def test_killing_takes_the_children_along(tmp_path):
    post = Signpost(tmp_path / "post")
    child = f"exec 3>{tmp_path / 'post'}; echo here >&3; sleep 600"
    status, _ = run_modal.run_limited(["sh", "-c", f"({child}) & sleep 600"], 1)
    assert status is None and post.passed() and post.deserted()


def test_the_table_shows_each_step_and_the_status_tells_if_all_passed(capsys):
    good = {"step": 1, "outcome": "passed", "seconds": 3.0, "counts": {"passed": 2}, "output": "quiet"}
    hung = {"step": 3, "outcome": "hung", "seconds": 600.0, "counts": {}, "output": "last words"}
    calls = [(1, "", 600), (2, "", 600), (3, "", 600)]
    assert run_modal.report_steps(calls[:1], [good]) == 0
    assert "quiet" not in capsys.readouterr().out
    assert run_modal.report_steps(calls, [good, RuntimeError("container lost"), hung]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError: container lost" in out and "last words" in out
    head = next(i for i, line in enumerate(out.splitlines()) if line.startswith("step  outcome"))
    rows = [line.split()[:2] for line in out.splitlines()[head + 1 : head + 4]]
    assert rows == [["1", "passed"], ["2", "broken"], ["3", "hung"]]


def test_the_report_shows_speeds_the_score_and_the_cost(capsys):
    speeds = {"1024": (100.0, 125.0)}
    good = {
        "step": 7,
        "outcome": "passed",
        "seconds": 30.0,
        "counts": {"passed": 4},
        "output": "",
        "speeds": speeds,
    }
    slow = {
        "step": 8,
        "outcome": "failed",
        "seconds": 12.4,
        "counts": {"failures": 1},
        "output": "slow",
        "speeds": {},
    }
    assert run_modal.report_steps([(7, "", 600), (8, "", 600)], [good, slow], left=[9]) == 1
    out = capsys.readouterr().out
    assert "   7  1024                100.0     125.0   0.80" in out
    assert "15 of 35 points" in out and "42 s of B200" in out and "not implemented yet: step 9" in out


def test_speeds_come_from_the_report_of_the_tests(tmp_path):
    file = tmp_path / "report.xml"
    case = '<testcase name="{}"><properties>{}</properties></testcase>'
    said = '<property name="tflops" value="12.5"/><property name="reference_tflops" value="10"/>'
    file.write_text(f"<testsuites><testsuite>{case.format('test_speed[512]', said)}</testsuite></testsuites>")
    assert run_modal.read_speeds(file) == {"512": (12.5, 10.0)}
    assert run_modal.read_speeds(tmp_path / "none.xml") == {}


def test_skeletons_stay_here_and_the_number_of_containers_is_capped(capsys):
    parts, theirs = sections(read_skeleton()), sections(SOLUTIONS)
    text = "".join({**parts, **{step: theirs[step] for step in (1, 2, 4)}}.values())
    batches = []

    def starmap(calls):
        batches.append([step for step, *_ in calls])
        return [
            {"step": step, "outcome": "passed", "seconds": 1.0, "counts": {}, "output": ""}
            for step, *_ in calls
        ]

    given = run_modal.options().parse_args(["--steps", "1,2,3,4", "--at-once", "2"])
    assert run_modal.run_tests(given, text, starmap) == 1  # step 3 was requested
    assert batches == [[1, 2], [4]]
    assert "step 3" in capsys.readouterr().out
    with pytest.raises(StepError, match="nothing was sent"):
        run_modal.run_tests(given, read_skeleton(), starmap)


@pytest.mark.parametrize(
    "arguments, words", [(["--limit", "4000"], "3480"), (["--at-once", "0"], "1 or more")]
)
def test_numbers_that_cannot_work_are_refused_before_anything_is_sent(arguments, words):
    with pytest.raises(StepError, match=words):
        run_modal.run_tests(run_modal.options().parse_args(arguments), SOLUTIONS, starmap=None)


def test_the_help_explains_every_option():
    parser = run_modal.options()
    assert all(action.help for action in parser._actions)
    done = subprocess.run(
        [sys.executable, "-m", "modal", "run", str(ROOT / "run_modal.py"), "--help"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and "B200s in use at the same time" in done.stdout


def test_the_installed_modal_is_one_that_the_extra_allows():
    project = tomllib.loads((ROOT / "packages" / "tirxlab" / "pyproject.toml").read_text())["project"]
    pins = project["optional-dependencies"]
    (wanted,) = [SpecifierSet(pin.removeprefix("modal")) for pin in pins["modal"]]
    assert importlib.metadata.version("modal") in wanted
    assert not {"1.0.0", "1.2.0"} & set(wanted.filter(["1.0.0", "1.2.0", "1.3.0", "1.6.0"]))


def test_a_case_that_fails_on_the_b200_does_not_end_the_validation(tmp_path):
    def broken(artifact, arrays):
        raise TimeoutError("600 s")

    target = tmp_path / "result.json"
    assert run_modal.validate_all(broken, target, CASES) == 1
    assert [row["result"] for row in json.loads(target.read_text())["rows"]] == [
        "failed on the B200: TimeoutError: 600 s"
    ] * 2


def test_steps_are_chosen_as_on_the_command_line():
    assert run_modal.chosen("all") == list(range(1, 11))
    assert run_modal.chosen("1, 3,5") == [1, 3, 5]
    for text in ("0", "11", "x", ""):
        with pytest.raises(StepError, match="is not a step"):
            run_modal.chosen(text)


def test_inspection_needs_no_gpu():
    text = run_modal.inspect_step.local(2, "128x128x128", "cuda", SOLUTIONS)
    assert "tcgen05_alloc" in text and "lab_src" not in text


def test_an_artifact_gives_the_same_outputs_wherever_it_runs():
    artifact, arrays = run_modal.make_case(1, (128, 128, 64), "integer")
    result = on_sim(artifact.to_bytes(), run_modal.pack(arrays))
    outputs = np.load(io.BytesIO(result["outputs"]))
    expected = arrays["A"].astype("f4") @ arrays["B"].astype("f4").T
    assert list(outputs) == ["D"] and np.array_equal(outputs["D"], expected.astype("f2"))
    assert not arrays["D"].any()  # the array that was sent is unchanged


def test_validation_writes_what_agrees(tmp_path):
    target = tmp_path / "result.json"
    assert run_modal.validate_all(on_sim, target, CASES) == 0
    rows = json.loads(target.read_text())["rows"]
    assert [(row["step"], row["values"], row["result"]) for row in rows] == [
        (1, "integer", "equal"),
        (1, "random", "equal"),
    ]


def test_validation_names_the_first_element_that_differs(tmp_path, capsys):
    def other_chip(artifact, arrays):
        result = on_sim(artifact, arrays)
        D = np.load(io.BytesIO(result["outputs"]))["D"]
        D[5, 7] += 1
        return result | {"outputs": run_modal.pack({"D": D})}

    target = tmp_path / "result.json"
    assert run_modal.validate_all(other_chip, target, CASES) == 1
    for row in json.loads(target.read_text())["rows"]:
        assert row["result"].startswith("1 elements of D differ, first (5, 7)")
    assert "0 of 2 cases agree" in capsys.readouterr().out


def test_validation_covers_every_step_at_all_its_quick_sizes():
    cases = run_modal.validation_cases()
    assert {step for step, _, _ in cases} == set(range(1, 11))
    assert (10, (4608, 768, 1088), "integer") in cases and (7, (1024, 1024, 1024), "random") in cases
