"""A Grade as plain data: everything that is needed to restore it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

from instructor.autograder.points import Grade, StepGrade


def plain(grade: Grade) -> dict:
    """The Grade as plain data, for the course alone: it has the runs at hidden sizes and their times."""
    data = asdict(replace(grade, artifacts={}))
    del data["artifacts"]
    for made, step in zip(data["steps"], grade.steps, strict=True):
        made |= {"earned": step.earned, "possible": step.possible}
    return data | {
        "earned": grade.earned,
        "possible": grade.possible,
        "total": grade.total,
        "out_of": grade.out_of,
    }


def from_plain(data: dict) -> Grade:
    """The Grade from which `plain` made this, without its artifacts; derived values are computed again."""
    steps = [StepGrade(**_fields(StepGrade, step)) for step in data["steps"]]
    found: dict[str, Any] = _fields(Grade, data) | {"steps": steps}
    return Grade(**found)


def _fields(kind: type, data: dict) -> dict:
    return {one.name: data[one.name] for one in fields(kind) if one.name in data}


def to_json(grade: Grade) -> str:
    return json.dumps(plain(grade), indent=2, default=str)
