"""Runs mistakes that one-line mutations do not make: whether they are found, and whether the finding says
why.

    python -m research.composite [first|second|all] [--only WORDS]

Each mistake is built and run as `./lab check` does. For each, prints the outcome, whether the first finding
(or the message of verify) has one of the words chosen in advance, and that text. Exit code 1 if one is
missed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "instructor" / "tests" / "bugs"))

from corpus import bug_source  # noqa: E402

from research.composite.first import FIRST  # noqa: E402
from research.composite.second import SECOND  # noqa: E402
from research.mutation.runner import Worker  # noqa: E402
from research.mutation.sources import SOURCES  # noqa: E402

FOUND = ("error", "wrong numbers", "incomplete", "refused", "review")


def source_of(mistake):
    return next(s for s in SOURCES if s.name == f"step {mistake.step}")


def text_of(mistake) -> str:
    """The kernels' file with the mistake in it."""

    class Bug:  # the attributes that bug_source needs
        step, edits, ctas = mistake.step, mistake.edits, source_of(mistake).ctas or None

    return bug_source(Bug)


def said(outcome) -> str:
    """The first finding, or the message of verify."""
    if not outcome.findings or outcome.kind == "wrong numbers":
        return outcome.message
    first = outcome.findings[0]
    line = first["where"].get("line")
    return f"{first['kind']}: {first['message'].splitlines()[0]} [line {line}]\n{first['hint']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("half", choices=("first", "second", "all"), nargs="?", default="all")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = {"first": FIRST, "second": SECOND, "all": (*FIRST, *SECOND)}[given.half]
    worker, tally = Worker(), Counter()
    for mistake in (m for m in chosen if given.only in m.name):
        outcome = worker.run(source_of(mistake), text_of(mistake))
        text = said(outcome)
        named = any(word in text for word in mistake.words)
        tally[outcome.kind] += 1
        tally["cause named"] += named and outcome.kind in FOUND
        print(f"step {mistake.step}: {mistake.name}: {outcome.kind}{', named' if named else ', NOT NAMED'}")
        print(textwrap.indent(textwrap.fill(text[:600], 140), "    "), flush=True)
    worker.stop()
    print(dict(tally))
    return 0 if not tally["clean"] + tally["equivalent"] else 1


if __name__ == "__main__":
    sys.exit(main())
