"""One self-contained HTML file about what a command did: `--report FILE`.

model.py holds what a page shows, as plain data. from_outcomes.py, from_scores.py and the commands fill it;
page.py renders it with the template, the style sheet and the script in assets/. The file loads nothing: it
works from a folder, offline, by keyboard and on a phone. The timeline is SVG drawn by a script of our own:
we know of no chart library small enough for a page that draws bars in lanes, with arrows between them that
can be followed by keyboard.
"""

from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import UserError, write_file
from tirxlab.cli.pictures import check_target
from tirxlab.cli.report.model import Page
from tirxlab.cli.tracks import is_track

ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="also write it as one HTML page")
]


def check_report(path: Path | None, step: str = "") -> None:
    """UserError if the page cannot be written, or for a track, which has none; called before any work."""
    check_target(path, (".html",), "--report")
    if path is not None and is_track(step):
        raise UserError(f"--report: there is no page for {step}, only for the steps 1 to 10")


def write_report(path: Path, page: Page) -> None:
    """Render and write a page; its place is printed on standard error, so that --json output stays valid."""
    from tirxlab.cli.common import notes
    from tirxlab.cli.report.page import render

    write_file(path, render(page).encode())
    notes().print(f"report written to {path}", markup=False)
