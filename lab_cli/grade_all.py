"""`./lab grade-all DIR`: grade a folder of submissions, here or on a Dask cluster; go on where it stopped."""

import functools
from pathlib import Path
from typing import Annotated

import typer

from lab_cli.common import UserError, output, parse_steps, write_file
from lab_cli.grade import Bar, LevelOption, cores, level


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a folder of folders, .py or .tar files")],
    out: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="for the grades [DIR-grades]")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="submissions at a time [cores]")] = 0,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="tcp://..", help="an existing Dask cluster")
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option("--roster", metavar="CSV", help="columns submission, student, late_days, regrade, .."),
    ] = None,
    step: Annotated[str, typer.Option("--steps", metavar="S", help="only these steps")] = "all",
    again: Annotated[bool, typer.Option("--again", help="what is graded already too")] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", help="of wall time for a submission")
    ] = 1800,
    confine: LevelOption = None,
) -> None:
    """Grade every submission of a folder: a CSV, an HTML page, and a folder with feedback for each.

    Stopped, it goes on where it was when started again. Exit 1 if a submission could not be graded.
    """
    from instructor.autograder import batch
    from instructor.autograder.grading import Options

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    try:
        rows_of = batch.read_roster(roster) if roster else {}
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    options = Options(steps=tuple(parse_steps(step)), level=level(confine), keep=True)
    made = batch.Class(folder, out or folder.with_name(f"{folder.name}-grades"), options, rows_of, again)
    if scheduler:
        work = functools.partial(batch.on_dask, options=options, address=reachable(scheduler))
    else:
        work = functools.partial(batch.local, options=options, jobs=jobs or cores(), seconds=limit)
    with Bar(len(made.names())) as bar:
        rows = batch.grade_class(made, work, bar.tick)
    write_summary(made, rows)
    raise typer.Exit(1 if any(row["problem"].startswith("not graded") for row in rows) else 0)


def write_summary(made, rows: list[dict]) -> None:
    """grades.csv and index.html beside the submissions' folders."""
    from instructor.autograder.similar import similar
    from instructor.autograder.submission import Submission
    from instructor.formats.summary import class_page, to_csv
    from tirxlab.worker.limits import printable

    read = {key: made.read(key) for key in made.names()}
    texts = {key: one.text for key, one in read.items() if isinstance(one, Submission)}
    made.out.mkdir(parents=True, exist_ok=True)
    write_file(made.out / "grades.csv", to_csv(rows, made.roster).encode())
    write_file(made.out / "index.html", class_page(rows, similar(texts)).encode())
    console = output()
    bad = [row for row in rows if row["problem"]]
    for row in bad:
        console.print(printable(f"{row['name']}: {row['problem']}", 1), markup=False)
    console.print(
        f"{len(rows)} submissions, {len(bad)} with a problem; see {made.out / 'index.html'}", markup=False
    )


def reachable(address: str) -> str:
    """The address of a scheduler that answers; UserError for one that does not, or without Dask."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UserError(
            "--scheduler needs Dask: .venv/bin/python -m pip install 'distributed>=2024.1'"
        ) from None
    try:
        with Client(address, timeout=10):
            return address
    except (OSError, ValueError) as error:
        raise UserError(f"--scheduler {address}: no answer ({type(error).__name__})") from None
