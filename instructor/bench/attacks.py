"""Writes the table of all attacks that tests try.

`python instructor/bench/attacks.py` writes instructor/exploits/attacks.md, except for the rows of its first
table. A test fails if that page is not what this makes of the catalogues.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "instructor/tests"), *map(str, (ROOT / "packages").glob("*/src"))]

from more_shows import MORE  # noqa: E402
from shows import SHOWS  # noqa: E402

from instructor.exploits.escapes import ESCAPES  # noqa: E402
from instructor.exploits.exploit import EXPLOITS  # noqa: E402
from instructor.exploits.handins import HANDINS  # noqa: E402
from instructor.exploits.leaks import LEAKS  # noqa: E402

PAGE = ROOT / "instructor/exploits/attacks.md"
KINDS = (  # file, test, what a naive grader does, what happens here
    (
        "exploits.toml",
        "test_exploits.py",
        "gives what the exploit wants, in the same test",
        "no points (`work`: only those of a result; `speed`: none for speed), nothing shown, "
        "the next step is graded",
        [(one.name, one.gain) for one in EXPLOITS],
    ),
    (
        "escapes.toml",
        "test_escapes.py",
        "runs it as it is, and it succeeds, in the same test",
        "no level of confinement lets it succeed",
        [(one.name, one.gain) for one in ESCAPES],
    ),
    (
        "handins.py",
        "test_handins.py",
        "opens or compares it in its own process; "
        "if the kind is `time` or an error, the same file's test shows that",
        "harms only itself, and is named",
        [(one.name, f"{one.where}: {one.hurts or 'grade'}") for one in HANDINS],
    ),
    (
        "leaks.py",
        "test_leaks.py",
        "prints what it is told (not run)",
        "one bit per step: whether it passes",
        [(one.name, "hidden size") for one in LEAKS],
    ),
    (
        "instructor/tests/shows.py, more_shows.py",
        "test_shows.py",
        "compares results alone, and D is right",
        "no points for the implementation, and a hint that says what is missing",
        [(f"{one.name} (step {one.step})", "technique") for one in (*SHOWS, *MORE)],
    ),
)
HEAD = "| family | what is done about it | tried by |\n|---|---|---|\n"


def families() -> list[str]:
    """The rows of the page's first table, which are written there: attacks with tests of their own, for
    which a stand-in for a GPU is needed, or two submissions.
    """
    return PAGE.read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0].splitlines()


def page() -> str:
    total = sum(len(rows) for *_, rows in KINDS)
    apart = families()
    lines = [
        "# Attacks on grading",
        "",
        f"{total} attacks that tests try, and {len(apart)} families that have tests of their own. Written by",
        "`python instructor/bench/attacks.py`; `./lab test --all` tries all of them.",
        "",
        *HEAD.splitlines(),
        *apart,
    ]
    for file, test, naive, here, rows in KINDS:
        lines += [
            "",
            f"## {file}: {len(rows)}",
            "",
            f"Tried by `{test}`. A naive grader {naive}. Here: {here}.",
            "",
            "| aim at | attacks |",
            "|---|---|",
            *_rows(rows),
        ]
    return "\n".join(lines) + "\n"


def _rows(rows: list[tuple[str, str]]) -> list[str]:
    """One row for each kind, with the names of all its attacks."""
    names: dict[str, list[str]] = {}
    for name, kind in rows:
        names.setdefault(kind, []).append(name)
    return [f"| {kind}, {len(names[kind])} | {'; '.join(names[kind])} |" for kind in sorted(names)]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
