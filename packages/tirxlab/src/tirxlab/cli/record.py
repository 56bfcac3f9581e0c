"""What `check` and `score` remember of each step of a kernels file: attempts, texts that passed, hints given.

One JSON file beside the kernels file, `.NAME.lab.json`. It is a convenience: a damaged or missing one is an
empty one, and nothing is ever graded by it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tirxlab.steps import STEPS, sections

KEPT = 20  # texts of a step that passed


@dataclass
class Attempts:
    """Of one step."""

    count: int = 0  # checks of different texts
    text: str = ""  # digest of the step as it was checked last
    state: str = ""  # "clean", "to review", "fails"; "" before the first check
    said: str = ""  # the first line of what was wrong
    line: int = 0  # of the file, 0 if none
    size: str = ""  # that failed
    order: str | int = ""
    hints: int = 0  # that were shown since the last success
    passed: dict[str, str] = field(default_factory=dict)  # digests of texts that passed -> their state

    def state_of(self, digest: str) -> str:
        """What came of this text; "" if it was not checked, or failed before another was."""
        return self.state if digest == self.text else self.passed.get(digest, "")


@dataclass
class Record:
    path: Path  # of the kernels file
    steps: dict[int, Attempts] = field(default_factory=dict)

    def save(self) -> None:
        """Where the folder cannot be written, nothing is remembered."""
        with contextlib.suppress(OSError):
            place(self.path).write_text(json.dumps({n: asdict(a) for n, a in self.steps.items()}, indent=1))

    def note(self, step: int, text: str, outcomes: list) -> None:
        """What came of all runs of a step, or of those up to the first that failed."""
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
    """Of a step and of what stands before all steps; of the whole file, if it has no `def` of its own."""
    parts = sections(text)
    own = parts.get(step, text)
    return hashlib.sha256((parts.get(0, "") + own).encode()).hexdigest()[:16]


def is_clean(record: Record, text: str, step: int) -> bool:
    """Whether the step as it stands passed all of its runs without a remark."""
    found = record.steps.get(step)
    return found is not None and found.state_of(digest_of(text, step)) == "clean"


def first_unfinished(record: Record, text: str) -> int | None:
    """The first step that is not known to be clean; None after the last."""
    return next((step for step in STEPS if not is_clean(record, text, step)), None)


def _line_of(said: str) -> int:
    """The line in `gemm_kernels.py:95: reason`."""
    _, _, rest = said.partition(".py:")
    number = rest.partition(":")[0]
    return int(number) if number.isdigit() else 0
