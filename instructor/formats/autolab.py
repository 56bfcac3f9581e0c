"""Autolab: feedback as text, and a last line {"scores": {problem: points}}, which Autolab reads.

A grade that is not final has no such line: a zero would look final.

https://docs.autolabproject.com/lab/
"""

from __future__ import annotations

import json

from instructor.autograder.points import Grade
from instructor.formats.words import words


def autolab(grade: Grade) -> str:
    if not grade.final:
        return words(grade)
    factor = grade.total / grade.earned if grade.earned else 1.0
    scores = {f"step{step.step}": round(step.earned * factor, 2) for step in grade.steps}
    board = json.dumps({"scores": scores, "scoreboard": [grade.total, sum(s.right for s in grade.steps)]})
    return f"{words(grade)}\n{board}"
