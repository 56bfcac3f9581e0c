"""Gradescope's results.json: one test for each part of each step; no score if the grade is not final.

https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
"""

from __future__ import annotations

import json

from instructor.autograder.points import NOT_MEASURED, Grade, StepGrade
from instructor.formats.words import words
from tirxlab.rubric import load_rubric


def gradescope(grade: Grade) -> str:
    if not grade.final:
        return json.dumps(
            {"output": words(grade), "output_format": "text", "visibility": "visible"}, indent=2
        )
    tests = [test for step in grade.steps for test in _tests(step)]
    if load_rubric().shares.without_speed == "scaled" and grade.possible:
        for test in tests:
            test["score"] = round(test["score"] * grade.worth / grade.possible, 4)
            test["max_score"] = round(test["max_score"] * grade.worth / grade.possible, 4)
    return json.dumps(
        {
            "score": grade.total,
            "output": words(grade),
            "output_format": "text",
            "visibility": "visible",
            "stdout_visibility": "hidden",
            "tests": tests,
            "leaderboard": [
                {"name": "points", "value": grade.total},
                {"name": "steps right", "value": sum(step.right for step in grade.steps)},
            ],
            "extra_data": {"lab": grade.lab, "sha256": grade.digest},
        },
        indent=2,
    )


def _tests(step: StepGrade) -> list[dict]:
    """Tests for result, implementation and, if measured, speed; the first that fails shows the hint."""
    shares, hint = load_rubric().shares, "\n".join(step.hints)
    parts = [
        ("result", shares.correctness, step.correctness_points),
        ("implementation", shares.implementation, step.implementation_points),
    ]
    if step.speed != NOT_MEASURED:
        parts.append(("speed", shares.speed, step.speed_points))
    tests: list[dict] = []
    for name, share, earned in parts:
        most = round(step.points * share, 2)
        passed = earned >= most  # a result may count in part
        tests.append(
            {
                "number": f"{step.step}.{len(tests) + 1}",
                "name": f"Step {step.step}, {step.title}: {name}",
                "score": earned,
                "max_score": most,
                "status": "passed" if passed else "failed",
                "output": "" if passed else hint or "the result comes first",
                "visibility": "visible",
            }
        )
        hint = hint if passed else ""
    return tests
