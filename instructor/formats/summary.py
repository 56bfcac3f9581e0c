"""A class's grades as a CSV file and one self-contained HTML page."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence

from jinja2 import Environment

from instructor.autograder.points import stands
from instructor.formats.page import STYLE
from instructor.formats.words import number

PAIRS = 300  # pairs that are listed as alike
SLOW = 10  # submissions that are listed as slow


def to_csv(rows: list[dict], roster: dict[str, dict[str, str]]) -> str:
    """A line for each submission, with the roster's columns (late_days, regrade, ..) at the end."""
    extra = [name for name in next(iter(roster.values()), {}) if name not in ("submission", "student")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    steps = sorted({step["step"] for row in rows for step in row["steps"]})
    head = ["submission", "student", "total", "out_of", *[f"step{n}" for n in steps]]
    writer.writerow(
        [*head, "problem", "seconds", "cpu_seconds", "memory_mib", "confined", "lab", "sha256", *extra]
    )
    for row in rows:
        mine = roster.get(row["name"], {})
        earned = {step["step"]: step["earned"] for step in row["steps"]}
        cells = [row["name"], row["student"], row["total"], row["out_of"], *map(earned.get, steps)]
        cells += [row["problem"], round(row["seconds"], 1), round(row["cpu_seconds"], 1), row["memory"] >> 20]
        cells += [row.get("confined", ""), row["lab"]]
        writer.writerow(plain_cells([*cells, row["digest"], *[mine.get(name, "") for name in extra]]))
    return out.getvalue()


# What begins a formula, at the head of a cell or after a character that separates cells in other settings.
_FORMULA = re.compile(r"(^|[;,|\t\r\n])(?=[\s\"']*[=+\-@\uff1d\uff0b\uff0d\uff20])|(^)(?=[\t\r\n])")


def plain_cells(cells: list) -> list:
    """The cells, quoted wherever a spreadsheet would see a formula, whatever separator it splits lines at."""
    return [_FORMULA.sub(r"\1'", c) if isinstance(c, str) else c for c in cells]


TEXT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ rows|length }} submissions</title>
<style>{{ style }}</style>
<h1>{{ rows|length }} submissions</h1>
{% if levels %}<p>Confined: {{ levels|join(", ") }}.</p>{% endif %}
<h2>Points of the {{ graded }} that are graded</h2>
<table><tr><th>of {{ n(out_of) }}</th><th class="n">submissions</th><th></th></tr>
{% for label, count in bins %}<tr><td>{{ label }}</td><td class="n">{{ count }}</td>
<td><span class="bar" style="width: {{ 30 * count / most }}rem"></span></td></tr>
{% endfor %}</table>
<h2>Steps</h2>
<table><tr><th class="n">step</th><th></th><th class="n">right</th><th class="n">implemented</th>
<th class="n">mean points</th></tr>
{% for s in steps %}<tr><td class="n">{{ s.step }}</td><td>{{ s.title }}</td><td class="n">{{ s.right }}</td>
<td class="n">{{ s.implemented }}</td><td class="n">{{ n(s.mean) }} / {{ n(s.possible) }}</td></tr>
{% endfor %}</table>
<h2>Commonest findings</h2><table>{% for kind, count in findings %}<tr><td>{{ kind }}</td>
<td class="n">{{ count }}</td></tr>{% endfor %}</table>
<h2>Not graded</h2><table>{% for row in rows if row.problem %}<tr><td>{{ row.name }}</td>
<td>{{ row.problem }}</td></tr>{% endfor %}</table>
<h2>Slowest</h2><table>{% for row in slow %}<tr><td>{{ row.name }}</td>
<td class="n">{{ "%.0f" % row.seconds }} s</td>
<td class="n">{{ "%.0f" % row.cpu_seconds }} s of CPU</td></tr>{% endfor %}</table>
<h2>Alike</h2><p>Shared runs of tokens; look before you ask.</p>
<table>{% for one, other, part in alike %}<tr><td>{{ one }}</td><td>{{ other }}</td>
<td class="n">{{ "%.0f" % (100 * part) }} %</td></tr>{% endfor %}</table>
{% if more_alike %}<p>and {{ more_alike }} more pairs</p>{% endif %}
{% if same %}<p>The same CUDA, built from other text:</p>
<table>{% for one, other, part in same %}<tr><td>{{ one }}</td><td>{{ other }}</td>
<td class="n">{{ "%.0f" % (100 * part) }} % of the steps</td></tr>{% endfor %}</table>{% endif %}
{% if hidden %}<p>Built by code that is not in sight, or not Python as a whole; read these:
{{ hidden|join(", ") }}</p>{% endif %}
{% if unread %}<p>Not compared:</p><table>{% for key, why in unread.items() %}<tr><td>{{ key }}</td>
<td>{{ why }}</td></tr>{% endfor %}</table>{% endif %}
<h2>All</h2><table><tr><th>submission</th><th>student</th><th class="n">points</th></tr>
{% for row in rows %}<tr>
<td><a href="{{ (row.folder or row.name)|urlencode }}/feedback.html">{{ row.name }}</a></td>
<td>{{ row.student }}</td>
<td class="n">{{ n(row.total) }}</td></tr>
{% endfor %}</table>
</html>
"""


def class_page(
    rows: list[dict],
    alike: list[tuple[str, str, float]],
    unread: dict[str, str] | None = None,
    same: Sequence[tuple[str, str, float]] = (),
    hidden: Collection[str] = (),
) -> str:
    """The page of a class: distribution, points by step, common findings; slow, failed, alike, hidden."""
    out_of = max((row["out_of"] for row in rows), default=0)
    graded = [row for row in rows if stands(row["problem"])]
    bins = _bins([row["total"] for row in graded], out_of)
    steps = [step for row in rows for step in row["steps"]]
    findings = Counter(kind for step in steps for kind in step["findings"])
    states = (step.get("state") for step in steps)
    findings.update(state for state in states if state in ("not built", "missing"))
    return (
        Environment(autoescape=True)
        .from_string(TEXT)
        .render(
            rows=rows,
            graded=len(graded),
            out_of=out_of,
            bins=bins,
            most=max((count for _, count in bins), default=1) or 1,
            steps=_steps(graded),
            findings=findings.most_common(10),
            slow=sorted(rows, key=lambda row: -row["seconds"])[:SLOW],
            alike=alike[:PAIRS],
            more_alike=max(0, len(alike) - PAIRS),
            same=same[:PAIRS],
            hidden=sorted(hidden),
            unread=unread or {},
            levels=sorted({row["confined"] for row in rows if row.get("confined")}),
            n=number,
            style=STYLE,
        )
    )


def _bins(totals: list[float], out_of: float) -> list[tuple[str, int]]:
    """Ten equal ranges; the last holds full marks."""
    width = out_of / 10 or 1
    counts = Counter(min(9, int(total / width)) for total in totals)
    return [(f"{number(i * width)} to {number((i + 1) * width)}", counts[i]) for i in range(10)]


def _steps(rows: list[dict]) -> list[dict]:
    numbers = sorted({step["step"] for row in rows for step in row["steps"]})
    columns = [[step for row in rows for step in row["steps"] if step["step"] == n] for n in numbers]
    return [
        {
            "step": column[0]["step"],
            "title": column[0]["title"],
            "right": sum(step["right"] for step in column),
            "implemented": sum(step["implemented"] for step in column),
            "mean": sum(step["earned"] for step in column) / len(column),
            "possible": column[0]["possible"],
        }
        for column in columns
    ]
