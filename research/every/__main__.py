"""Compares ptxsim's verdicts on small programs with all interleavings of each.

    python -m research.every SEED [--count N] [--jobs J] [--minutes M] [--show K] [--out FILE]

Draws programs SEED * 1,000,000 and following, explores them (explore.py, which uses nothing of ptxsim) and
runs them on ptxsim with order="all". Prints how many are right and wrong, and each difference by class:
`missed` (an interleaving is wrong and no order has an `error`), `review says luck` (the same, but a review
says so) and `false error`. Exit code 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from research.every.compare import Answer, answer_of
from research.every.programs import program_of

BLOCK = 1_000_000  # seeds of programs from one seed of the bench


class Tally:
    def __init__(self):
        self.states: Counter = Counter()
        self.differences: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, seed: int, answer: Answer) -> None:
        self.states[answer.state] += 1
        if answer.differs:
            self.differences[answer.differs].append((seed, answer.told))

    def report(self, show: int) -> str:
        judged = self.states["right"] + self.states["wrong"]
        lines = [f"{judged} programs judged: " + ", ".join(f"{n} {s}" for s, n in self.states.most_common())]
        lines.append(f"differences: {sum(map(len, self.differences.values()))}")
        for name, examples in sorted(self.differences.items(), key=lambda item: -len(item[1])):
            lines.append(f"  {len(examples):5} {name}")
            for seed, told in examples[:show]:
                lines.append(f"        program {seed}: {told or 'clean'}")
                lines += [f"          {line}" for line in str(program_of(seed)).split("\n")]
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the result does not depend on it")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    tally, start = Tally(), time.monotonic()
    seeds = range(given.seed * BLOCK, given.seed * BLOCK + given.count)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for done, (seed, answer) in enumerate(pool.imap(answer_of, seeds, chunksize=16), 1):
            tally.add(seed, answer)
            if given.out and done % 500 == 0:
                given.out.write_text(tally.report(given.show) + "\n")
            if time.monotonic() - start > 60 * given.minutes:
                break
    text = tally.report(given.show)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
