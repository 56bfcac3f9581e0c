"""Compares ptxsim's verdicts on small programs with all interleavings of each.

    python -m research.every SEED [--count N] [--jobs J] [--minutes M] [--show K] [--out FILE]

Draws programs SEED * 1,000,000 and following, explores them (explore.py, which uses nothing of ptxsim) and
runs them on ptxsim with order="all". Prints how many are right and wrong, and each difference by class:
`missed` (an interleaving is wrong and no order has an `error`), `review says luck` (the same, but a review
says so) and `false error`. Exit code 1 if there is any difference.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from research import by_seed
from research.every.compare import Answer, answer_of
from research.every.programs import program_of


class Tally:
    def __init__(self):
        self.states: Counter = Counter()
        self.differences: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, seed: int, answer: Answer) -> None:
        self.states[answer.state] += 1
        if answer.differs:
            self.differences[answer.differs].append((seed, answer.told))

    def bad(self) -> bool:
        return bool(self.differences)

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


if __name__ == "__main__":
    sys.exit(by_seed.bench(__doc__, answer_of, Tally()))
