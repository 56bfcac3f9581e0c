"""Compares ptxsim's verdicts on random synchronisation programs with a truth that does not come from ptxsim.

    python -m research.truth SEED [--count N] [--jobs J] [--minutes M] [--show K] [--out FILE]

Generates programs SEED * 1,000,000 and following, judges them by `truth` (histories by transitive closure,
several schedules) and runs them on ptxsim under three orders. Prints disagreements by class and by cause (the
kinds of events left after minimising), and K programs of each. Exit code 1 if there is any disagreement.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from research import by_seed
from research.truth.compare import UNDEFINED, examine
from research.truth.generate import program_of
from research.truth.minimise import minimise

MINIMISED = 3  # minimised programs per class and kind of finding


class Tally:
    """The results so far."""

    def __init__(self):
        self.programs, self.undefined = Counter(), Counter()
        self.classes, self.causes = Counter(), defaultdict(list)
        self.minimised = Counter()

    def add(self, seed: int, state: str, found: list[tuple[str, str]]) -> None:
        """Adds the result of `examine` for a program."""
        if state.startswith(UNDEFINED):
            self.undefined[state] += 1
            return
        self.programs[state] += 1
        for name in sorted({name for name, _ in found}):
            self.classes[name] += 1
            self._cause(seed, program_of(seed), name, next(text for n, text in found if n == name))

    def _cause(self, seed: int, program, name: str, text: str) -> None:
        words = _words(text)
        self.minimised[name, words] += 1
        if self.minimised[name, words] > MINIMISED:
            self.causes[name, f"like others: {words}"].append((seed, text, None))
            return
        small = minimise(program, name)
        kinds = " ".join(sorted({op.kind for op in small.ops()}))
        self.causes[name, kinds].append((seed, text, small))

    def bad(self) -> bool:
        return bool(self.classes)

    def report(self, show: int) -> str:
        total = sum(self.programs.values())
        lines = [f"{total} programs: " + ", ".join(f"{n} {k}" for k, n in self.programs.most_common())]
        lines.append(f"left out, without meaning: {sum(self.undefined.values())}")
        lines += [f"{name}: {n}" for name, n in self.classes.most_common()] or ["no disagreement"]
        for (name, cause), examples in sorted(self.causes.items(), key=lambda item: -len(item[1])):
            lines.append(f"  {len(examples):5} {name}: {cause}")
            for seed, text, small in examples[:show]:
                lines.append(f"        program {seed}: {text}")
                if small is not None:
                    lines += [f"          {line}" for line in _without_idle(str(small).split("\n"))]
        return "\n".join(lines)


def _without_idle(lines: list[str]) -> list[str]:
    """The lines without the headings of warps that do nothing."""
    following = [*lines[1:], ":"]
    return [a for a, b in zip(lines, following, strict=True) if not (a.endswith(":") and b.endswith(":"))]


def _words(text: str) -> str:
    """The kind of a disagreement, for counting."""
    return " ".join(text.split()[1:4])


if __name__ == "__main__":
    sys.exit(by_seed.bench(__doc__, examine, Tally()))
