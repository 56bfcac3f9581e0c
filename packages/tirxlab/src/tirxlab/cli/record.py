"""What `check` and `score` remember about each step of a kernels file: attempts, texts that passed, hints.

It is one JSON file beside the kernels file, `.NAME.lab.json`, and a convenience only: a damaged or missing
file counts as empty, and no grade depends on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tirxlab.steps import STEPS, sections

KEPT = 20  # how many passing texts of a step are remembered


@dataclass
class Attempts:
    """The record of one step."""

    count: int = 0  # checks of different texts
    text: str = ""  # digest of the step's text at its last check
    state: str = ""  # "clean", "to review", "fails"; "" before the first check
    said: str = ""  # the first line of what was wrong
    line: int = 0  # of the file, 0 if none
    size: str = ""  # of the run that failed
    order: str | int = ""
    hints: int = 0  # shown since the last success
    passed: dict[str, str] = field(default_factory=dict)  # digests of texts that passed -> their state

    def state_of(self, digest: str) -> str:
        """The state of this text; "" if it was never checked, or failed and another was checked since."""
        return self.state if digest == self.text else self.passed.get(digest, "")


@dataclass
class Record:
    path: Path  # of the kernels file
    steps: dict[int, Attempts] = field(default_factory=dict)

    def save(self) -> None:
        """Write the record; in a folder that cannot be written, nothing is remembered."""
        with contextlib.suppress(OSError):
            place(self.path).write_text(json.dumps({n: asdict(a) for n, a in self.steps.items()}, indent=1))

    def note(self, step: int, text: str, outcomes: list) -> None:
        """Record the outcomes of all runs of a step, or of those up to the first that failed."""
        mine, digest = self.steps.setdefault(step, Attempts()), digest_of(text, step)
        mine.count += digest != mine.text
        mine.text, last = digest, outcomes[-1]
        passed = all(outcome.passed for outcome in outcomes)
        reviewed = any(outcome.verdict == "review" for outcome in outcomes)
        mine.state = ("to review" if reviewed else "clean") if passed else "fails"
        mine.passed.pop(digest, None)
        if passed:
            mine.passed = dict([*mine.passed.items(), (digest, mine.state)][-KEPT:])
        mine.said = "" if passed else next(iter(last.message.splitlines()), last.verdict)
        where = next((f["where"].get("line") for f in last.findings if f["where"].get("line")), 0)
        mine.line = 0 if passed else where or _line_of(mine.said)
        mine.size, mine.order = ("", "") if passed else (last.size, last.order)
        mine.hints = 0 if mine.state == "clean" else mine.hints


def place(path: Path) -> Path:
    return path.with_name(f".{path.name}.lab.json")


def load(path: Path) -> Record:
    """The record of a kernels file."""
    try:
        found = json.loads(place(path).read_text(encoding="utf-8"))
        steps = {int(number): Attempts(**fields) for number, fields in found.items() if int(number) in STEPS}
    except (OSError, ValueError, TypeError, AttributeError):
        steps = {}
    return Record(path, steps)


def digest_of(text: str, step: int) -> str:
    """The digest of a step and of the text before all steps; if the step has no `def`, of the whole file."""
    parts = sections(text)
    own = parts.get(step, text)
    return hashlib.sha256((parts.get(0, "") + own).encode()).hexdigest()[:16]


def is_clean(record: Record, text: str, step: int) -> bool:
    """Whether the step's present text passed all of its runs without a review."""
    found = record.steps.get(step)
    return found is not None and found.state_of(digest_of(text, step)) == "clean"


def first_unfinished(record: Record, text: str) -> int | None:
    """The first step that is not known to be clean; None if all are clean."""
    return next((step for step in STEPS if not is_clean(record, text, step)), None)


def _line_of(said: str) -> int:
    """The line in `gemm_kernels.py:95: reason`."""
    _, _, rest = said.partition(".py:")
    number = rest.partition(":")[0]
    return int(number) if number.isdigit() else 0
