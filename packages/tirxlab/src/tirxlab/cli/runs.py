"""Builds and runs steps and reports the outcomes: the engine of demo, check and score.

A job is one step at one size. Student code runs in a confined child (tirxlab.sandbox), which returns
artifacts; these run in a few processes that may be killed (tirxlab.pool). No student code runs here.
All these processes start at once and import in parallel what their first job will need. The command and the
pool both wait for the imports at the top of this file: no typer, no numpy.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tirxlab.cli import prestart
from tirxlab.pool import Failed, Pool
from tirxlab.sandbox import Builder, Built
from tirxlab.steps import StepError, UntouchedStep, read_text, size_text

if TYPE_CHECKING:
    from tirxlab.explain.mismatch_map import MismatchMap

Size = tuple[int, int, int]
BUILD_COST = 3e8  # what a build costs, in multiply-adds; a run costs about as many as its product has


@dataclass
class Job:
    """One step at one size, and how to run it."""

    kernels: Path  # the file that defines hgemm_vN
    step: int
    size: Size  # (M, N, K)
    device: str | None = None  # as device_name takes it
    order: str | int = "program"
    seed: int = 0  # of the input data

    @property
    def cost(self) -> int:
        return self.size[0] * self.size[1] * self.size[2]


@dataclass
class Outcome:
    """The result of a job."""

    step: int
    size: str  # "1024" or "MxNxK"
    device: str  # "sim" or "cuda"
    order: str | int
    right: bool | None  # the matrix equals the reference; None if nothing was computed
    verdict: (
        str  # of the device: clean, review, error, incomplete, not checked; "not built" if it did not compile
    )
    seconds: float  # wall time of build, run and comparison, without waiting for a free core
    message: str = ""  # what is wrong, for a person; may have several lines
    findings: list[dict] = field(default_factory=list)
    stats: dict = field(default_factory=dict)
    printed: str = ""  # what the builder and the kernel printed
    digest: str = ""  # of the output's bytes, to compare runs
    misfit: bool = False  # the builder refused the size
    wrong: MismatchMap | None = None  # which elements of D are wrong
    mismatch: str = ""  # the text about them; after an error, `message` holds only its first line
    repairs: list[dict] = field(default_factory=list)  # edits that were tried and make the step pass

    @property
    def passed(self) -> bool:
        """As the grader judges. An `incomplete` run never passes, even if right: on a chip it may hang."""
        return self.right is True and self.verdict not in ("error", "incomplete", "not built")


class Runner:
    """Builds and runs jobs of one kernels file. A context manager: leaving it ends all of its processes."""

    def __init__(self, kernels: Path, processes: int = 1):
        self.builder, self.pool = Builder(read_text(kernels), kernels.name), Pool(processes)
        found = prestart.take() if processes == 1 else None
        if found is not None:
            self.pool, self.builder.student, self.builder.compiler = found.pool, found.student, found.compiler
        self.made: dict[tuple, Built] = {}
        self.stopped = False
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Runner:
        self.builder.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopped = True
        self.pool.__exit__()
        self.builder.stop()
        if self.thread is not None:
            self.thread.join(3)
        self.builder.close()

    def renew(self, text: str) -> None:
        """Build another text of the same file from now on, in the processes that already run."""
        self.builder.text, self.builder.told = text, None
        self.made.clear()

    def run(self, jobs: list[Job]) -> Iterator[tuple[int, Outcome]]:
        """Yields (index of the job, its outcome) as jobs finish. A failing kernel never raises.

        StepError if the file cannot be used at all, MemoryError if a size is too large for this machine.
        """
        self.thread = thread = threading.Thread(target=self._build, args=(jobs,), daemon=True)
        self.built_in: dict[int, float] = {}  # index of the job -> seconds
        self.pool.start(prestart.prepare, jobs[0].device)
        self.pool.expect(True)
        thread.start()
        for index, result in self.pool.results():
            job = jobs[index]
            if isinstance(result, StepError):
                raise result
            if isinstance(result, Failed) and result.memory:
                raise MemoryError(f"the run {result.message}")
            if isinstance(result, Failed):
                result = _outcome(
                    job, Built(job.step, job.size, kind="died", message=f"the run {result.message}")
                )
            result.seconds += self.built_in[index]
            yield index, result

    def _build(self, jobs: list[Job]) -> None:
        """Builds each job and hands it to the pool, the costliest first. Runs in a thread beside `run`."""
        for index in sorted(range(len(jobs)), key=lambda index: -jobs[index].cost):
            if self.stopped:
                return
            job = jobs[index]
            begin, key = time.perf_counter(), (job.step, job.size)
            if key not in self.made:
                self.made[key] = self.builder.build(*key)
            self.built_in[index] = time.perf_counter() - begin
            self.pool.submit(index, judge, job, self.made[key])
        self.pool.expect(False)


def judge(job: Job, built: Built) -> Outcome | StepError:
    """Run an artifact and compare its result with the reference. Runs in a process of the pool."""
    if built.kind in ("file", "untouched"):
        return (StepError if built.kind == "file" else UntouchedStep)(built.message)
    begin, outcome = time.perf_counter(), _outcome(job, built)
    if built.artifact is not None:
        _run_kernel(job, built.artifact, outcome)
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _outcome(job: Job, built: Built) -> Outcome:
    from tirxlab.devices import device_name

    device = device_name(job.device)
    outcome = Outcome(job.step, size_text(job.size), device, job.order, None, "not built", 0.0, built.message)
    outcome.printed, outcome.misfit = built.printed, built.kind == "misfit"
    return outcome


def _run_kernel(job: Job, artifact, outcome: Outcome) -> None:
    """Run a kernel and fill in its outcome. A kernel may overwrite its inputs: a second copy is compared."""
    import numpy as np

    import ptxsim
    import utils
    from tirxlab.explain.origins.follow import follow

    inputs = utils.prepare_data(*job.size, seed=job.seed, device=job.device)
    A, B, _ = utils.prepare_data(*job.size, seed=job.seed, device=job.device)
    try:
        run, _ = utils.launch(artifact, *inputs, device=job.device, order=job.order)
    except ValueError as error:  # buffers that are not A, B and D, or a launch that the device refuses
        outcome.verdict, outcome.message = "error", str(error)
        return
    except ptxsim.Fault as error:
        outcome.verdict, outcome.message = "incomplete", str(error)
        return
    outcome.verdict, outcome.stats = run.verdict, run.stats
    outcome.printed = "\n".join(filter(None, [outcome.printed, run.stdout]))
    outcome.findings = [asdict(finding) for finding in run.findings]
    outcome.message = utils.report(run, artifact) if run.findings else ""
    if not run.outputs and run.verdict in ("clean", "review", "not checked"):
        outcome.message = "the kernel writes none of its buffers: D is never written"
    last = artifact.buffers[-1].name
    for result in [run.outputs[last]] if last in run.outputs else []:
        try:
            utils.verify(result, A, B)
            outcome.right = True
        except AssertionError as error:
            outcome.right = False
            outcome.wrong, outcome.mismatch = getattr(error, "map", None), str(error)
            if run.verdict in ("clean", "review") and isinstance(error, utils.WrongResult):
                way = follow(artifact, A, B, error.wrong, job.order) if outcome.device == "sim" else []
                outcome.mismatch = error.text(way)
            # After an error, only the first line: the cause must stay on screen, the places add nothing new.
            said = outcome.mismatch.splitlines()[: 1 if run.verdict == "error" else None]
            outcome.message = "\n".join(filter(None, [outcome.message, *said]))
        data = result if isinstance(result, np.ndarray) else result.cpu().numpy()
        outcome.digest = hashlib.sha256(data.tobytes()).hexdigest()[:16]


def run_job(job: Job) -> Outcome:
    """The outcome of one job, run with processes of its own."""
    with Runner(job.kernels) as runner:
        return next(runner.run([job]))[1]


def quick_or_all(step: int, device: str | None, full: bool = False) -> list[Size]:
    """The rubric's sizes for a step, smallest first: all on a GPU or with `full`, else the quick ones."""
    from tirxlab.devices import device_name
    from tirxlab.rubric import load_rubric

    rubric = load_rubric()
    every = full or device_name(device) == "cuda"
    return sorted(rubric.sizes(step) if every else rubric.quick_sizes(step), key=lambda s: s[0] * s[1] * s[2])


def worker_count(jobs: list[Job]) -> int:
    """At most two: a simulated cluster uses one core, matrix products use the rest; on a GPU, one process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    on_gpu = any(job.device == "cuda" for job in jobs)
    return 1 if on_gpu else max(1, min(2, cores, len(jobs)))


def run_jobs(jobs: list[Job], title: str) -> list[Outcome]:
    """Runs all jobs of one file, with a progress bar; returns the outcomes in the order of the jobs."""
    results: dict[int, Outcome] = {}
    with Runner(jobs[0].kernels, worker_count(jobs)) as runner, Progressing(title, jobs) as progress:
        for index, result in runner.run(jobs):
            results[index] = result
            progress.done(jobs[index])
    return [results[index] for index in range(len(jobs))]


def bar_on(console):
    """A progress bar with the time left, for tasks with fields `count` and `jobs`; hidden off a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    text = TextColumn("{task.description} {task.fields[count]}/{task.fields[jobs]}")
    columns = text, BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class Progressing:
    """On a terminal, a bar with the time left; in a log, a line for each job, unless `log` is False."""

    def __init__(self, title: str, jobs: list[Job], log: bool = True):
        from tirxlab.cli.common import notes

        self.console, self.count, self.jobs, self.log = notes(), 0, len(jobs), log
        self.bar = bar_on(self.console)
        weight = sum(job.cost + BUILD_COST for job in jobs)
        self.task = self.bar.add_task(title, total=weight, count=0, jobs=self.jobs)

    def __enter__(self) -> Progressing:
        self.bar.start()
        return self

    def __exit__(self, *_) -> None:
        self.bar.stop()

    def done(self, job: Job) -> None:
        self.count += 1
        self.bar.update(self.task, advance=job.cost + BUILD_COST, count=self.count)
        if self.log and not self.console.is_terminal:
            self.console.print(
                f"[{self.count}/{self.jobs}] step {job.step} at {size_text(job.size)}", markup=False
            )
