"""Grades the same submissions twice: in one order, then in the reverse order on a busy machine.

    python instructor/bench/same_grade.py [--count 6] [--seed 1] [--steps 1,2,3] [--load 8] [--only hostile]

Compares everything in a grade but its time and memory, and names what differs; exit code 1 if anything does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mixed_class import KINDS, Made

from instructor.autograder.batch import local
from instructor.autograder.grading import Options
from instructor.autograder.submission import Submission
from instructor.formats import plain

TOOK = ("seconds", "cpu_seconds", "memory")
CHOSEN = ("prefix", "hostile", "variant", "syntax", "mutant", "early")
SECONDS = 3600.0  # of a submission


def submissions(count: int, seed: int) -> dict[str, Submission]:
    rng = random.Random(seed)
    texts = {f"{n:02}-{kind}": _text(KINDS[kind][1](rng)) for n, kind in _kinds(count)}
    return {name: Submission(name, text) for name, text in texts.items()}


def _text(made: Made) -> str:
    text, _ = made
    assert isinstance(text, str)  # of every kind in CHOSEN
    return text


def _kinds(count: int) -> Iterator[tuple[int, str]]:
    for n in range(count):
        yield n, CHOSEN[n % len(CHOSEN)]


@contextlib.contextmanager
def busy(processes: int):
    """Runs so many processes that compute, while the block runs."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def grades(work: dict[str, Submission], options: Options, load: int) -> dict[str, str]:
    """Name -> the grade as text, without its time and memory."""
    with busy(load):
        made = dict(local(work, options, 1, SECONDS))
        print(
            f"{len(made)} graded beside {load} processes, load average {os.getloadavg()[0]:.1f}", flush=True
        )
    return {
        name: json.dumps(_said(plain(grade)), default=str, sort_keys=True) for name, grade in made.items()
    }


def _said(value):
    if isinstance(value, dict):
        return {key: _said(one) for key, one in value.items() if key not in TOOK}
    return [_said(one) for one in value] if isinstance(value, list | tuple) else value


def _differences(one, other, where: str) -> Iterator[str]:
    """A line for each value that differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _differences(one.get(key), other.get(key), f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from _differences(*pair, f"{where}[{number}]")
    elif one != other:
        yield f"{where}: {one!r:.200} | {other!r:.200}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", default="1,2,3,4,5,6,7,8,9,10")
    parser.add_argument("--load", type=int, default=8)
    parser.add_argument("--only", default="", help="submissions whose name has this in it")
    given = parser.parse_args()
    options = Options(steps=tuple(map(int, given.steps.split(","))))
    work = {name: one for name, one in submissions(given.count, given.seed).items() if given.only in name}
    first = grades(work, options, 0)
    second = grades(dict(reversed(work.items())), options, given.load)
    differ = [name for name in work if first[name] != second[name]]
    print(f"{len(work)} submissions, {len(differ)} graded differently the second time", *differ)
    for name in differ:
        print(*_differences(json.loads(first[name]), json.loads(second[name]), name), sep="\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
