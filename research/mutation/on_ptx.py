"""The mutation score on PTX: how many one-instruction mistakes ptxsim finds in recorded launches.

    python -m research.mutation.on_ptx FOLDER [--seed S] [--count N] [--minutes M] [--out FILE]

FOLDER holds recorded launches of kernels of the TIRx library (research/tirx_kernels/recorded.py). Each kernel
runs unchanged in both orders; mutants then run in the same orders. The seed draws a random kernel, operator
and site. A mutant is found if it has an `error` or a `review` that the unchanged kernel does not have, or
other bytes. Mutants that leave equal bytes and no new finding are listed for a person to judge, unless the
launch does not reach their line (with `exit` there it leaves the same bytes too): those are `not reached`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import ptxsim
from research import by_seed
from research.mutation.ptx_operators import PtxMutant, mutants
from research.tirx_kernels.recorded import Recorded

ORDERS = ("program", "adverse")
FOUND = ("error", "review", "wrong numbers")
NEAR = 25  # lines of PTX within which a finding counts as naming the place
MOST = 5  # a mutant is given up after so many times the warp instructions of the kernel


@dataclass
class Outcome:
    kernel: str
    operator: str
    line: int
    old: str
    new: str
    kind: str  # refused, error, wrong numbers, review, incomplete, clean, not reached
    first: str = ""  # the first new finding
    near: bool = False  # whether it names a line near the changed one
    seconds: float = 0.0  # of processor time


class Subject:
    """A recorded launch, and the findings and bytes of its unchanged kernel."""

    def __init__(self, recorded: Recorded):
        self.recorded = recorded
        self.results = {order: recorded.run(order=order, jobs=1) for order in ORDERS}
        self.known = {_key(f) for result, _ in self.results.values() for f in result.findings}
        self.most = MOST * max(r.stats["warp_instructions"] for r, _ in self.results.values())
        self.mutants = list(mutants(recorded.ptx))

    def try_out(self, mutant: PtxMutant) -> Outcome:
        start = time.process_time()
        kind, first = self._judge(mutant)
        if kind == "clean" and not self._reached(mutant.line):
            kind = "not reached"
        near = first is not None and any(abs(n - mutant.line) <= NEAR for n in lines_of(first))
        text = str(first).split("\n")[0][:300] if first else ""
        spent = round(time.process_time() - start, 2)
        return Outcome(
            self.recorded.name, mutant.operator, mutant.line, mutant.old, mutant.new, kind, text, near, spent
        )

    def _reached(self, line: int) -> bool:
        lines = self.recorded.ptx.split("\n")
        lines[line - 1] = f"exit; {lines[line - 1]}"
        result, arrays = self.recorded.run("\n".join(lines), order=ORDERS[0], jobs=1)
        same = all((a == b).all() for a, b in zip(arrays, self.results[ORDERS[0]][1], strict=True))
        return not same or any(_key(finding) not in self.known for finding in result.findings)

    def _judge(self, mutant: PtxMutant) -> tuple[str, ptxsim.Finding | None]:
        """(kind, first new finding) of the first order that fails."""
        odd = None
        for order in ORDERS:
            try:
                options = {"order": order, "jobs": 1, "max_instructions": self.most}
                result, arrays = self.recorded.run(mutant.text, **options)
            except (ptxsim.PtxError, ValueError):
                return "refused", None
            new = [finding for finding in result.findings if _key(finding) not in self.known]
            worst = next((f for f in new if f.severity == "error"), None)
            if worst is not None:
                return "error", new[0]
            expected = self.results[order][1]
            if any((a != b).any() for a, b in zip(arrays, expected, strict=True)):
                return "wrong numbers", new[0] if new else None
            odd = odd or (new[0] if new else None)
        return (odd.severity if odd else "clean"), odd


def _key(finding) -> tuple:
    """What identifies a finding: its wording, the lines that it names, and for a barrier its place."""
    kept = r"(?P<kept>PTX line \d+" + (r"|\+ \d+ B" if finding.kind == "mbarrier" else "") + r")|\d+"
    words = re.sub(kept, lambda found: found["kept"] or "#", finding.message.split("\n")[0])
    return finding.kind, finding.severity, words


def lines_of(finding) -> set[int]:
    """Lines of PTX that the first sentence of a finding names, and the line where it is reported."""
    named = {int(n) for n in re.findall(r"PTX line (\d+)", str(finding).split("\n")[0])}
    return named | ({finding.where["ptx_line"]} if finding.where.get("ptx_line") else set())


def subjects(folder: Path) -> list[Subject]:
    return [Subject(Recorded.load(path)) for path in sorted(folder.glob("*.json"))]


def summary(outcomes: list[Outcome]) -> str:
    counts = Counter(outcome.kind for outcome in outcomes)
    judged = [o for o in outcomes if o.kind not in ("refused", "not reached")]
    found = [o for o in judged if o.kind in FOUND]
    named = [o for o in found if o.first]
    near = sum(outcome.near for outcome in named)
    lines = [f"{len(judged)} mutants of {len({o.kernel for o in outcomes})} kernels: {dict(counts)}"]
    lines.append(
        f"found: {len(found)} of {len(judged)}; first finding within {NEAR} lines: {near} of {len(named)}"
    )
    lines += [
        f"  {o.kind}: {o.kernel} line {o.line}, {o.operator}: {o.old[:90]}"
        for o in judged
        if o.kind not in FOUND
    ]
    return "\n".join(lines)


def draw(every: list[Subject], rng: random.Random) -> Iterator[tuple[Subject, PtxMutant]]:
    """All mutants, each once."""
    pools = [(subject, defaultdict(list)) for subject in every]
    for subject, sites in pools:
        for mutant in subject.mutants:
            sites[mutant.operator].append(mutant)
    while pools := [(subject, sites) for subject, sites in pools if sites]:
        subject, sites = rng.choice(pools)
        operator = rng.choice([*sites])
        yield subject, sites[operator].pop(rng.randrange(len(sites[operator])))
        if not sites[operator]:
            del sites[operator]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    every = subjects(given.folder)
    if not every:
        print(f"{given.folder} holds no recorded launch: see research/tirx_kernels/recorded.py")
        return 2
    outcomes = []
    drawn = islice(draw(every, random.Random(given.seed)), given.count)
    for subject, mutant in by_seed.in_time(drawn, given.minutes):
        outcomes.append(subject.try_out(mutant))
        if given.out:
            given.out.write_text("\n".join(json.dumps(asdict(o)) for o in outcomes) + "\n")
    print(summary(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
