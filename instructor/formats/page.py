"""A Grade as one self-contained HTML file, which the student may see."""

from __future__ import annotations

from jinja2 import Environment

from instructor.autograder.points import Grade
from instructor.formats.words import COPIED, NOT_FINAL, number

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
td, th { border-bottom: 1px solid #ddd; padding: .35rem .6rem; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: #17692c; } .bad { color: #a3191f; } .none { color: #666; }
.bar { background: #4a7ebb; height: .8rem; display: inline-block; }
footer { color: #666; font-size: .85rem; margin-top: 2rem; }
"""
TEXT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ g.name }}: {{ n(g.total) }} points</title>
<style>{{ style }}</style>
<h1>{{ n(g.total) }} of {{ n(g.out_of) }} points</h1>
{% if not g.final %}<p class="bad">{{ g.problem }}; {{ not_final }}</p>{% endif %}
{% for note in g.notes %}<p><small>{{ note }}</small></p>{% endfor %}
{% if g.student %}<p>{{ g.student }}</p>{% endif %}
<table><tr><th class="n">step</th><th></th><th>result</th><th>implementation</th><th>speed</th>
<th class="n">points</th></tr>
{% for s in g.steps %}<tr><td class="n">{{ s.step }}</td>
<td>{{ s.title }}{% for hint in s.hints %}<br><small>{{ hint }}</small>{% endfor %}</td>
<td class="{{ 'good' if s.right else 'bad' }}">{{ s.state }}{{ "" if s.complete else ", in part" }}</td>
<td class="{{ 'good' if s.implemented else 'bad' }}">{{ "yes" if s.implemented else "no" }}</td>
<td class="{{ 'good' if s.speed == 'passed' else 'none' }}">{{ s.speed }}</td>
<td class="n">{{ n(s.earned) }} / {{ n(s.possible) }}</td></tr>
{% endfor %}</table>
{% if g.steps|rejectattr("complete")|list %}<p><small>In part: {{ copied }}.</small></p>{% endif %}
<footer>lab {{ g.lab }}, file {{ g.digest[:16] }}, device {{ g.device }}{% if g.confined %},
confined: {{ g.confined }}{% endif %}</footer>
</html>
"""


def page(grade: Grade) -> str:
    made = Environment(autoescape=True).from_string(TEXT)
    return made.render(g=grade, n=number, style=STYLE, copied=COPIED, not_final=NOT_FINAL)
