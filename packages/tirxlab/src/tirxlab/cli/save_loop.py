"""`./lab check --watch`: the step is run again at every save, in processes that stay warm.

The child that builds has imported TVM and the pool's process the simulator, and both keep running. After a
failure the next save begins with the size and order that failed, so that the answer comes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tirxlab.cli import outcomes as outcome_view
from tirxlab.cli.common import notes, output
from tirxlab.cli.record import first_unfinished, load
from tirxlab.cli.runs import Job, Outcome, Runner
from tirxlab.steps import StepError, read_text

POLL = 0.03  # seconds between two checks of the file


def watch(path: Path, step: int | None, jobs_of: Callable[[int], list[Job]]) -> None:
    """Runs until Ctrl-C. `step`: None for the first that is not clean; `jobs_of`: step -> its runs."""
    with Runner(path) as runner:
        for text in texts(path):
            try:
                once(runner, path, text, step, jobs_of)
            except StepError as error:  # the file, or a step that is not begun
                output().print(str(error), markup=False)
            notes().print(f"watching {path.name}", markup=False)


def texts(path: Path) -> Iterator[str]:
    """Yields the file's text now, and again whenever it is saved with a different text."""
    last, seen = None, None
    while True:
        try:
            stamp = path.stat()
            key = stamp.st_mtime_ns, stamp.st_ino, stamp.st_size
            if key != seen:
                seen, text = key, read_text(path)
                if text and text != last:
                    last = text
                    yield text
        except (OSError, StepError):  # an editor is replacing the file
            pass
        time.sleep(POLL)


def once(runner: Runner, path: Path, text: str, step: int | None, jobs_of: Callable) -> None:
    """Run the step of this text up to the first failure, beginning with the run that failed last time."""
    begin, record = time.perf_counter(), load(path)
    runner.renew(text)
    step = step or first_unfinished(record, text)
    if step is None:
        return output().print("all ten steps are clean; next: ./lab score", markup=False)
    mine = record.steps.get(step)
    jobs = jobs_of(step)
    if mine is not None and mine.state == "fails":
        jobs.sort(key=lambda job: outcome_view.place_of(job) != (mine.size, str(mine.order)))
    done: list[Outcome] = []
    for job in jobs:
        done += [outcome for _, outcome in runner.run([job])]
        if not done[-1].passed:
            break
    seconds = time.perf_counter() - begin
    record.note(step, text, done)
    record.save()
    say(step, done, len(jobs), seconds)
    if done[-1].passed:
        output().print(outcome_view.what_next(text, done), markup=False)


def say(step: int, done: list[Outcome], planned: int, seconds: float) -> None:
    """Print the failure or the review, if any, as `check` shows it; then the state in one line."""
    last = done[-1]
    reviewed = [outcome for outcome in done if outcome.verdict == "review"]
    if not last.passed:
        outcome_view.details(last)
    elif reviewed:
        outcome_view.details_once(reviewed[:1])
    state = "fails" if not last.passed else "passes, but is to be reviewed" if reviewed else "is clean"
    output().print(f"step {step} {state} ({len(done)} of {planned} runs, {seconds:.1f} s)", markup=False)
