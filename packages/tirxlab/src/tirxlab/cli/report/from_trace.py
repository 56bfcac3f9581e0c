"""The page of `trace --out x.html`: a cluster's timeline, what is wrong with the run, and its structure."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tirxlab.cli.report.from_outcomes import finding_cards, structure
from tirxlab.cli.report.model import Page
from tirxlab.cli.report.reading import step_links
from tirxlab.cli.report.timelines import run_of
from tirxlab.cli.runs import Outcome
from tirxlab.steps import read_text
from tirxlab.version import lab_version

STATES = {"clean": "good", "error": "bad"}


def trace_page(title: str, step: int | str, done, artifact, path: Path | None) -> Page:
    """done: the Run; path: the kernels file, if it is known."""
    text = read_text(path) if path else ""
    file = path.name if path else ""
    found = [asdict(finding) for finding in done.findings]
    number = step if isinstance(step, int) else 0  # a track has no step number
    outcome = Outcome(number, "", "sim", "", None, done.verdict, 0.0, findings=found)
    page = Page(
        f"Timeline of {title}",
        STATES.get(done.verdict, "mixed"),
        f"this cluster: {done.verdict}",
        facts=[("command", "./lab trace"), *([("file", file)] if file else []), ("lab", lab_version())],
        cards=list(finding_cards(outcome, title, file, text)),
        runs=[run_of(done.trace, title, text)],
        notes=[f"Timeline: {note}." for note in done.trace.notes],
    )
    if isinstance(step, int):
        page.links = step_links([step])
        drawn = done.trace.finished and done.trace.unit == "ticks"  # a model's trace has no signals
        page.pictures = [structure(artifact, done.trace, step)] if drawn else []
    return page
