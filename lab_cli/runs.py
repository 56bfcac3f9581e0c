"""Runs steps and says what came of it: the engine of demo, check, score and compare.

A job is one step at one size. Jobs run in this process, or in a few worker processes where that is faster.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

from lab_cli.common import notes
from tirxlab.steps import builder, size_text

Size = tuple[int, int, int]


@dataclass
class Job:
    """One step at one size, and how to run it."""

    kernels: Path  # the file that defines hgemm_vN
    step: int
    size: Size  # (M, N, K)
    device: str | None = None  # as get_device takes it
    order: str | int = "program"
    checks: bool = True
    seed: int = 0  # of the input data

    @property
    def cost(self) -> int:
        return self.size[0] * self.size[1] * self.size[2]


@dataclass
class Outcome:
    """What came of a job."""

    step: int
    size: str  # "1024" or "MxNxK"
    device: str  # "sim" or "cuda"
    order: str | int
    right: bool | None  # the matrix equals the reference; None if nothing was computed
    verdict: (
        str  # of the device: clean, review, error, incomplete, not checked; "not built" if it did not compile
    )
    seconds: float  # wall time, build and comparison included
    message: str = ""  # what is wrong, for a person; may have several lines
    findings: list[dict] = field(default_factory=list)
    stats: dict = field(default_factory=dict)
    printed: str = ""  # what the kernel printed
    digest: str = ""  # of the output's bytes, to compare runs
    misfit: bool = False  # the builder refused the size

    @property
    def passed(self) -> bool:
        return self.right is True and self.verdict not in ("error", "not built")


def run_job(job: Job) -> Outcome:
    """Build, run, compare. A failing kernel never raises; a StepError or DeviceError may."""
    from tirxlab.devices import get_device

    start = time.perf_counter()
    outcome = Outcome(
        job.step, size_text(job.size), get_device(job.device).NAME, job.order, None, "not built", 0.0
    )
    make = builder(job.kernels, job.step)
    try:
        kernel = make(*job.size)
    except Exception as error:  # the student's code, or the dialect that it uses
        outcome.misfit = type(error) is ValueError  # what a builder raises for a shape that does not fit
        told = isinstance(error, ValueError)  # by the builder, the dialect or tirxlab/slips.py
        outcome.message = str(error) if told else f"{type(error).__name__}: {error}"
    else:
        _run_kernel(job, kernel, outcome)
    outcome.seconds = time.perf_counter() - start
    return outcome


def _run_kernel(job: Job, kernel, outcome: Outcome) -> None:
    """Fill in what came of a kernel that its builder returned."""
    import hashlib

    import numpy as np

    import utils
    from tirxlab.build import BuildError

    A, B, C = utils.prepare_data(*job.size, seed=job.seed, device=job.device)
    try:
        run, artifact = utils.launch(kernel, A, B, C, device=job.device, order=job.order, checks=job.checks)
    except BuildError as error:
        outcome.message = str(error)
        return
    outcome.verdict, outcome.stats, outcome.printed = run.verdict, run.stats, run.stdout
    outcome.findings = [asdict(finding) for finding in run.findings]
    outcome.message = utils.report(run, artifact) if run.findings else ""
    if not run.outputs and run.verdict in ("clean", "review", "not checked"):
        outcome.message = "the kernel writes none of its buffers: D is never written"
    for result in run.outputs.values():
        try:
            utils.verify(result, A, B)
            outcome.right = True
        except AssertionError as error:
            outcome.right = False
            # The cause first, on one screen: after an error the places of wrong elements say nothing new.
            said = str(error).splitlines()[: 1 if run.verdict == "error" else None]
            outcome.message = "\n".join(filter(None, [outcome.message, *said]))
        data = result if isinstance(result, np.ndarray) else result.cpu().numpy()
        outcome.digest = hashlib.sha256(data.tobytes()).hexdigest()[:16]


def quick_or_all(step: int, device: str | None, full: bool = False) -> list[Size]:
    """The rubric's sizes for a step, smallest first: all on a GPU or with `full`, else the quick ones."""
    from tirxlab.devices import get_device
    from tirxlab.rubric import load_rubric

    rubric = load_rubric()
    every = full or get_device(device).NAME == "cuda"
    return sorted(rubric.sizes(step) if every else rubric.quick_sizes(step), key=lambda s: s[0] * s[1] * s[2])


def require_written(path: Path, steps: list[int]) -> None:
    """StepError for the first step that is missing or still a skeleton."""
    for step in steps:
        builder(path, step)


def worker_count(jobs: list[Job]) -> int:
    """Two processes at most: a simulated cluster uses one core, matrix products the rest; a GPU takes one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    on_gpu = any(job.device == "cuda" for job in jobs)
    return 1 if on_gpu else max(1, min(2, cores, len(jobs)))


def run_jobs(jobs: list[Job], title: str, run: Callable = run_job) -> list:
    """Run all jobs, the costly ones first, with a progress bar; the results in the order of the jobs."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = notes()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    results: dict[int, object] = {}
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=len(jobs))
        for index, result in _results(jobs, run):
            results[index] = result
            progress.advance(task)
            if not console.is_terminal:
                print_line(console, jobs[index], len(results), len(jobs))
    return [results[index] for index in range(len(jobs))]


def print_line(console, job: Job, done: int, total: int) -> None:
    """The progress bar of a log file."""
    console.print(f"[{done}/{total}] step {job.step} at {size_text(job.size)}", markup=False)


def _results(jobs: list[Job], run: Callable) -> Iterator[tuple[int, object]]:
    """(index of the job, its result), as they come."""
    costly_first = sorted(range(len(jobs)), key=lambda index: -jobs[index].cost)
    workers = worker_count(jobs)
    if workers == 1:
        for index in costly_first:
            yield index, run(jobs[index])
        return
    with _pool(workers) as pool:
        futures: dict[Future, int] = {pool.submit(run, jobs[index]): index for index in costly_first}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _pool(workers: int) -> ProcessPoolExecutor:
    # Each worker's matrix products on its own cores: two BLAS pools on the same cores slow each other down.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // workers)))
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
