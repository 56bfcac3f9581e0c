"""Judges new kernels that are unusual but right, as implementations of a submission: none may lack anything.

    python instructor/bench/unusual_kernels.py [--seed 1] [--count 24] [--steps 4,5,6] [--out FILE]

Seed 0 makes the kernels of instructor/tests/test_unusual.py; any other draws combinations, and other sizes.
Each kernel is a line of JSON as soon as it is judged; exit code 1 if one was not given all points.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "instructor/tests"), *map(str, (ROOT / "packages").glob("*/src"))]

from unusual import kernels  # noqa: E402

from instructor.autograder.building import built_for  # noqa: E402
from instructor.autograder.judge import judge  # noqa: E402
from instructor.autograder.plan import load_hidden, plan  # noqa: E402
from tirxlab.sandbox import Builder  # noqa: E402


def judged(steps: list[int], count: int, seed: int) -> Iterator[dict]:
    """`count` kernels of each step, the steps in turn."""
    made = {step: kernels(step, count, seed) for step in steps}
    for number in range(count):
        for step, rest in made.items():
            if (drawn := next(rest, None)) is not None:
                yield {"step": step, "name": drawn[0], **_outcome(step, drawn[1], f"{seed}-{number}")}


def _outcome(step: int, text: str, digest: str) -> dict:
    """The outcome of one kernel. `digest` decides the size, as a submission's does."""
    with Builder(text) as builder:
        for run in [run for run in plan(step, digest, load_hidden()) if run.record or run.alone]:
            run, built = built_for(run, builder.build)
            if built.artifact is None:
                return {"size": run.size, "right": False, "reason": built.message, "hint": ""}
            made = judge(run, built.artifact)
            found = {"size": run.size, "right": made.right, "reason": made.reason, "hint": made.hint}
            if not made.right or made.hint:
                break
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=24, help="of each step")
    parser.add_argument("--steps", default="1,2,3,4,5,6,7,8,9,10")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    done, bad = 0, 0
    with given.out.open("w") if given.out else sys.stdout as out:
        for row in judged([int(step) for step in given.steps.split(",")], given.count, given.seed):
            done, bad = done + 1, bad + (not row["right"] or bool(row["hint"]))
            print(json.dumps(row), file=out, flush=True)
    print(f"seed {given.seed}: {done} unusual right kernels, {bad} not given all points", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
