"""Fits the weights that rank repairs (tirxlab.explain.repairs.ranking) on slips whose undoing is known.

    python -m research.advice.trials --slips 1 2 3 4 5 6 7 --seed S --count N --wall 0 --out rows.jsonl
    python -m research.advice.fit rows.jsonl [--held other.jsonl] [--write]

A row is a slip with what its check found. Among all edits of its text, the one that undoes it should rank
first: the model is a softmax over the edits of each slip, with a quadratic penalty, so no weight is set by
hand. It reports how many undoing edits are among the first N, in five parts, each ranked by weights of the
other four.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from research.mutation.sources import SOURCES
from tirxlab.explain.repairs import ranking
from tirxlab.explain.repairs.edits import Edits
from tirxlab.explain.repairs.evidence import Evidence
from tirxlab.explain.repairs.fit import Fit
from tirxlab.explain.repairs.text import Builder, Edit
from tirxlab.steps import sections

FIRST = (10, 30, 60, 100)
OTHERS = 2000  # sampled edits of a slip that the undoing one is compared with
PENALTY = 0.001
ROUNDS = 120
PARTS = 5
RARE = 30  # a feature that fewer edits have is not used
FIT = frozenset(("was odd", "is odd", "fits better"))  # features that take longer to compute
Features = dict[str, float]


def bare(text: str) -> str:
    """The text without comments, whitespace and brackets, which change nothing."""
    return re.sub(r"[\s()]", "", re.sub(r"#[^\n]*", "", text))


class Undone:
    """Predicate on edits of a row's text: whether the edit restores the code that the slip was made from."""

    def __init__(self, row: dict):
        self.step = int(row["source"].split()[1])
        (source,) = (one for one in SOURCES if one.name == row["source"])
        right = row.get("right") or replace(source, depth=row["depth"]).text()
        self.text, self.builder = row["text"], Builder(row["text"], self.step)
        self.right = bare(sections(right)[self.step])
        own = sections(right)[self.step].splitlines()
        theirs, mine = ([bare(line) for line in lines] for lines in (own, self.builder.own.splitlines()))
        kept = {line for line in theirs if line}
        odd = [n for n, line in enumerate(mine) if line and line not in kept]
        self.near = (odd[0] + self.builder.before + 1, odd[-1] + self.builder.before + 1) if odd else None

    def __call__(self, edit: Edit) -> bool:
        lines = [
            self.builder.line(at) for start, end, _ in edit.splices for at in (start, max(start, end - 1))
        ]
        if self.near and (max(lines) < self.near[0] - 1 or min(lines) > self.near[1] + 1):
            return False
        grown = sum(len(new) - (end - start) for start, end, new in edit.splices)
        begin = self.builder.begin
        return bare(edit.applied(self.text)[begin : begin + len(self.builder.own) + grown]) == self.right


def sample(row: dict, rng: random.Random) -> Slip | None:
    """The edit that undoes a row's slip, and a sample of the others, all with their features."""
    undone = Undone(row)
    evidence, fit = Evidence(undone.builder, row["findings"], row["message"]), Fit(undone.builder)
    edits = list(Edits(undone.builder))
    right = next((edit for edit in edits if undone(edit)), None)
    if right is None:
        return None
    others = rng.sample([edit for edit in edits if edit is not right], min(OTHERS, len(edits) - 1))
    chosen = [right, *others]
    return Slip([evidence.of(edit) | fit.features(edit) for edit in chosen], len(edits) / len(others))


@dataclass
class Slip:
    """Features of edits, the undoing edit first; each of the others represents `many`."""

    edits: list[Features]
    many: float


class Fitted:
    """Weights fitted on one set of slips, also without some features."""

    def __init__(self, slips: list[Slip], without: frozenset[str] = frozenset()):
        often = Counter(name for slip in slips for edit in slip.edits for name in edit)
        names = sorted(
            name for name, n in often.items() if n >= RARE and name.partition(",")[0] not in without
        )
        self.at = {name: n for n, name in enumerate(names)}
        self.slips = [self.matrix(slip) for slip in slips]

    def matrix(self, slip: Slip) -> np.ndarray:
        values = np.zeros((len(slip.edits), len(self.at)), np.float32)
        for n, features in enumerate(slip.edits):
            for name, value in features.items():
                if name in self.at:
                    values[n, self.at[name]] = value
        return values

    def weights(self, chosen: list[int]) -> np.ndarray:
        """The weights, fitted by gradient descent with adaptive step sizes (Adam)."""
        found, mean, square = (np.zeros(len(self.at), np.float32) for _ in range(3))
        for n in range(1, ROUNDS + 1):
            slope = PENALTY * found
            for i in chosen:
                scores = self.slips[i] @ found
                odds = np.exp(scores - scores.max())
                slope -= (self.slips[i][0] - odds @ self.slips[i] / odds.sum()) / len(chosen)
            mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
            found -= 0.1 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.99**n)) + 1e-8)
        return found

    def named(self, found: np.ndarray) -> Features:
        return {name: round(float(found[n]), 3) for name, n in self.at.items() if abs(found[n]) >= 0.02}


def place(values: np.ndarray, many: float, found: np.ndarray) -> float:
    """The estimated number of edits that rank before the undoing one."""
    scores = values @ found
    return many * float((scores[1:] > scores[0]).sum())


def told(title: str, places: list[float], slips: int) -> None:
    counts = ", ".join(f"{sum(p < n for p in places)} among the first {n}" for n in FIRST)
    print(f"{title}: {slips} slips, undone by one edit {len(places)}: {counts}", flush=True)


def fitted(slips: list[Slip], held: list[Slip], rows: int, others: int) -> dict[str, Features]:
    """The weights to use; prints how well they rank."""
    first, final = Fitted(slips, FIT), Fitted(slips)
    everything = list(range(len(slips)))
    places = []
    for part in range(PARTS):
        found = final.weights([i for i in everything if i % PARTS != part])
        mine = [i for i in everything if i % PARTS == part]
        places += [place(final.slips[i], slips[i].many, found) for i in mine]
    told(f"fitted to {PARTS - 1} of {PARTS} parts, told of the last", places, rows)
    found = final.weights(everything)
    if held:
        told("held out", [place(final.matrix(slip), slip.many, found) for slip in held], others)
    return {"first": first.named(first.weights(everything)), "all": final.named(found)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--held", type=Path, nargs="*", default=[], help="rows that are held out of the fit")
    parser.add_argument("--write", action="store_true", help="write the weights to use")
    options = parser.parse_args()
    rng = random.Random(0)
    rows, held = (failed(paths) for paths in (options.rows, options.held))
    slips, others = ([slip for row in some if (slip := sample(row, rng))] for some in (rows, held))
    made = fitted(slips, others, len(rows), len(held))
    if options.write:
        ranking.WEIGHTS.write_text(json.dumps(made, indent=1) + "\n")
    return 0


def failed(paths: list[Path]) -> list[dict]:
    """Rows whose kernel ran and failed."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return [row for row in rows if not row["passed"] and row["verdict"] != "not built"]


if __name__ == "__main__":
    raise SystemExit(main())
