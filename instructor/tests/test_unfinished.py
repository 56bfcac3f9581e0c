"""A fault of the lab or machine costs a submission nothing: limits count its own time, else `not graded`."""

import contextlib
import csv
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kernel_variants import solved

from instructor.autograder import batch, grading, warm
from instructor.autograder.grading import Options, Result, grade
from instructor.autograder.judge import Judged
from instructor.autograder.plan import Run
from instructor.autograder.points import NOT_GRADED, OVER, StepGrade
from instructor.autograder.submission import Submission
from instructor.formats import FORMATS, page
from instructor.formats.summary import class_page, to_csv
from tirxlab.pool import Failed, Pool
from tirxlab.sandbox import Builder, Limits, clock, tree
from tirxlab.sandbox.clock import Clock, Starved
from tirxlab.sandbox.session import NotDone

ONE = Submission("one", solved(1))


class Machine:
    """A machine whose clocks show what a test sets."""

    def __init__(self, monkeypatch):
        self.wall = self.cpu = self.queued = 0.0
        monkeypatch.setattr(clock.time, "monotonic", lambda: self.wall)
        monkeypatch.setattr(clock.tree, "cpu_seconds", lambda pid: self.cpu)
        monkeypatch.setattr(clock.tree, "queued", lambda pid: self.queued)


@pytest.mark.parametrize(
    "wall, cpu, queued, over",
    [
        (9, 9, 0, False),
        (10, 10, 0, True),
        (10, 0, 0, True),  # it slept
        (60, 9, 51, False),  # a busy machine
        (60, 9, 49, True),
        (60, 10, 59, True),  # several processes: their time adds up
    ],
)
def test_a_clock_counts_what_was_worked_or_slept(monkeypatch, wall, cpu, queued, over):
    machine = Machine(monkeypatch)
    made = Clock(1, 10)
    machine.wall, machine.cpu, machine.queued = wall, cpu, queued
    assert made.over() is over


def test_a_machine_that_gives_no_time_is_told_apart_from_work_that_takes_too_long(monkeypatch):
    machine = Machine(monkeypatch)
    made = Clock(1, 10)
    machine.wall, machine.cpu, machine.queued = 201, 1, 200
    with pytest.raises(Starved, match="too little of this machine in 201 s"):
        made.over()


@pytest.mark.skipif(sys.platform != "linux", reason="the times of other processes are Linux's to tell")
def test_the_time_of_what_a_process_has_started_counts():
    code = (
        "import os\nif os.fork() == 0:\n    sum(range(10**8))\n    os._exit(0)\n"
        "os.wait()\nprint(flush=True)\ninput()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        assert tree.cpu_seconds(process.pid) > 0.1
        process.communicate(b"\n")


@pytest.mark.parametrize(
    "result, state",
    [
        (Failed("the process that ran it died (SIGKILL)", lost=True), NOT_GRADED),
        (Failed("got too little of this machine in 900 s", lost=True), NOT_GRADED),
        (Failed("took longer than 300 s and was stopped", late=True), "wrong"),
        (Failed("needs more memory than it may use", memory=True), "wrong"),
    ],
)
def test_a_step_that_was_not_finished_is_not_graded(monkeypatch, result, state):
    results = iter([((1, False), result)])
    monkeypatch.setattr(Pool, "results", lambda self: results)
    monkeypatch.setattr(Pool, "submit", lambda self, *task: None)
    made = grade(ONE, Options(steps=(1,)))
    assert made.steps[0].state == state and made.earned == 0 and made.steps[0].hints
    assert made.problem.startswith(NOT_GRADED) == (state == NOT_GRADED)


GREEDY = """def hgemm_v1(M, N, K):
    import os
    kept = []
    while True:
        kept.append(bytearray(b"x") * (1 << 20))
        os.write(1, b"x" * 100)
        try:
            open(f"{len(kept)}", "wb").write(b"x" * (1 << 16))
            os.fork() if len(kept) % 100 == 50 else None
        except OSError:
            pass
"""
SMALLEST = {  # any of these limits may be met first: it hangs on the machine, and on what else it does
    "seconds": 1.0,
    "memory": 600 << 20,  # more than TVM and numpy take before the code is looked at
    "printed": 1000,
    "processes": 4,
    "disk": 1 << 20,
    "no limit but these": 0,
}


@pytest.mark.parametrize("limit", SMALLEST)
def test_a_grade_does_not_say_which_limit_was_met_first(limit):
    large = {"seconds": 60.0, "memory": 2 << 30, "printed": 1 << 30, "processes": 50, "disk": 1 << 30}
    small = {limit: SMALLEST[limit]} if limit in large else {"seconds": 5.0, "memory": 600 << 20}
    made = grade(Submission("greedy", GREEDY), Options(steps=(1,), build=Limits(**large | small)))
    assert made.steps[0].hints == [f"at 128x128x64: the code {OVER}"]
    assert (made.steps[0].state, made.steps[0].runs, made.steps[0].findings) == ("not built", [], [])


RUN = Run(1, (128, 128, 64), "random", "program", 1)
GIVEN_UP = Judged(False, "error", "deadlock at line 9", findings=[{"kind": "deadlock"}], over=True)


@pytest.mark.parametrize(
    "result",
    [
        Failed("took longer than 300 s and was stopped", late=True),
        Failed("needs more memory than it may use: 9 GiB", memory=True),
        Result([(RUN, GIVEN_UP)]),
    ],
)
def test_a_grade_does_not_say_which_limit_of_a_run_was_met_first(result):
    step = StepGrade(1, "", 5, "")
    grading._enter(step, result)
    assert step == StepGrade(1, "", 5, "wrong", hints=[f"the run {OVER}"])
    assert grading._runs(result) == [{"size": None, "secret": True, "reason": f"the run {OVER}"}]


@pytest.mark.parametrize("spent, seconds", [(0, 100), (199, 100), (201, grading.LEAST_SECONDS)])
def test_runs_that_stay_just_below_their_limit_get_less_in_the_end(monkeypatch, spent, seconds):
    right = Result([(RUN, Judged(True, "clean"))])
    monkeypatch.setattr(grading, "_building", lambda *given: contextlib.nullcontext())
    monkeypatch.setattr(Pool, "results", lambda self: iter([((1, False), right)]))
    pool = Pool(1, 100.0)
    pool.spent = spent
    work = grading.Work({}, {}, patience=grading.PATIENCE[1] * 100.0)
    assert [*grading._results(None, work, pool, False)] == [(1, right)] and pool.seconds == seconds


def test_a_run_that_is_lost_is_run_again(monkeypatch):
    died = Failed("the process that ran it died (SIGKILL)", lost=True)
    real, calls = Pool.results, []

    def losing(self):
        for key, result in real(self):
            calls.append(key)
            yield key, died if len(calls) == 1 else result

    monkeypatch.setattr(Pool, "results", losing)
    made = grade(ONE, Options(steps=(1,)))
    assert calls == [(1, False)] * 2 and made.earned == made.possible and not made.problem


def fails(*given, **more):
    raise ValueError("index 1536 is out of bounds")


def test_a_mistake_in_a_check_costs_no_points_and_says_nothing_of_the_run(monkeypatch):
    """Whatever its type: a ValueError does not mean that the launch is refused."""
    with Builder(ONE.text) as builder:
        built = builder.build(1, RUN.size)
    monkeypatch.setattr("ptxsim.launch.parallel.run_clusters", fails)
    result = grading.judge_step([(RUN, built)])
    step = StepGrade(1, "", 5, "")
    grading._enter(step, result)
    assert (step.state, step.hints) == (NOT_GRADED, [grading.LOST]) and not grading._fails(result)
    assert "ValueError" in step.runs[0]["reason"] and "1536" in step.runs[0]["reason"]


def test_a_child_that_does_not_start_is_our_fault(monkeypatch):
    def ask(self, *request):
        raise NotDone("could not be looked at")

    monkeypatch.setattr("tirxlab.sandbox.session.Session.ask", ask)
    with Builder(ONE.text, limits=Limits(seconds=5)) as builder:
        assert builder.build(1, (128, 128, 64)).kind == "lab"
    made = grade(ONE, Options(steps=(1,)))
    assert made.problem.startswith(f"{NOT_GRADED}: step 1") and made.steps[0].state == NOT_GRADED


def test_what_is_not_graded_is_listed_and_graded_again(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "one.py").write_text(ONE.text)
    made = batch.Class(tmp_path / "class", tmp_path / "out", Options(steps=(1,)))
    lost = grading.failed("one.py", ONE.digest, "a worker died", (1,))
    (row,) = batch.grade_class(made, lambda work: [(key, lost) for key in work])
    asked = []
    batch.grade_class(made, lambda work: asked.extend(work) or [])
    assert asked == ["one.py"]
    (line,) = csv.DictReader(to_csv([row], {}).splitlines())
    page = class_page([row], [])  # its open points are no zeros of the class
    assert line["problem"].startswith(NOT_GRADED) and "a worker died" in page and "of the 0 that" in page


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"json"}))
def test_what_is_not_graded_looks_final_nowhere(form):
    """One of two steps was lost: the points of the other are not a score."""
    made = grading.failed("one.py", ONE.digest, "a <worker> died", (1, 2))
    made.steps[0] = replace(made.steps[0], state="right", right=True, implemented=True)
    made.steps[0].settle()
    shown = FORMATS[form](made)
    assert "worker" in shown and "<worker>" not in page(made) and "not final" in shown
    assert "score" not in shown.replace("to be graded", "") and "4.25" in shown
    made.problem = ""
    assert "not final" not in FORMATS[form](made)


def test_code_is_not_run_where_nothing_shuts_it_in_unless_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(grading, "strongest", lambda: "limits")
    made = grade(ONE, Options(steps=(1,)))
    assert made.problem.startswith(NOT_GRADED) and "--confine limits" in made.problem and made.earned == 0
    made = grade(Submission("x", ""), Options(steps=(1,), level="limits"))
    assert made.confined == "limits" and not made.problem


def test_every_page_says_how_well_code_was_shut_in():
    made = grade(Submission("x", ""), Options(steps=(1,), level="landlock"))
    for name in ("text", "html", "gradescope", "autolab", "json"):
        assert "landlock" in FORMATS[name](made), name
    row = json.loads(FORMATS["json"](made)) | {"name": "x"}
    assert "landlock" in to_csv([row], {}) and "landlock" in class_page([row], [])


def test_the_simulator_is_compiled_once_before_the_first_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(warm, "COMPILE", f"open({str(tmp_path / 'calls')!r}, 'a').write('x')")
    warm.compiled()
    warm.compiled()
    assert (tmp_path / "calls").read_text() == "x"
    monkeypatch.setattr(warm, "_version", lambda: "another")
    warm.compiled()
    assert (tmp_path / "calls").read_text() == "xx"


def test_a_copy_of_the_simulator_elsewhere_is_compiled_with_the_first(tmp_path, monkeypatch):
    """An Autolab package is unpacked for each hand-in."""
    here, copy = warm._version(), tmp_path / "ptxsim"
    shutil.copytree(Path(warm.ptxsim.__file__).parent, copy, copy_function=shutil.copyfile)
    monkeypatch.setattr(warm.ptxsim, "__file__", str(copy / "__init__.py"))
    assert warm._version() == here
    (copy / "launch.py").write_text((copy / "launch.py").read_text() + "\n")
    assert warm._version() != here


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_grading_compiles_single_operations_at_most_once_its_limits_count(tmp_path):
    """These take 0.2 s each; only some sizes need them."""
    env, lab = _nothing_cached(tmp_path), Path(__file__).parents[2]
    command = [sys.executable, "-m", "tirxlab.cli", "grade", str(warm.REFERENCE)]
    subprocess.run([sys.executable, "-c", warm.COMPILE], cwd=lab, env=env, check=True)
    compiled = set(tmp_path.rglob("*.code"))
    subprocess.run(command, cwd=lab, env=env, check=True, stdout=subprocess.DEVNULL)
    late = set(tmp_path.rglob("*.code")) - compiled
    assert compiled and len(late) < 5 and all(".cold_" in path.name for path in late)


def _nothing_cached(folder):
    """The environment of a fresh machine; tirxlab has set PTXSIM_CACHE in this one."""
    return warm.environment() | {"LAB_CACHE": str(folder), "PTXSIM_CACHE": str(folder / "ptxsim")}


SPIN = "while True: pass"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_reference_gets_every_point_with_nothing_cached_and_both_cores_busy(tmp_path):
    busy = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2)]
    text = Path(__file__).parents[1] / "solutions" / "gemm_kernels.py"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tirxlab.cli", "grade", str(text)],
            cwd=Path(__file__).parents[2], env=_nothing_cached(tmp_path),
            capture_output=True, text=True,
        )  # fmt: skip
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert done.returncode == 0 and "85 of 85 points" in done.stdout, done.stdout + done.stderr
