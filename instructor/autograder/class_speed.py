"""Measures the speed of a graded class: the steps that are right and implemented go to a GPU.

Every step is built here, in its confined child; only artifacts travel. `measure` takes parcels and returns
each with its measurements: cloud.py rents B200s, `here` uses the GPU of this machine.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from instructor.autograder.batch import Class
from instructor.autograder.plan import load_hidden, speed_seed
from instructor.autograder.points import NOT_MEASURED, stands
from instructor.autograder.speed import Measured, NotBuilt, Timed, time_steps
from instructor.autograder.submission import Submission
from instructor.autograder.timeable import timeable
from instructor.formats.plain import from_plain
from tirxlab.sandbox import Builder
from tirxlab.steps import size_text


@dataclass(frozen=True)
class Parcel:
    """The launches of one submission that are to be timed, and hints for steps that cannot be."""

    key: str  # of the submission in its class
    launches: dict[int, list[Timed]]  # by step
    hints: dict[int, str] = field(default_factory=dict)  # of steps that have no artifact at a published size


Measure = Callable[[Iterable[Parcel]], Iterable[tuple[Parcel, Measured | Exception]]]


def measure_class(
    made: Class, rows: list[dict], measure: Measure, tick: Callable = lambda key: None
) -> tuple[list[dict], dict[str, Exception], float]:
    """(the rows with speed, errors of those without, seconds of GPU). Rows that have a speed keep it."""
    kept = {row["name"]: row for row in rows}
    todo = [key for key, row in kept.items() if is_waiting(row)]
    for key in set(kept) - set(todo):
        tick(key)
    failed, seconds = {}, 0.0
    parcels = (parcel(made, key, kept[key]) for key in todo)
    for one, found in measure(parcels):
        if isinstance(found, Exception):
            failed[one.key] = found
        else:
            seconds += found.seconds
            kept[one.key] = enter(made, kept[one.key], one, found)
        tick(one.key)
    return [kept[row["name"]] for row in rows], failed, seconds


def is_waiting(row: dict) -> bool:
    """Whether a graded submission has no speed yet."""
    return stands(row["problem"]) and any(step["speed"] == NOT_MEASURED for step in row["steps"])


def parcel(made: Class, key: str, row: dict) -> Parcel:
    """Builds the steps that are right and implemented, at the published sizes."""
    submission, hidden = made.read(key), load_hidden()
    good = [step["step"] for step in row["steps"] if step["right"] and step["implemented"]]
    one = Parcel(key, {})
    if not good or not isinstance(submission, Submission):
        return one
    with Builder(submission.text, limits=made.options.build, level=made.options.level) as builder:
        for step in good:
            try:
                one.launches[step] = timeable(
                    step, builder.build, speed_seed(hidden, submission.digest, step)
                )
            except NotBuilt as error:
                one.hints[step] = str(error)
    return one


def here(parcels: Iterable[Parcel]) -> Iterator[tuple[Parcel, Measured]]:
    """Measures on the GPU of this machine, one submission after the other."""
    for one in parcels:
        yield one, time_steps(one.launches, "cuda")


def enter(made: Class, row: dict, one: Parcel, found: Measured) -> dict:
    """Writes the submission's files again, with its speed; returns the new content of grade.json."""
    grade = from_plain(row)
    grade.device = "cuda"
    hints = {**one.hints, **found.hints}
    for step in grade.steps:
        if step.step in hints:
            step.timed(hints[step.step], found.ms.get(step.step))
        else:
            step.speed = "not reached"
        step.settle()
    grade.artifacts = kept_artifacts(made, one.key) | {
        f"step{step}-{size_text(timed.size)}.lab": timed.artifact
        for step, work in one.launches.items()
        for timed in work
    }
    return made.write(one.key, made.read(one.key), grade, regraded=row["regraded"])


def kept_artifacts(made: Class, key: str) -> dict[str, bytes]:
    """The artifacts in the bundle that grading left."""
    try:
        with zipfile.ZipFile(made.place(key) / "bundle.zip") as archive:
            names = [name for name in archive.namelist() if name.startswith("artifacts/")]
            return {name.removeprefix("artifacts/"): archive.read(name) for name in names}
    except (OSError, zipfile.BadZipFile):
        return {}
