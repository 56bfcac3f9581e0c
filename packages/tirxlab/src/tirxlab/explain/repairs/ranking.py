"""Ranks edits by their features (evidence.py, fit.py), with the weights of data/repairs.json.

All edits are weighed by features that are quick to compute; the best of them also by how they fit the file.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tirxlab.explain.repairs.edits import Edits
from tirxlab.explain.repairs.evidence import Evidence
from tirxlab.explain.repairs.fit import Fit
from tirxlab.explain.repairs.text import Builder, Edit
from tirxlab.steps import sections

AGAIN = 0.15  # cost of an edit for each one already ranked in the same line
FITTED = 2500  # how many edits are weighed by how they fit
WEIGHTS = Path(__file__).parents[2] / "data" / "repairs.json"
Weights = dict[str, float]


@cache
def weights() -> dict[str, Weights]:
    """The weights: "first" for all edits, "all" for those that are also weighed by how they fit."""
    return json.loads(WEIGHTS.read_text())


def ranked(text: str, step: int, findings: list[dict], message: str) -> list[Edit]:
    """The edits of hgemm_v`step`, those likeliest to repair it first; none if it has no `def`."""
    if step not in sections(text):
        return []
    builder = Builder(text, step)
    best = likely(builder, Evidence(builder, findings, message), weights()["first"])
    fit, final = Fit(builder), weights()["all"]
    scored = [(weighed(features | fit.features(edit), final), edit) for edit, features in best]
    return list(_spread(builder, sorted(scored, key=lambda one: -one[0])))


def likely(builder: Builder, evidence: Evidence, first: Weights) -> list[tuple[Edit, Weights]]:
    """The best FITTED edits, with their features."""
    found = ((edit, evidence.of(edit)) for edit in Edits(builder))
    return heapq.nlargest(FITTED, found, key=lambda one: weighed(one[1], first))


def weighed(features: Weights, by: Weights) -> float:
    return sum(value * by[name] for name, value in features.items() if name in by)


def _spread(builder: Builder, scored: Iterable[tuple[float, Edit]]) -> Iterator[Edit]:
    """Yields edits best first; each edit already yielded in a line lowers the rank of the line's next."""
    had: Counter[int] = Counter()
    waiting = [(-score, n, 0, edit) for n, (score, edit) in enumerate(scored)]
    heapq.heapify(waiting)
    while waiting:
        cost, n, before, edit = heapq.heappop(waiting)
        line = builder.line(edit.splices[0][0])
        if had[line] == before:
            had[line] += 1
            yield edit
        else:
            heapq.heappush(waiting, (cost + AGAIN * (had[line] - before), n, had[line], edit))
