"""Turns grades into final points: which attempt counts, what late days cost, what the course adds.

    final = points * max(0, 1 - late_days * late_percent / 100) + adjustment, but never below 0

Attempts are submissions of one student (the roster's column `student`), in the order of the column `attempt`,
else of their names. The course writes adjustments into adjust.csv in the folder of the grades: columns
submission (or student), points, comment. The lab reads that file and never writes it.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path

from instructor.autograder.points import stands

ADJUST = "adjust.csv"
LARGEST = 4 << 20  # bytes of adjust.csv
TELL_APART = ("student", "id", "sis_id", "email", "name")  # columns by which platforms know a student


@dataclass(frozen=True)
class Rule:
    """How attempts and late days count."""

    attempts: str = "latest"  # or "best", "first"
    late_percent: float = 0.0  # of the points, for each late day

    def __post_init__(self):
        if self.attempts not in ("latest", "best", "first"):
            raise ValueError(f"attempts count as latest, best or first, not {self.attempts!r}")
        if not 0 <= self.late_percent <= 100:
            raise ValueError(f"a late day costs 0 to 100 percent, not {self.late_percent:g}")


@dataclass(frozen=True)
class Final:
    """The final points of one student."""

    student: str  # as the roster says, else the submission's name
    submission: str  # the one that counts
    attempts: int
    points: float  # that this submission earned
    late_days: float
    adjusted: float
    comment: str
    final: float
    out_of: float
    graded: bool  # False: nothing is final yet
    about: dict[str, str]  # the roster's row


def finals(rows: list[dict], roster: dict[str, dict], adjust: dict[str, tuple], rule: Rule) -> list[Final]:
    """The final points of each student, by name. `rows`: plain grades; `adjust`: see `read_adjust`."""
    groups: dict[str, list[dict]] = {}
    students, adjusted = _students(rows, roster), adjustments(rows, roster, adjust)
    for row in rows:
        groups.setdefault(students[row["name"]], []).append(row)
    made = []
    for student, attempts in sorted(groups.items()):
        attempts = sorted(attempts, key=lambda row: _when(row, roster))
        afters = [(_after_late(row, roster, rule), n) for n, row in enumerate(attempts)]
        chosen = {"latest": len(attempts) - 1, "first": 0, "best": max(afters)[1]}[rule.attempts]
        counts = attempts[chosen]
        final = _final(student, counts, len(attempts), roster, adjusted[counts["name"]], rule)
        open_ = any(row["digest"] and not stands(row["problem"]) for row in attempts)  # it may be the best
        made.append(replace(final, graded=False) if rule.attempts == "best" and open_ else final)
    return made


def adjustments(rows: list[dict], roster: dict[str, dict], adjust: dict[str, tuple]) -> dict[str, tuple]:
    """Submission -> (points, comment) from its own line of adjust.csv, else from its student's.

    A name that the roster gives to a student belongs to that student alone.
    """
    known = {one["student"] for one in roster.values() if one.get("student")}
    made = {}
    for name, student in _students(rows, roster).items():
        mine = adjust.get(student, (0.0, ""))
        made[name] = mine if name in known else adjust.get(name, mine)
    return made


def idle(adjust: dict[str, tuple], every: list[Final], rows: list[dict]) -> tuple[list[str], list[str]]:
    """Lines of adjust.csv that change nothing: (names of nobody, names of attempts that do not count)."""
    used = {one.student for one in every} | {one.submission for one in every}
    left = sorted(set(adjust) - used)
    names = {row["name"] for row in rows}
    return [key for key in left if key not in names], [key for key in left if key in names]


def _students(rows: list[dict], roster: dict[str, dict]) -> dict[str, str]:
    """Submission -> student, from the roster alone: anybody can put any name into or on a hand-in."""
    taken = {_alike(one[key]) for one in roster.values() for key in TELL_APART if one.get(key)}
    made = {}
    for name in (row["name"] for row in rows):
        given = roster.get(name, {}).get("student")
        made[name] = given or (f"{name} (not in the roster)" if _alike(name) in taken else name)
    return made


def _alike(name: str) -> str:
    """A form of a name or number that is equal for those which platforms take for the same."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def _when(row: dict, roster: dict[str, dict]) -> tuple:
    """The sort key of an attempt. Numbers in it count as numbers: attempt 10 comes after attempt 9."""
    text = roster.get(row["name"], {}).get("attempt") or row["name"]
    parts = re.split(r"(\d{1,18})", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def _late_days(row: dict, roster: dict[str, dict]) -> float:
    """The roster's late days; 0 for early hand-ins, for which a platform may count negative days."""
    text = roster.get(row["name"], {}).get("late_days", "").strip()
    return max(0.0, _number(text, f"late_days of {row['name']}")) if text else 0.0


def _after_late(row: dict, roster: dict[str, dict], rule: Rule) -> float:
    return row["total"] * max(0.0, 1 - _late_days(row, roster) * rule.late_percent / 100)


def _final(student: str, row: dict, attempts: int, roster: dict, adjusted: tuple, rule: Rule) -> Final:
    points, comment = adjusted
    final = round(max(0.0, _after_late(row, roster, rule) + points), 2)
    late, about = _late_days(row, roster), roster.get(row["name"], {})
    earned, out_of, graded = row["total"], row["out_of"], stands(row["problem"])
    return Final(
        student, row["name"], attempts, earned, late, points, comment, final, out_of, graded, about
    )  # fmt: skip


def read_adjust(path: Path) -> dict[str, tuple[float, str]]:
    """Submission or student -> (points, comment); empty without such a file. ValueError in one line."""
    if not path.exists():
        return {}
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name}: too large")
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name}: not a CSV file in UTF-8: {error}") from None
    found: dict[str, tuple[float, str]] = {}
    for number, row in enumerate(rows, 2):
        key = (row.get("submission") or row.get("student") or "").strip()
        if not key:
            raise ValueError(f"{path.name}, line {number}: names no submission and no student")
        if key in found:
            raise ValueError(f"{path.name}, line {number}: {key} already has a line")
        found[key] = (
            _number(row.get("points") or "0", f"{path.name}, line {number}"),
            row.get("comment") or "",
        )
    return found


def readable(names: list[str], roster: dict[str, dict], adjust: Path) -> None:
    """ValueError unless the late days of all these submissions and adjust.csv can be read."""
    read_adjust(adjust)
    for name in names:
        _late_days({"name": name}, roster)


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e6:
        raise ValueError(f"{where}: {text!r:.40} is not a number of points or days")
    return value
