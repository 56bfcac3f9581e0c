"""Links from a page into the handout: relative, so they hold where the lab and the page move together."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from tirxlab.cli.common import ROOT
from tirxlab.cli.report.model import Link

# What is said of a kind of finding -> section of docs/debugging.md
SECTIONS = {"deadlock": ("Deadlocks", "deadlocks"), "illegal": ("Crashes", "crashes")}
MEANING = ("What each finding means", "what-each-finding-means")
NUMBERS = ("Wrong numbers", "wrong-numbers")


def handout(file: str, report: Path, anchor: str = "") -> str:
    """The address of a file of the lab, as a page at `report` writes it."""
    target = ROOT / file
    try:
        path = quote(Path(os.path.relpath(target, report.resolve().parent)).as_posix())
    except ValueError:  # another drive
        path = target.as_uri()
    return f"{path}#{anchor}" if anchor else path


def step_links(steps: list[int], report: Path) -> list[Link]:
    """The pages of steps, and the handout."""
    pages = [Link(f"Step {n}", handout(f"docs/steps/step{n:02}.md", report)) for n in steps]
    return [Link("Handbook", handout("docs/handbook.md", report)), *pages]


def finding_links(kind: str, report: Path) -> list[Link]:
    """Where the handout speaks of a kind of finding; "" is a wrong result."""
    title, anchor = NUMBERS if kind == "" else SECTIONS.get(kind, MEANING)
    return [Link(f"{title} (docs/debugging.md)", handout("docs/debugging.md", report, anchor))]
