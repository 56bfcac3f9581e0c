"""Final points as the CSV files that learning platforms import, and as one of our own.

Students are named by the roster's columns: student, name, email, id (or sis_id), section.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from instructor.autograder.ledger import Final
from instructor.formats.summary import plain_cells

ASSIGNMENT = "GEMM kernels"


def ours(finals: list[Final]) -> str:
    head = [
        "student",
        "submission",
        "attempts",
        "points",
        "late_days",
        "adjusted",
        "final",
        "out_of",
        "comment",
    ]
    return _csv(head, [[f.student, f.submission, f.attempts, f.points, f.late_days, f.adjusted, _points(f),
                        f.out_of, f.comment] for f in finals])  # fmt: skip


def canvas(finals: list[Final]) -> str:
    """For Canvas's gradebook import: the first row holds the maxima."""
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", ASSIGNMENT]
    most = max((f.out_of for f in finals), default=0)
    rows = [["    Points Possible", "", "", "", "", most]]
    rows += [[_no_head(_name(f)), *[f.about.get(key, "") for key in ("id", "sis_id")], f.student,
              f.about.get("section", ""), _points(f)] for f in finals]  # fmt: skip
    return _csv(head, rows)


def _no_head(name: str) -> str:
    """The name, quoted if Canvas would take it for the row that sets the maxima of the whole class."""
    return f"'{name}" if name.strip().casefold().startswith("points possible") else name


def moodle(finals: list[Final]) -> str:
    """For Moodle, which maps columns at import; the identifier is the ID number or the e-mail address."""
    rows = [
        [f.about.get("id", "") or f.student, f.about.get("email", ""), _name(f), _points(f), f.comment]
        for f in finals
    ]
    return _csv(["ID number", "Email address", "Full name", ASSIGNMENT, "Feedback comments"], rows)


def gradescope_csv(finals: list[Final]) -> str:
    """The columns of Gradescope's own export of grades."""
    rows = [[_name(f), f.about.get("id", "") or f.student, f.about.get("email", ""), _points(f), f.out_of,
             "Graded" if f.graded else "Ungraded"] for f in finals]  # fmt: skip
    return _csv(["Name", "SID", "Email", "Total Score", "Max Points", "Status"], rows)


EXPORTS: dict[str, Callable[[list[Final]], str]] = {
    "final.csv": ours,
    "canvas.csv": canvas,
    "moodle.csv": moodle,
    "gradescope.csv": gradescope_csv,
}


def _points(final: Final) -> float | str:
    """The final points; empty if not graded, as a zero would look final."""
    return final.final if final.graded else ""


def _name(final: Final) -> str:
    return final.about.get("name", "") or final.student


def _csv(head: list[str], rows: list[list]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(map(plain_cells, rows))
    return out.getvalue()
