"""A class: which submissions there are, what is done already, and the files that grading leaves.

A folder per submission with grade.json (written last: it says that the submission is done), feedback.txt,
feedback.html and bundle.zip, from which the grade can be given again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from instructor.autograder.apart import grade_apart
from instructor.autograder.grading import Options
from instructor.autograder.points import Grade, StepGrade
from instructor.autograder.submission import LARGEST, Submission, SubmissionError, read_submission
from instructor.formats import page, plain, to_json, words
from tirxlab.pool import Failed, Pool
from tirxlab.rubric import load_rubric
from tirxlab.version import lab_version

TRIES = 2  # of a submission whose worker dies


@dataclass
class Class:
    """The submissions of a folder, and where their grades go."""

    folder: Path
    out: Path
    options: Options
    roster: dict[str, dict[str, str]] = field(default_factory=dict)  # submission -> its row
    again: bool = False  # also what is graded already

    def names(self) -> list[str]:
        """Names of the submissions: folders, and .py and .tar files, of the class's folder."""
        found = [
            path.name
            for path in self.folder.iterdir()
            if not path.name.startswith(".") and (path.is_dir() or path.suffix in (".py", ".tar"))
        ]
        return sorted(key for key in found if (self.folder / key).resolve() != self.out.resolve())

    def read(self, key: str) -> Submission | str:
        """The submission, or why it is none."""
        try:
            made = read_submission(self.folder / key)
        except SubmissionError as error:
            return str(error)
        student = self.roster.get(key, {}).get("student") or made.student
        return Submission(key, made.text, student, made.lab)

    def done(self, key: str, submission: Submission | str) -> dict | None:
        """The grade that is there already, if it is of this text and this lab and no regrade is asked for."""
        try:
            made = json.loads((self.out / key / "grade.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        digest = submission.digest if isinstance(submission, Submission) else ""
        same = made.get("digest") == digest and made.get("lab") == lab_version()
        same = same and {step["step"] for step in made["steps"]} == set(self.options.steps)
        regrade = self.roster.get(key, {}).get("regrade", "").lower() in ("yes", "true", "1")
        return made if same and not self.again and not (regrade and not made.get("regraded")) else None

    def write(
        self, key: str, submission: Submission | str, made: Grade, regraded: bool | None = None
    ) -> dict:
        """The files of a graded submission; returns what grade.json holds.

        `regraded`: whether this is not its first grade; by default, whether it has one.
        """
        folder = self.out / key
        folder.mkdir(parents=True, exist_ok=True)
        regraded = (folder / "grade.json").exists() if regraded is None else regraded
        data = plain(made) | {"regraded": regraded}
        (folder / "feedback.txt").write_text(words(made) + "\n", encoding="utf-8")
        (folder / "feedback.html").write_text(page(made), encoding="utf-8")
        if isinstance(submission, Submission):
            (folder / "bundle.zip").write_bytes(bundle(submission, made))
        scratch = folder / ".grade.json"
        text = json.dumps(data, indent=2, default=str)
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, folder / "grade.json")
        return json.loads(text)


def bundle(submission: Submission, made: Grade) -> bytes:
    """What the grade came from: the file, the runs with seeds and findings, artifacts, versions."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gemm_kernels.py", submission.text)
        archive.writestr("grade.json", to_json(made))
        for name, data in made.artifacts.items():
            archive.writestr(f"artifacts/{name}", data)
    return out.getvalue()


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Rows by their column `submission`; ValueError if there is none."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path}: too large for a roster")
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or "submission" not in rows[0]:
        raise ValueError(f"{path}: the first line must name the columns, one of them `submission`")
    return {row["submission"]: {k: v or "" for k, v in row.items() if k} for row in rows}


def failed(key: str, digest: str, reason: str, chosen: tuple[int, ...]) -> Grade:
    """The grade of what could not be graded: no points, to be looked at."""
    rubric = load_rubric()
    steps = [StepGrade(n, rubric.titles[n], rubric.points[n], "not graded") for n in chosen]
    return Grade(key, digest, lab_version(), "sim", steps, problem=f"not graded: {reason}")


def local(
    work: dict[str, Submission], options: Options, jobs: int, seconds: float
) -> Iterator[tuple[str, Grade]]:
    """Grades on this machine, `jobs` submissions at a time; a process that dies is tried again."""
    tries = dict.fromkeys(work, 1)
    with Pool(jobs, seconds, memory=64 << 30) as pool:
        for key, submission in work.items():
            pool.submit(key, grade_apart, submission, options)
        for key, result in pool.results():
            if isinstance(result, Failed) and tries[key] < TRIES:
                tries[key] += 1
                pool.submit(key, grade_apart, work[key], options)
            elif isinstance(result, Failed):
                yield key, failed(key, work[key].digest, result.message, options.steps)
            else:
                yield key, result


def on_dask(work: dict[str, Submission], options: Options, address: str) -> Iterator[tuple[str, Grade]]:
    """Grades on a Dask cluster; a submission whose worker dies goes to another one, then is marked."""
    from distributed import Client, as_completed

    with Client(address) as client:
        futures = {
            client.submit(
                grade_apart, submission, options, key=f"{key}-{submission.digest}", retries=TRIES - 1
            ): key
            for key, submission in work.items()
        }
        for future in as_completed(futures):
            key = futures[future]
            error = future.exception()
            if error is None:
                yield key, future.result()
            else:
                reason = f"{type(error).__name__} on the cluster"
                yield key, failed(key, work[key].digest, reason, options.steps)


def grade_class(made: Class, run: Callable, tick: Callable = lambda key: None) -> list[dict]:
    """All grades as plain data. `run(work)` gives (key, Grade); what is done is not done again."""
    rows, work = {}, {}
    for key in made.names():
        submission = made.read(key)
        found = made.done(key, submission)
        if found is not None:
            rows[key] = found
        elif isinstance(submission, str):
            rows[key] = made.write(key, submission, failed(key, "", submission, made.options.steps))
        else:
            work[key] = submission
            continue
        tick(key)
    for key, grade_made in run(work) if work else ():
        rows[key] = made.write(key, work[key], grade_made)
        tick(key)
    return [rows[key] for key in sorted(rows)]
