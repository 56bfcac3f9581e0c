"""run_modal.py from its command line to its exit status, with a backend that runs each call here.

The backend takes the place of Modal's: it gets the calls of `starmap` and `remote`, counts how many run at
once, and runs the functions themselves on the simulator.
"""

import importlib
import json
import subprocess
import sys

import pytest

from tirxlab.cli.common import REFERENCE, ROOT

pytest.importorskip("modal", reason="Modal is not installed")
run_modal = importlib.import_module("run_modal")
pytestmark = pytest.mark.filterwarnings("ignore:.*executing locally")
SPEEDS = {"1024": (500.0, 400.0)}


class Cloud:
    """Takes the place of a Modal function. `answer(step)`, if given, makes rows without a run."""

    def __init__(self, name: str, function, answer=None):
        self.function, self.answer, self.batches = function, answer, []
        self.device = {"device": "sim"} if name == "run_artifact" else {}
        self.local = function.local

    def starmap(self, calls, return_exceptions):
        assert return_exceptions
        self.batches.append([step for step, *_ in calls])
        return [self.one(*call) for call in calls]

    def one(self, step, kernels, limit):
        try:
            if self.answer:
                return self.answer(step)
            return self.function.local(step, kernels, limit, device="sim", full=False)
        except RuntimeError as error:
            return error

    def remote(self, *arguments):
        return self.local(*arguments, **self.device)


@pytest.fixture
def modal_run(monkeypatch, capsys, tmp_path):
    """`modal run run_modal.py ARGUMENTS`: (exit status or message, output, the backend of run_step)."""
    own = {name: getattr(run_modal, name) for name in ("run_step", "inspect_step", "run_artifact")}
    monkeypatch.chdir(tmp_path)

    def call(*arguments, answer=None):
        clouds = {name: Cloud(name, function, answer) for name, function in own.items()}
        for name, cloud in clouds.items():
            monkeypatch.setattr(run_modal, name, cloud)
        status = 0
        try:
            run_modal.main.info.raw_f(*arguments)
        except SystemExit as end:
            status = end.code
        return status, capsys.readouterr().out, clouds["run_step"]

    return call


def passed(step: int) -> dict:
    row = {"step": step, "outcome": "passed", "seconds": 20.0, "output": ""}
    return row | {"counts": {"passed": 4}, "speeds": SPEEDS}


def test_a_step_goes_through_its_tests_and_comes_back_with_a_score(modal_run, kernels):
    status, out, backend = modal_run("--kernels", kernels(1), "--steps", "1", "--limit", "280")
    assert status == 0 and backend.batches == [[1]]
    assert (
        "   1  passed" in out and "5 of 5 points by the public rubric" in out and "s of B200 in tests" in out
    )


def test_ten_steps_go_out_four_at_a_time_and_speeds_come_back(modal_run):
    status, out, backend = modal_run("--kernels", str(REFERENCE), answer=passed)
    assert status == 0 and backend.batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert "100 of 100 points" in out and "200 s of B200 in tests" in out
    assert "  10  1024                500.0     400.0   1.25" in out


def test_a_container_that_is_lost_costs_its_own_step_only(modal_run):
    def answer(step):
        if step == 3:
            raise RuntimeError("the container was preempted")
        return passed(step)

    status, out, _ = modal_run("--kernels", str(REFERENCE), "--steps", "2,3,4", answer=answer)
    assert status == 1 and "RuntimeError: the container was preempted" in out and "15 of 25 points" in out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--steps", "11"], "'11' is not a step"),
        (["--steps", "3"], "none of these steps is implemented yet; nothing was sent"),
        (["--limit", "4000"], "write seconds from 1 to 3480"),
        (["--at-once", "0"], "1 or more"),
        (["--kernels", "nowhere.py"], "nowhere.py: no such file"),
    ],
)
def test_what_cannot_work_is_one_line_and_nothing_is_sent(modal_run, kernels, arguments, words):
    given = arguments if "--kernels" in arguments else ["--kernels", kernels(1), *arguments]
    said, out, backend = modal_run(*given, answer=passed)
    assert said.startswith("run_modal: ") and words in said and said.count("\n") == 0
    assert out == "" and backend.batches == []


def test_a_file_that_is_not_python_is_not_sent(modal_run, tmp_path):
    (tmp_path / "mine.py").write_text("def hgemm_v1(M, N, K:\n")
    said, _, backend = modal_run("--kernels", "mine.py", answer=passed)
    assert said.startswith("run_modal: the kernels file:1: ") and backend.batches == []


def test_inspect_prints_nothing_but_the_code(modal_run):
    status, out, _ = modal_run("--kernels", str(REFERENCE), "--inspect", "2", "--size", "128x128x128")
    assert status == 0 and "tcgen05_alloc" in out and out.startswith(("#", "/"))


def test_validate_says_what_it_costs_and_leaves_its_record(modal_run, monkeypatch, tmp_path):
    cases = [(1, (128, 128, 64), "integer"), (2, (128, 128, 192), "random")]
    monkeypatch.setattr(run_modal, "validation_cases", lambda: cases)
    status, out, _ = modal_run("--validate")
    lines = out.splitlines()
    assert status == 0 and lines[0].startswith("2 cases, one after the other, on one B200 that you pay for")
    assert lines[2].startswith("[1/2] step  1  128x128x64      integer  equal")
    assert "2 of 2 cases agree; written to validate-b200.json" in out
    rows = json.loads((tmp_path / "validate-b200.json").read_text())["rows"]
    assert [row["result"] for row in rows] == ["equal", "equal"]


def test_without_modal_run_the_file_says_how_it_is_started():
    done = subprocess.run(
        [sys.executable, str(ROOT / "run_modal.py"), "--steps", "3"], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stdout == ""
    ours = [line for line in done.stderr.splitlines() if "DeprecationError" not in line]  # Modal, on 3.10
    assert ours == ["run_modal: Modal starts this file: modal run run_modal.py --steps 3"]
