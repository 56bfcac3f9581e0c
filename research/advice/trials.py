"""What trials of repairs (tirxlab.cli.trials) add to the first finding, on slips whose cause is known.

    python -m research.advice.trials --slips 8 --seed 80008 --count 44 --out trials8.jsonl [--wall 75]
    python -m research.advice.trials --hands one two --seed 0 --out hands.jsonl    other kernels (hands.py)

Each slip is checked as `./lab check S` does, with the sizes and orders of the step. A row holds the first
failure, the edits that passed, how many were built, how many of these were new kernels, and the processor
seconds. A person judges what is right; a run can be continued. fit.py reads the rows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from research.advice import hands
from research.advice.mistakes import Mistake, draw
from research.advice.slips import draw_slips
from tirxlab.cli.check import planned
from tirxlab.cli.runs import Runner
from tirxlab.cli.trials import WALL, Trials, may_help


def row_of(mistake: Mistake, wall: float, briefly: bool = False) -> dict:
    """What a check reports and what its trials do, for the run that fails, or else the first that is not
    clean. `briefly`: for the first that is not clean, even if a later one might fail.

    SM_COUNT is the file's own again: the rubric lowers it.
    """
    text = re.sub(r"^SM_COUNT = \d+", "SM_COUNT = 148", mistake.text, flags=re.M)
    row = {key: getattr(mistake, key) for key in ("family", "what", "line", "old", "new", "text")}
    row |= {"source": mistake.source.name, "depth": mistake.source.depth}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gemm_kernels.py"
        path.write_text(text)
        begin, cpu = time.monotonic(), processor()
        jobs = planned(path, "sim", False, [], None, (), int(mistake.source.name.split()[1]))
        with Runner(path) as runner:
            told = None
            for job in jobs:
                ((_, last),) = runner.run([job])
                if told is None or not last.passed or told[1].verdict == "clean":
                    told = job, last
                if not last.passed or (briefly and last.verdict != "clean"):
                    break
            (job, last), seconds = told, time.monotonic() - begin
            row |= {"verdict": last.verdict, "passed": last.passed, "message": last.message}
            row |= {"findings": last.findings, "check_seconds": seconds}
            if may_help(last) and wall:
                trials = Trials(job, jobs, last, wall=wall)
                row["repairs"] = [repair.said for repair in trials.run(runner)]
                row |= {"tried": trials.tried, "ran": trials.ran, "work": trials.work}
                row["trial_seconds"] = time.monotonic() - begin - seconds
    row["cpu_seconds"] = processor() - cpu
    return row


def processor() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _drawn(options: argparse.Namespace) -> Iterator[Mistake]:
    """The mistakes in the requested steps."""
    if options.hands:
        yield from hands.planted(options.hands)
        return
    drawn = draw_slips(options.seed, tuple(options.slips)) if options.slips else draw(options.seed)
    yield from (mistake for mistake in drawn if mistake.source.name.startswith("step"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=44)
    parser.add_argument("--slips", type=int, nargs="+", help="lists of slips (default: mistakes.py)")
    parser.add_argument("--hands", nargs="+", help="mistakes in the kernels of these (hands.py)")
    parser.add_argument("--wall", type=float, default=WALL, help="seconds of trials; 0: none")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    known = set()
    if options.out.exists():
        known = {json.loads(line)["text"] for line in options.out.read_text().splitlines()}
    for mistake in itertools.islice(_drawn(options), options.count):
        if mistake.text in known:
            continue
        row = row_of(mistake, options.wall)
        with options.out.open("a") as file:
            file.write(json.dumps(row, default=str) + "\n")
        said = row.get("repairs") or [finding["hint"] for finding in row["findings"][:1]]
        print(
            f"{row['source']}: {row['what']}: {row['old']} -> {row['new']}\n  {row['verdict']}: {said}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
