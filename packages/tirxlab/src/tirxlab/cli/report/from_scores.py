"""Pages of `score` and `grade`: points by step. They show no more than the terminal: nothing hidden."""

from __future__ import annotations

from pathlib import Path

from tirxlab.cli.report.from_outcomes import about, cards, wrong_maps
from tirxlab.cli.report.model import Card, Cell, Grid, Page
from tirxlab.cli.report.reading import step_links
from tirxlab.cli.runs import Outcome
from tirxlab.steps import read_text
from tirxlab.version import lab_version


def score_page(path: Path, scores: list, outcomes: list[Outcome]) -> Page:
    """scores: StepScore of each step, from tirxlab.cli/score.py."""
    earned, possible = sum(s.earned for s in scores), sum(s.points for s in scores)
    rows = []
    for score in scores:
        full = "good" if score.earned == score.points else "bad"
        points = Cell(f"{score.earned} / {score.points}", full, True)
        right = Cell(score.right, full if score.right.endswith("sizes") else "plain")
        rows.append([Cell(str(score.step), number=True), Cell(score.title), right, Cell(score.speed), points])
    page = Page(
        "Score",
        "good" if earned == possible else "mixed" if earned else "bad",
        f"{earned} of {possible} points; techniques are not checked",
        facts=[("command", "./lab score"), ("file", path.name), *about(outcomes)],
        grids=[Grid("Points", ["step", "", "right", "speed", "points"], rows)],
        cards=cards(outcomes, path.name, read_text(path)),
        maps=wrong_maps(outcomes),
        notes=["Roofline: left out, because this command predicts no times."],
        links=step_links([score.step for score in scores]),
    )
    if any(score.speed == "not measured" for score in scores):
        page.notes.append("Speed: not measured, because that needs a B200.")
    return page


def grade_page(grade, text: str) -> Page:
    """The page of a Grade (instructor/autograder/points.py). `text`: the terminal's text, whose last line is
    the result. Only points and hints are shown: the course's sizes, seeds and orders must stay hidden.
    """
    rows, hints = [], []
    for step in grade.steps:
        good = "good" if step.earned == step.possible else "bad"
        done = step.state in ("right", "wrong")
        marks = [
            Cell("yes" if passed else "no", "good" if passed else "bad") if done else Cell("-")
            for passed in (step.right, step.implemented)
        ]
        points = Cell(f"{step.earned:g} / {step.possible:g}", good, True)
        number = Cell(str(step.step), number=True)
        rows.append([number, Cell(step.title), Cell(step.state), *marks, Cell(step.speed), points])
        hints += [Card(f"step {step.step}", step.state, "", hint) for hint in step.hints]
    head = ["step", "", "state", "result", "implementation", "speed", "points"]
    full = grade.earned == grade.possible and not grade.problem
    return Page(
        f"Grade of {grade.student or grade.name}",
        "good" if full else "mixed" if grade.earned else "bad",
        text.splitlines()[-1],
        facts=[("file", grade.digest[:16]), ("device", grade.device), ("lab", lab_version())],
        grids=[Grid("Points", head, rows)],
        cards=hints,
        notes=["Runs, timelines and maps: left out, because the course keeps its sizes secret."],
    )
