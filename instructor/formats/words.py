"""A Grade as text for a terminal or a feedback file: points, and one hint for each lost part."""

from __future__ import annotations

from instructor.autograder.points import NOT_MEASURED, Grade, StepGrade
from tirxlab.sandbox.limits import printable

COPIED = (
    "a result counts in full only if the kernel also does what the step before demands: ten steps are ten "
    "techniques, each built on the one before, and a copied step adds none"
)

NOT_FINAL = "these points are not final: the submission has to be graded again"


def number(value: float) -> str:
    """The value as 3 or 4.25: at most two decimals, no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def words(grade: Grade) -> str:
    lines = [f"{step.step:>2}  {_row(step)}" for step in grade.steps]
    lines += [f"step {step.step}: {_indented(hint)}" for step in grade.steps for hint in step.hints]
    lines += [COPIED] if any(step.right and not step.complete for step in grade.steps) else []
    lines += grade.notes
    lines += [] if grade.final else [f"{printable(grade.problem, 1)}; {NOT_FINAL}"]
    total = f"{number(grade.total)} of {number(grade.out_of)} points"
    if any(step.speed == NOT_MEASURED for step in grade.steps):
        apart = number(grade.worth - grade.possible)
        total += f"; speed ({apart} of {number(grade.worth)} points) was not measured: that needs a B200"
    lines += [f"confined: {grade.confined}"] if grade.confined else []
    return "\n".join([*lines, total])


def _indented(hint: str) -> str:
    """The hint with further lines indented: a student's message cannot imitate the grader's own lines."""
    return hint.replace("\n", "\n    ")


def _row(step: StepGrade) -> str:
    result = "NO" if not step.right else "yes" if step.complete else "in part"
    marks = f"result {result}, implementation {'yes' if step.implemented else 'NO'}"
    state = marks if step.state in ("right", "wrong") else step.state
    return (
        f"{number(step.earned):>5} / {number(step.possible):<5}  {step.title:<38} {state}, speed {step.speed}"
    )
