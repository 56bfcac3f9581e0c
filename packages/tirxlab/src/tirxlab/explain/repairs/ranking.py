"""Which edits to try first: those near what the findings name, that fit the file, of a likely family."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

from tirxlab.explain.repairs.edits import Edits
from tirxlab.explain.repairs.fit import Fit
from tirxlab.explain.repairs.near import Near
from tirxlab.explain.repairs.text import Builder, Edit

NEAR = 8.0  # bits that an edit of a line is worth which the first finding names
FIT = 0.18
GIVEN = -6.0  # bits of an edit of lines that read as they were given
AGAIN = 0.7  # bits that each edit of a line costs the next
FITTED = 2500  # edits, by place and family, that are looked up in the file
PRIOR = {
    "as given": 10.0,
    "as before": 5.0,
    "constant": 0.0,
    "name": 0.0,
    "expression": 1.0,
    "step": -1.0,
    "operand": -1.0,
    "factor": 1.0,
    "comparison": 0.0,
    "exchange": 0.0,
    "keyword": -2.0,
    "left out": -4.0,
    "moved": -4.0,
    "put in": -4.0,
}


def ranked(text: str, step: int, findings: list[dict], message: str) -> list[Edit]:
    """The edits of hgemm_v`step`, the likeliest to repair it first."""
    builder = Builder(text, step)
    near, fit = Near(builder, findings, message), Fit(builder)
    by_place = sorted(((_by_place(builder, near, edit), edit) for edit in Edits(builder)), key=_score)
    scored = [(score + FIT * fit.gained(edit), edit) for score, edit in by_place[:FITTED]]
    return list(_spread(builder, sorted(scored, key=_score)))


def _by_place(builder: Builder, near: Near, edit: Edit) -> float:
    return PRIOR[edit.family] + NEAR * near.of(edit) + GIVEN * as_given(builder, edit)


def as_given(builder: Builder, edit: Edit) -> bool:
    """Whether nothing but lines of the handout would change."""
    first = builder.before + 1
    return all(
        all(builder.given[builder.line(start) - first : builder.line(max(start, end - 1)) - first + 1])
        for start, end, _ in edit.splices
    )


def _spread(builder: Builder, scored: list[tuple[float, Edit]]) -> Iterator[Edit]:
    """Best first, but the more of a line have come before, the less its next is worth."""
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


def _score(one: tuple[float, Edit]) -> float:
    return -one[0]
