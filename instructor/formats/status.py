"""The progress of grading a class: one page that is rewritten during the run and reloads itself."""

from __future__ import annotations

from collections import Counter

from jinja2 import Environment

from instructor.autograder.points import NOT_MEASURED, OVER, stands
from instructor.formats.page import STYLE

WAITING = "waiting"
TEXT = """<!doctype html>
<html lang="en"><meta charset="utf-8">{% if left %}<meta http-equiv="refresh" content="10">{% endif %}
<title>{{ done }} of {{ all }} graded</title><style>{{ style }}</style>
<h1>{{ done }} of {{ all }}</h1>
<table>{% for what, count in counts %}<tr><td>{{ what }}</td><td class="n">{{ count }}</td></tr>
{% endfor %}</table>
<table>{% for name, what in named %}<tr><td>{{ name }}</td><td>{{ what }}</td></tr>
{% endfor %}</table>
</html>
"""


def state_of(row: dict) -> str:
    """The state of a graded submission (plain data), in one of a few words."""
    said = " ".join([row["problem"], *(hint for step in row["steps"] for hint in step["hints"])])
    if not stands(row["problem"]):
        return "refused" if not row["digest"] else "not graded"
    if OVER in said:
        return "timed out"
    return "graded"


def status_page(rows: dict[str, dict | None]) -> str:
    """The page. `rows`: every submission with its grade, None while it waits."""
    states = {name: state_of(row) if row else WAITING for name, row in rows.items()}
    counts = Counter({"graded": 0, "timed out": 0, "not graded": 0, "refused": 0, WAITING: 0})
    counts.update(states.values())
    untimed = sum(
        any(step["right"] and step["implemented"] and step["speed"] == NOT_MEASURED for step in row["steps"])
        for row in rows.values()
        if row
    )
    named = [(name, what) for name, what in sorted(states.items()) if what not in ("graded", WAITING)]
    return Environment(autoescape=True).from_string(TEXT).render(
        done=len(rows) - counts[WAITING], all=len(rows), left=counts[WAITING], named=named, style=STYLE,
        counts=[*counts.items(), ("without a measured speed", untimed)],
    )  # fmt: skip
