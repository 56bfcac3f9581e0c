"""The leaderboard: one static page, by points, then time, with TFLOP/s and its fraction of the peak."""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import Environment

import utils
from instructor.autograder.points import stands
from instructor.autograder.speed import PEAK_TFLOPS
from instructor.formats.page import STYLE
from instructor.formats.words import number
from tirxlab.steps import parse_size, size_text

NO_TIME = float("inf")


@dataclass(frozen=True)
class Place:
    """One line of the board."""

    rank: int
    name: str
    points: float
    ms: float | None  # of the step and size of the board
    tflops: float | None

    @property
    def light(self) -> float | None:
        """The fraction of what the chip could do at its highest clock."""
        return self.tflops and self.tflops / PEAK_TFLOPS


def places(
    rows: list[dict],
    names: dict[str, str],
    step: int,
    size: tuple[int, int, int],
    adjusted: dict[str, tuple[float, str]] | None = None,
) -> list[Place]:
    """The lines of the board, best first; equal points and times share a rank.

    `names`: submission -> the name shown; submissions that it lacks are left out. `adjusted`: points that the
    course adds or takes, by submission (ledger.adjustments). A name has one line, for its best submission;
    a submission that is not graded has none, as a zero would look final.
    """
    best: dict[str, tuple[float, float]] = {}
    for row in rows:
        if row["name"] not in names or not stands(row["problem"]):
            continue
        times = {one["step"]: one.get("ms", {}) for one in row["steps"]}.get(step, {})
        more = (adjusted or {}).get(row["name"], (0.0, ""))[0]
        mine = -max(0.0, round(row["total"] + more, 2)), times.get(size_text(size), NO_TIME)
        name = names[row["name"]]
        best[name] = min(mine, best.get(name, mine))
    made: list[Place] = []
    for at, (points, ms, name) in enumerate(sorted((*what, name) for name, what in best.items()), 1):
        tied = made and (-points, ms) == (made[-1].points, made[-1].ms or NO_TIME)
        rate = utils.tflops(*size, ms) if ms < NO_TIME else None
        made.append(Place(made[-1].rank if tied else at, name, -points, ms if ms < NO_TIME else None, rate))
    return made


TEXT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Board</title>
<style>{{ style }}</style>
<h1>Board</h1>
<p>Points; where they are equal, the time of step {{ step }} at {{ size }}, measured on a B200.</p>
<table><tr><th class="n"></th><th></th><th class="n">points</th><th class="n">ms</th>
<th class="n">TFLOP/s</th>
<th class="n">of the speed of light ({{ peak }})</th></tr>
{% for p in places %}<tr><td class="n">{{ p.rank }}</td><td>{{ p.name }}</td>
<td class="n">{{ n(p.points) }}</td>
<td class="n">{{ "%.4g" % p.ms if p.ms else "" }}</td>
<td class="n">{{ "%.0f" % p.tflops if p.tflops else "" }}</td>
<td class="n">{{ "%.0f %%" % (100 * p.light) if p.light else "" }}</td></tr>
{% endfor %}</table></html>
"""


def board(made: list[Place], step: int, size: str) -> str:
    return Environment(autoescape=True).from_string(TEXT).render(
        places=made, step=step, size=size_text(parse_size(size)), n=number, style=STYLE, peak=PEAK_TFLOPS
    )  # fmt: skip
