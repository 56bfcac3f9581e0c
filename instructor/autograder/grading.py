"""Grades one submission: every step is built in a confined child and judged in a killable process."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

from instructor.autograder.building import built_for
from instructor.autograder.judged import Judged
from instructor.autograder.plan import Hidden, Run, load_hidden, plan, speed_seed
from instructor.autograder.points import NOT_GRADED, OVER, Grade, StepGrade
from instructor.autograder.stand_in import stand_in, told
from instructor.autograder.submission import Submission
from instructor.autograder.usage import cpu_seconds, most_memory
from instructor.autograder.warm import compiled
from tirxlab.pool import Failed, Pool
from tirxlab.porting import of_the_wheel
from tirxlab.rubric import load_rubric
from tirxlab.sandbox import Builder, Built, Limits, strongest
from tirxlab.sandbox.levels import SHUT_IN
from tirxlab.sandbox.limits import printable
from tirxlab.steps import STEPS, StepError, is_untouched, may_have, sections, size_text
from tirxlab.version import lab_version

LEAST_SECONDS = 30  # for the runs of a step, at least, however long earlier steps took
PATIENCE = 4, 2  # limits (of builds, of runs) that a file may use up; after that every step gets the least
NOT_SHUT_IN = (
    "this machine cannot confine student code (SECURITY.md); --confine limits grades without confinement, "
    "which is good enough for your own code"
)
LOST = "a run did not finish, through a fault of the lab or the machine"  # no details: sizes may be hidden
PORTED = "written for TVM's preview wheel: its imports were rewritten as `./lab port` does"
Key = tuple[int, bool]  # (step, whether at its hidden sizes instead of the public ones)


@dataclass
class Options:
    """How to grade."""

    full: bool = False  # also run every public size
    jobs: int = 1  # processes that simulate
    step_seconds: float = 120.0  # for all runs of a step, as clock.py counts them; the reference takes 7
    build: Limits = field(default_factory=lambda: Limits(seconds=40))
    level: str | None = None  # a level of tirxlab.sandbox; None: the strongest that works here
    hidden: Hidden | None = None  # None: read hidden.toml
    steps: tuple[int, ...] = STEPS
    keep: bool = False  # keep the artifacts, in Grade.artifacts
    device: str = "sim"  # "cuda": measure the speed of right steps there, after the simulator has run


@dataclass
class Result:
    """All runs of a step up to the first that is not right."""

    runs: list[tuple[Run, Judged]]


Outcome: TypeAlias = Result | Built | Failed  # of a step


def grade(
    submission: Submission, options: Options | None = None, tick: Callable = lambda step: None
) -> Grade:
    """Grades a submission; never raises for anything in it. Calls `tick(step)` as each step is done."""
    options = options or Options()
    if options.level is None and strongest() not in SHUT_IN:
        return failed(submission.name, submission.digest, NOT_SHUT_IN, options.steps)
    compiled()
    start, used = time.perf_counter(), cpu_seconds()
    steps, problem = _first_look(submission.text, options.steps)
    to_run = [step for step in steps.values() if step.state == ""]
    for step in steps.values():
        if step.state:
            tick(step.step)
    work = _run_steps(submission, options, to_run, tick) if to_run else Work({})
    if options.device != "sim":
        _measure(submission, options, list(steps.values()))
    for step in steps.values():
        step.settle()
    made = Grade(submission.name, submission.digest, lab_version(), options.device, list(steps.values()))
    made.student, made.handin = submission.student, submission.lab
    made.problem = problem or _not_done(made.steps)
    made.notes = [PORTED] if of_the_wheel(submission.text) else []
    made.artifacts = work.artifacts
    made.confined, made.seconds = options.level or strongest(), time.perf_counter() - start
    made.cpu_seconds, made.memory = cpu_seconds() - used, most_memory(work.largest)
    return made


def failed(key: str, digest: str, reason: str, chosen: tuple[int, ...]) -> Grade:
    """The grade of a submission that could not be graded: no points; a person has to look at it."""
    rubric = load_rubric()
    steps = [StepGrade(n, rubric.titles[n], rubric.points[n], NOT_GRADED) for n in chosen]
    return Grade(key, digest, lab_version(), "sim", steps, problem=f"{NOT_GRADED}: {reason}")


def refused(name: str, reason: str, chosen: tuple[int, ...]) -> Grade:
    """The grade of a hand-in without a kernels file, for a platform that wants a grade all the same."""
    rubric = load_rubric()
    steps = [StepGrade(n, rubric.titles[n], rubric.points[n], "missing", hints=[reason]) for n in chosen]
    return Grade(name, "", lab_version(), "sim", steps, problem=reason)


def _not_done(steps: list[StepGrade]) -> str:
    """The problem of a submission if some of its steps could not be graded; "" if all were."""
    left = [step for step in steps if step.state == NOT_GRADED]
    numbers = ", ".join(str(step.step) for step in left)
    return f"{NOT_GRADED}: step {numbers}: {left[0].hints[0]}" if left else ""


def _first_look(text: str, chosen: tuple[int, ...]) -> tuple[dict[int, StepGrade], str]:
    """(The steps, each with the state that its text shows, "" if to be run; the whole file's problem)."""
    rubric, problem = load_rubric(), ""
    try:
        sections(text)
    except StepError as error:
        problem = str(error)
    steps = {}
    for step in chosen:
        steps[step] = made = StepGrade(step, rubric.titles[step], rubric.points[step], "")
        if problem:
            made.state, made.hints = "not built", [printable(problem, 1)]
        elif not may_have(text, step):
            made.state, made.hints = "missing", [f"there is no `def hgemm_v{step}(M, N, K):`"]
        elif is_untouched(text, step):
            made.state, made.hints = "not implemented yet", ["the step still reads as its skeleton"]
    return steps, problem


@dataclass
class Work:
    """The work under way on a submission's steps."""

    runs: dict[int, list[Run]]
    built: dict[Key, list[tuple[Run, Built | None]]] = field(default_factory=dict)
    public: dict[int, Result] = field(default_factory=dict)  # right at the public sizes
    keep: bool = False  # keep the artifacts
    artifacts: dict[str, bytes] = field(default_factory=dict)
    again: set = field(default_factory=set)  # tasks that are submitted once more if their process is lost
    patience: float = 0.0  # seconds of all runs together after which each step gets the least
    largest: int = 0  # bytes of memory of the largest process that judged

    def of(self, step: int, secret: bool) -> list[Run]:
        return [run for run in self.runs[step] if run.secret == secret]

    def instead(self, step: int) -> tuple[Run, Built | None]:
        """The run, and its kernel, that stands in for the step's hidden sizes; built with the public ones."""
        run, built = next((run, built) for run, built in self.built[step, False] if run.record)
        return stand_in(run), built


def _run_steps(submission: Submission, options: Options, steps: list[StepGrade], tick: Callable) -> Work:
    """Enters the outcome of each step; returns what was done, with the steps' artifacts if they are kept.

    Hidden sizes are built last, after everything whose result the student sees. Otherwise one step's code
    could reveal the size that another was built for or, by reading the clock, how long a hidden size took.
    """
    hidden = options.hidden or load_hidden()
    work = Work({s.step: plan(s.step, submission.digest, hidden, options.full) for s in steps})
    work.patience, work.keep = PATIENCE[1] * options.step_seconds, options.keep
    grades, failed_there = {s.step: s for s in steps}, []
    patience = PATIENCE[0] * options.build.seconds
    started = Builder(submission.text, limits=options.build, level=options.level, patience=patience)
    with Pool(min(options.jobs, len(steps)), options.step_seconds, memory=8 << 30) as pool:
        with started as builder:
            builder.start()
            pool.preload("instructor.autograder.warmed")  # during the first build
            for step, result in _results(builder, work, pool, False):
                if work.of(step, True) and isinstance(result, Result) and not _fails(result):
                    work.public[step] = result
                else:
                    _enter(grades[step], result)
                    tick(step)
            for step, result in _results(builder, work, pool, True):
                if _fails(result):
                    failed_there.append(step)
                    grades[step].runs = _runs(work.public[step], result)
                else:
                    _enter(grades[step], _joined(work.public[step], result))
                    tick(step)
        pool.seconds = min(LEAST_SECONDS, options.step_seconds)  # however long a hidden size took
        for step in failed_there:
            grades[step].state = "wrong"
            grades[step].hints = [_at_stand_in(*work.instead(step), pool)]
            tick(step)
    if any(not step.state for step in steps):
        raise RuntimeError("not all steps could be built: an error of the lab, see above")
    work.largest = pool.largest
    return work


def _results(builder: Builder, work: Work, pool: Pool, secret: bool) -> Iterator[tuple[int, Outcome]]:
    """Yields (step, outcome) at the public sizes or, for steps that are right there, at the hidden ones."""
    with _building(builder, work, pool, secret):
        for key, result in pool.results():
            if isinstance(result, Failed) and result.lost and key in work.again:
                work.again.discard(key)
                pool.submit(key, judge_step, work.built[key])
                continue
            if pool.spent > work.patience:
                pool.seconds = min(LEAST_SECONDS, pool.seconds)
            elif not isinstance(result, Built) and _over(result):  # later steps get less
                pool.seconds = max(min(LEAST_SECONDS, pool.seconds), pool.seconds / 2)
            yield key[0], result


@contextlib.contextmanager
def _building(builder: Builder, work: Work, pool: Pool, secret: bool) -> Iterator[None]:
    """Builds for the pool in another thread while the block runs."""
    stop = threading.Event()
    thread = threading.Thread(target=_build, args=(builder, work, pool, secret, stop), daemon=True)
    pool.expect(True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        if thread.is_alive():
            builder.stop()
        thread.join(5)


def _fails(result: Outcome) -> bool:
    """Whether the step is known to fail; a lost run does not show that."""
    if isinstance(result, Failed):
        return not result.lost
    if isinstance(result, Built):
        return result.kind != "lab"
    return not all(judged.right for _, judged in result.runs)


def _joined(public: Result, secret: Outcome) -> Outcome:
    return Result(public.runs + secret.runs) if isinstance(secret, Result) else secret


def _at_stand_in(run: Run, built: Built | None, pool: Pool) -> str:
    """The hint for a step that fails at a hidden size alone."""
    pool.submit(run, judge_step, [(run, built)])
    ((_, result),) = pool.results()
    if _over(result):
        return told(run, f"the run {OVER}")
    if isinstance(result, Failed):
        return told(run, f"the run {result.message}")
    return told(run, printable(result.runs[-1][1].reason, 2))


def _measure(submission: Submission, options: Options, steps: list[StepGrade]) -> None:
    """Enters the speed of what is right and implemented, a step at a time: the GPU does nothing else."""
    from instructor.autograder.speed import NotBuilt, time_step
    from instructor.autograder.timeable import timeable

    hidden = options.hidden or load_hidden()
    with Builder(submission.text, limits=options.build, level=options.level) as builder:
        for step in steps:
            if not (step.right and step.implemented):
                step.speed = "not reached"
                continue
            try:
                work = timeable(step.step, builder.build, speed_seed(hidden, submission.digest, step.step))
                step.timed(*time_step(step.step, work, options.device))
            except NotBuilt as error:
                step.timed(str(error))


def _build(builder: Builder, work: Work, pool: Pool, secret: bool, stop: threading.Event) -> None:
    """Builds step after step and hands each to the pool: the quickest ones first, so that it has work soon,
    then those with the largest sizes.

    ptxas sees only the kernel of a step's first run; the others stop at PTX, which takes half the time.
    """
    try:
        steps = sorted(work.public if secret else work.runs)
        soon = max(1, len(steps) // 3)
        for step in [*steps[:soon], *reversed(steps[soon:])]:
            made: dict[tuple, tuple[Run, Built]] = {}
            for run in work.of(step, secret):
                if stop.is_set():
                    return
                if run.launch not in made and all(built.artifact for _, built in made.values()):
                    whole = not secret and not made
                    made[run.launch] = built_for(run, functools.partial(builder.build, whole=whole))
            for run, built in made.values():
                if built.artifact and work.keep:
                    work.artifacts[f"step{step}-{size_text(run.size)}.lab"] = built.artifact.to_bytes()
            key = step, secret
            work.built[key] = [_built(run, made) for run in work.of(step, secret)]
            work.again.add(key)
            pool.submit(key, judge_step, work.built[key])
    finally:
        pool.expect(False)


def _built(run: Run, made: dict[tuple, tuple[Run, Built]]) -> tuple[Run, Built | None]:
    """The run and the kernel of its launch, with the size and SMs for which that was in fact built."""
    instead, built = made.get(run.launch, (run, None))
    return replace(run, size=instead.size, sms=instead.sms), built


def judge_step(work: list[tuple[Run, Built | None]]) -> Outcome:
    """Judges the runs of a step, in a process of the pool, since only those load the simulator; stops at the
    first run that is not right or was not built.
    """
    from instructor.autograder.judge import judge
    from ptxsim import Fault

    failed = next((built for _, built in work if built is not None and built.artifact is None), None)
    if failed is not None:
        return failed
    done = []
    for run, built in work:
        try:
            assert built is not None and built.artifact is not None  # all are built by now
            done.append((run, judge(run, built.artifact)))
        except Fault as error:
            return Failed(str(error), lost=True)
        if not done[-1][1].right:
            break
    return Result(done)


def _enter(grade: StepGrade, result: Outcome) -> None:
    """Enters a step's outcome into its grade; a failure here is one at a public size."""
    if isinstance(result, Failed) and result.lost:
        grade.state, grade.hints, grade.runs = NOT_GRADED, [LOST], _runs(result)
    elif isinstance(result, Built) and result.kind == "lab":
        grade.state, grade.hints = NOT_GRADED, [printable(result.message, 1)]
    elif _over(result):
        grade.state = "not built" if isinstance(result, Built) else "wrong"
        grade.hints = [_told_over(result)]
    elif isinstance(result, Failed):
        grade.state, grade.hints = "wrong", [f"the run {result.message}"]
    elif isinstance(result, Built):
        grade.state = "not built"
        grade.hints = [_not_built(result)]
    else:
        _enter_runs(grade, result.runs)


def _over(result: Outcome) -> bool:
    """Whether the step was stopped at a limit."""
    if isinstance(result, Failed):
        return result.late or result.memory
    return result.kind == "limit" if isinstance(result, Built) else result.runs[-1][1].over


def _told_over(result: Outcome) -> str:
    """The hint for a step stopped at a limit: the same words for every limit, and not how far the run got."""
    return f"at {size_text(result.size)}: the code {OVER}" if isinstance(result, Built) else f"the run {OVER}"


def _not_built(built: Built) -> str:
    if built.kind == "file":
        return f"{printable(built.message, 2)}; an error costs only the steps that it is in"
    return f"at {size_text(built.size)}: {printable(built.message, 4)}"


def _runs(*results: Outcome) -> list[dict]:
    """The runs and their outcomes as plain data, for the course."""
    found = []
    for result in results:
        if isinstance(result, Result) and not _over(result):
            found += [{**asdict(run), **asdict(judged)} for run, judged in result.runs]
        else:
            reason = _told_over(result) if _over(result) else getattr(result, "message", "")
            found.append({"size": getattr(result, "size", None), "secret": True, "reason": reason})
    return found


def _enter_runs(grade: StepGrade, done: list[tuple[Run, Judged]]) -> None:
    last_run, last = done[-1]
    grade.runs = _runs(Result(done))
    grade.findings = sorted({f["kind"] for _, judged in done for f in judged.findings})
    grade.right = all(judged.right for _, judged in done)
    grade.state = "right" if grade.right else "wrong"
    if not grade.right:
        grade.hints = [f"at {last_run.place}, order {_order(last_run)}: {printable(last.reason, 2)}"]
        return
    looked_at = [one for one in done if one[0].record or one[0].alone] or done[-1:]
    run, recorded = max(looked_at, key=lambda one: (bool(one[1].behind), bool(one[1].hint)))
    grade.implemented, grade.complete = not recorded.hint, not recorded.behind
    drawn = f" (seen at {run.place}, drawn for this file)" if run.drawn else ""
    hints = [recorded.hint + drawn] if recorded.hint else []
    if recorded.behind:
        hints.append(
            f"the result counts in part: step {grade.step - 1} already asks for more ({recorded.behind})"
        )
    grade.hints = hints


def _order(run: Run) -> str:
    return run.order if isinstance(run.order, str) else "by a seed"
