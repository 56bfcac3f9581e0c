"""`./lab board GRADES`: a static leaderboard page, from a folder that grade-all wrote."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import UserError, output, parse_step, write_file
from tirxlab.steps import parse_size


def run(
    folder: Annotated[Path, typer.Argument(metavar="GRADES", help="what grade-all wrote: DIR-grades")],
    out: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="[GRADES/board.html]")] = None,
    roster: Annotated[
        Path | None,
        typer.Option("--roster", metavar="CSV", help="with a column `nickname`; only its students are shown"),
    ] = None,
    step: Annotated[str, typer.Option("--step", metavar="S", help="whose time decides ties")] = "10",
    size: Annotated[str, typer.Option("--size", metavar="SIZE", help="at this published size")] = "4096",
) -> None:
    """Rank by points, then by measured time; TFLOP/s beside the speed of light. No --roster: all submissions.

    Points include the changes of adjust.csv, as in final.csv, but no late days.

    Submissions keep their file names: the student whom a hand-in names is not verified.
    """
    from instructor.autograder.batch import match_roster, read_roster
    from instructor.autograder.ledger import ADJUST, adjustments, read_adjust
    from instructor.formats.board import board, places

    rows = graded(folder)
    names = {row["name"]: row["name"] for row in rows}
    try:
        known = match_roster(read_roster(roster), list(names)) if roster else {}
        adjusted = adjustments(rows, known, read_adjust(folder / ADJUST))
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    if roster:
        names = {key: row["nickname"] for key, row in known.items() if row.get("nickname")}
    number = parse_step(step)
    made = places(rows, names, number, parse_size(size), adjusted)
    target = out or folder / "board.html"
    write_file(target, board(made, number, size).encode())
    output().print(f"wrote {target}: {len(made)} of {len(rows)} submissions", markup=False)


def graded(folder: Path) -> list[dict]:
    """The grades of a folder; UserError if there are none."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    rows = []
    for path in sorted(folder.glob("*/grade.json")):
        try:
            rows.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: {error}") from None
    if not rows:
        raise UserError(f"{folder}: no grades; this is the folder that grade-all writes, DIR-grades")
    return rows
