"""Grades a class: finds the submissions, keeps track of what is done, and writes the files of each grade.

Each submission has a folder with grade.json (written last: it marks the submission as done), feedback.txt,
feedback.html and bundle.zip, from which the grade can be reproduced.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import json
import os
import pickle
import re
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from instructor.autograder import opening
from instructor.autograder.apart import grade_apart
from instructor.autograder.grading import Options, failed
from instructor.autograder.plan import load_hidden, terms
from instructor.autograder.points import Grade
from instructor.autograder.reader import Reader
from instructor.autograder.submission import LARGEST, Submission, SubmissionError, read_submission
from instructor.autograder.warm import compiled
from instructor.formats import from_plain, page, plain, to_json, words
from tirxlab import on_workers
from tirxlab.pool import Failed, Pool
from tirxlab.sandbox.limits import piled, printable
from tirxlab.version import lab_version

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

TRIES = 2  # for a submission whose worker dies; one that takes too long is not tried again
SUMMARIES = (
    "grades.csv",
    "index.html",
    "status.html",
    "board.html",
    "adjust.csv",
    "final.csv",
    "canvas.csv",
    "moodle.csv",
    "gradescope.csv",
)  # of the whole class, beside the submissions' folders
LONGEST = 200  # bytes of a submission's name
TAKEN = " (submission)"  # added to a name that one of our files has
_SHORT = re.compile(r".*\.\.[0-9a-f]{16}", re.DOTALL)  # a name that was too long, or reads like one


@dataclass
class Class:
    """The submissions of a folder, and where their grades go."""

    folder: Path
    out: Path
    options: Options
    roster: dict[str, dict[str, str]] = field(default_factory=dict)  # submission -> its row
    again: bool = False  # also grade what is graded already

    def __post_init__(self):
        self.reader, self.known = Reader(opening, self.options.level), {}

    def __enter__(self) -> Class:
        return self

    def __exit__(self, *_) -> None:
        self.reader.close()

    @functools.cached_property
    def paths(self) -> dict[str, Path]:
        """The submissions, by names that can be shown and written: folders, and .py and .tar files."""
        found = [
            path
            for path in self.folder.iterdir()
            if path.name[0] != "." and _may_be_one(path) and not _no_hand_in(path)
        ]
        ours = os.path.realpath(self.out)  # pathlib's resolve raises for a link to itself
        return {plain_name(path.name): path for path in found if os.path.realpath(path) != ours}

    @functools.cached_property
    def terms(self) -> str:
        """A hash of what grades depend on besides text and version. ValueError: hidden.toml is malformed."""
        return terms(self.options.hidden or load_hidden())

    def names(self) -> list[str]:
        return sorted(self.paths)

    def left_out(self) -> list[str]:
        """Other names in the folder that may have been meant as submissions."""
        known = {path.name for path in self.paths.values()} | {self.out.name}
        return sorted(
            plain_name(path.name)
            for path in self.folder.iterdir()
            if path.name not in known and not _no_hand_in(path)
        )

    @functools.cached_property
    def counts(self) -> Counter[str]:
        """How many of the submissions' names some disk may take for the same."""
        return Counter(map(_on_any_disk, self.paths))

    def place(self, key: str) -> Path:
        """The folder for a submission's files, with a hash if some disk would take its name for another's."""
        alone = self.counts[_on_any_disk(key)] < 2
        return self.out / (key if alone else f"{key}..{hashlib.sha256(key.encode()).hexdigest()[:16]}")

    def read(self, key: str) -> Submission | str:
        """The submission, or why it cannot be read; reads it only once."""
        if key not in self.known:
            self.known[key] = self._read(key)
        return self.known[key]

    def _read(self, key: str) -> Submission | str:
        try:
            made = read_submission(self.paths[key], self.reader)
        except SubmissionError as error:
            return printable(error.what, 1)
        student = self.roster.get(key, {}).get("student") or made.student
        return Submission(key, made.text, printable(student, 1), made.lab)

    def done(self, key: str, submission: Submission | str) -> dict | None:
        """The existing grade as plain data, if it is of this text, this lab and these terms, and no regrade
        is requested; else None.
        """
        try:
            found = json.loads((self.place(key) / "grade.json").read_text(encoding="utf-8"))
            grade = from_plain(found)
            made = json.loads(json.dumps(plain(grade), default=str))
            made |= {"regraded": found["regraded"] is True, "terms": found["terms"]}
            made["folder"] = self.place(key).name
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # no grade, or half of one
        digest = submission.digest if isinstance(submission, Submission) else ""
        same = (grade.name, grade.digest, grade.lab) == (key, digest, lab_version())
        same = same and (bool(digest) or str(submission) in grade.problem)  # another reason than before
        same = same and made["terms"] == self.terms
        same = same and {step.step for step in grade.steps} == set(self.options.steps)
        same = same and not (digest and not grade.final)  # it may have been the machine's fault
        regrade = self.roster.get(key, {}).get("regrade", "").lower() in ("yes", "true", "1")
        return made if same and not self.again and not (regrade and not made["regraded"]) else None

    def write(
        self, key: str, submission: Submission | str, made: Grade, regraded: bool | None = None
    ) -> dict:
        """Writes the files of a graded submission; returns the content of grade.json.

        `regraded`: whether this is not its first grade; by default, whether it already has one.
        """
        folder = self.place(key)
        folder.mkdir(parents=True, exist_ok=True)
        regraded = (folder / "grade.json").exists() if regraded is None else regraded
        data = plain(made) | {"regraded": regraded, "terms": self.terms, "folder": folder.name}
        (folder / "feedback.txt").write_text(words(made) + "\n", encoding="utf-8")
        (folder / "feedback.html").write_text(page(made), encoding="utf-8")
        (folder / "feedback.zip").write_bytes(zipped(folder, ("feedback.txt", "feedback.html")))
        if isinstance(submission, Submission):
            (folder / "bundle.zip").write_bytes(bundle(submission, made))
        scratch = folder / ".grade.json"
        text = json.dumps(data, indent=2, default=str)
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, folder / "grade.json")
        return json.loads(text)


def _may_be_one(path: Path) -> bool:
    """Whether it is a folder, .py or .tar; never raises, as pathlib's is_dir may for what cannot be read."""
    return os.path.isdir(path) or path.name.lower().endswith((".py", ".tar"))


def _no_hand_in(path: Path) -> bool:
    """Whether it is something that systems leave in any folder and that nobody would miss."""
    hidden = path.name.startswith(".") and not _may_be_one(path)
    return hidden or path.name.startswith("._") or path.name in (".git", "__MACOSX")


def plain_name(name: str) -> str:
    """A file's name as one line of plain text that can name a folder; distinct names stay distinct."""
    shown = "".join(c if c.isprintable() and c != "\\" and fits else _escaped(c) for c, fits in piled(name))
    if len(shown.encode()) > LONGEST or _SHORT.fullmatch(shown):
        return f"{shown[: LONGEST // 8]}..{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return f"{shown}{TAKEN}" if shown.casefold() in SUMMARIES or shown.endswith(TAKEN) else shown


def _on_any_disk(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()


@contextlib.contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keeps other runs from grading into this folder; raises RuntimeError if one already does."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError(f"{out}: another run is grading into this folder") from None
        yield


def zipped(folder: Path, names: tuple[str, ...]) -> bytes:
    """Files of a folder as a zip archive, which a platform can hand back to the student in one piece."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, (folder / name).read_bytes())
    return out.getvalue()


def bundle(submission: Submission, made: Grade) -> bytes:
    """A zip archive of what the grade came from: file, runs with seeds and findings, artifacts, versions."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gemm_kernels.py", submission.text)
        archive.writestr("grade.json", to_json(made))
        for name, data in made.artifacts.items():
            archive.writestr(f"artifacts/{name}", data)
    return out.getvalue()


def read_roster(path: Path) -> dict[str, dict[str, str]]:
    """Rows by their column `submission`; ValueError if there is no such column, or two rows are for one."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path}: too large for a roster")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a CSV file in UTF-8: {error}") from None
    if not rows or "submission" not in rows[0]:
        raise ValueError(f"{path}: the first line must name the columns, one of them `submission`")
    found = {}
    for row in rows:
        if row["submission"] and row["submission"] in found:
            raise ValueError(f"{path}: two rows for {printable(row['submission'], 1)}")
        found[row["submission"]] = {k: v or "" for k, v in row.items() if k}
    found.pop("", None)  # a line of commas
    return found


def match_roster(roster: dict[str, dict], names: list[str]) -> dict[str, dict]:
    """The rows by the name in the folder. A row may omit `.tar` or `.py` if only one file can be meant.

    Rows without a file keep their name. Accented letters may be composed or decomposed Unicode. ValueError:
    two rows mean one file.
    """
    whole = {name: _composed(name) for name in names}
    stems, counts = Counter(map(_stem, whole.values())), Counter(whole.values())
    found = {_stem(one): name for name, one in whole.items() if stems[_stem(one)] == 1}
    found |= {one: name for name, one in whole.items() if counts[one] == 1}
    meant = {key: key if key in whole else found.get(_composed(key), key) for key in roster}
    if twice := [name for name, rows in Counter(meant.values()).items() if rows > 1]:
        raise ValueError(f"the roster has two rows for {printable(twice[0], 1)}")
    return {meant[key]: row for key, row in roster.items()}


def _composed(name: str) -> str:
    """The name with accented letters composed; macOS decomposes them."""
    return unicodedata.normalize("NFC", name)


def _stem(name: str) -> str:
    return name[: -len(Path(name).suffix)] if Path(name).suffix.lower() in (".py", ".tar") else name


def local(
    work: dict[str, Submission], options: Options, jobs: int, seconds: float
) -> Iterator[tuple[str, Grade]]:
    """Grades on this machine, `jobs` submissions at a time; one whose process dies is tried again."""
    compiled()
    tries = dict.fromkeys(work, 1)
    with Pool(jobs, seconds, memory=64 << 30) as pool:
        for key, submission in work.items():
            pool.submit(key, grade_apart, submission, options)
        for key, result in pool.results():
            if isinstance(result, Failed) and not result.late and tries[key] < TRIES:
                tries[key] += 1
                pool.submit(key, grade_apart, work[key], options)
            elif isinstance(result, Failed):
                yield key, failed(key, work[key].digest, result.message, options.steps)
            else:
                yield key, result


def on_dask(work: dict[str, Submission], options: Options, address: str) -> Iterator[tuple[str, Grade]]:
    """Grades on a Dask cluster; a submission whose worker dies goes to another, then counts as not graded."""
    from distributed import Client, as_completed

    with Client(address) as client:
        futures = {
            client.submit(
                on_workers.made,
                on_workers.task(grade_apart, submission, options),
                key=f"{key}-{submission.digest}",
                retries=TRIES - 1,
            ): key
            for key, submission in work.items()
        }
        for future in as_completed(list(futures)):
            key = futures.pop(future)  # else a result would be computed again if its worker died later
            error = future.exception()
            if error is None:
                made = pickle.loads(future.result())
            else:
                reason = f"{type(error).__name__} on the cluster: {printable(str(error), 1)}"
                made = failed(key, work[key].digest, reason, options.steps)
            future.release()
            yield key, made


def grade_class(made: Class, run: Callable, tick: Callable = lambda key: None) -> list[dict]:
    """All grades as plain data. `run(work)` grades the submissions that are not done: (key, Grade)s."""
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
