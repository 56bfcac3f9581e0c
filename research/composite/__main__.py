"""Runs mistakes that one-line mutations do not make: whether they are found, and whether the finding says
why.

    python -m research.composite [first|second|all] [--only WORDS]

Each mistake of mistakes.toml.xz is built and run as `./lab check` does. For each, prints the outcome, whether
the first finding (or the message of verify) has one of the words chosen in advance, and that text. Exit code
1 if one is missed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "instructor" / "tests" / "bugs"))

from corpus import edit_of, edited

from research import packed
from research.mutation.runner import Worker
from research.mutation.sources import SOURCES
from tirxlab.rubric import tomllib

HALVES = tomllib.loads(packed.read(Path(__file__).with_name("mistakes.toml.xz")))
STEPS = {source.name: source for source in SOURCES}

FOUND = ("error", "wrong numbers", "incomplete", "refused", "review")


def said(outcome) -> str:
    """The first finding, or the message of verify."""
    if not outcome.findings or outcome.kind == "wrong numbers":
        return outcome.message
    first = outcome.findings[0]
    line = first["where"].get("line")
    return f"{first['kind']}: {first['message'].splitlines()[0]} [line {line}]\n{first['hint']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("half", choices=(*HALVES, "all"), nargs="?", default="all")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = [one for half in HALVES if given.half in (half, "all") for one in HALVES[half]]
    worker, tally = Worker(), Counter()
    for mistake in (one for one in chosen if given.only in one["name"]):
        name, step = mistake["name"], mistake["step"]
        source = STEPS[f"step {step}"]
        outcome = worker.run(source, edited(source.text(), step, tuple(map(edit_of, mistake["edits"]))))
        text = said(outcome)
        named = any(word in text for word in mistake["words"])
        tally[outcome.kind] += 1
        tally["cause named"] += named and outcome.kind in FOUND
        print(f"step {step}: {name}: {outcome.kind}{', named' if named else ', NOT NAMED'}")
        print(textwrap.indent(textwrap.fill(text[:600], 140), "    "), flush=True)
    worker.stop()
    print(dict(tally))
    return 0 if not tally["clean"] + tally["equivalent"] else 1


if __name__ == "__main__":
    sys.exit(main())
