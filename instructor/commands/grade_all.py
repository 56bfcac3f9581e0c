"""`./lab grade-all DIR`: grade a folder of submissions, here or on a Dask cluster; resumes where it stopped.

`--speed` then times the right results on a B200: this machine's, or rented ones.
"""

import functools
import importlib.util
import json
from pathlib import Path
from typing import Annotated

import typer

from instructor.commands.grade import Bar, LevelOption, blackwell, cores, level
from instructor.commands.hidden import warn_of_a_known_salt
from tirxlab.cli.common import UserError, output, parse_steps, write_file


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
    again: Annotated[bool, typer.Option("--again", help="grade again what is graded already")] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", help="wall time for a submission")
    ] = 1800,
    confine: LevelOption = None,
    speed: Annotated[
        str | None,
        typer.Option(
            "--speed", metavar="WHERE", help="time right results on a B200: `here` or rented on `modal`"
        ),
    ] = None,
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", help="B200s rented at the same time")] = 4,
    attempts: Annotated[
        str, typer.Option("--attempts", metavar="WHICH", help="a student's latest, best or first one counts")
    ] = "latest",
    late: Annotated[
        float, typer.Option("--late", metavar="PERCENT", help="share of the points that each late day costs")
    ] = 0.0,
) -> None:
    """Grade every submission of a folder: writes a CSV, an HTML page, and a folder with feedback for each.

    If stopped, it resumes when started again. Exit 1 if a submission could not be graded.
    """
    from instructor.autograder import batch
    from instructor.autograder.grading import Options
    from instructor.autograder.ledger import ADJUST, Rule, readable
    from instructor.autograder.points import stands

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if roster and not roster.is_file():
        raise UserError(f"{roster}: no such file")
    if jobs < 0 or not limit > 0:
        raise UserError(f"--jobs {jobs} --limit {limit:g}: write positive numbers")
    options = Options(steps=tuple(parse_steps(step)), level=level(confine), keep=True)
    try:  # before hours of grading
        rows_of, rule = batch.read_roster(roster) if roster else {}, Rule(attempts, late)
        made = batch.Class(folder, out or folder.with_name(f"{folder.name}-grades"), options, rows_of, again)
        made.roster = batch.match_roster(rows_of, made.names())
        readable(made.names(), made.roster, made.out / ADJUST)
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None
    if scheduler:
        work = functools.partial(batch.on_dask, options=options, address=reachable(scheduler))
    else:
        work = functools.partial(batch.local, options=options, jobs=jobs or cores(), seconds=limit)
    measure = measured_by(speed, at_once)
    warn_of_a_known_salt()
    untimed: dict = {}
    try:
        with batch.alone(made.out):
            with Bar(len(made.names())) as bar:
                rows = batch.grade_class(made, work, told(made, bar.tick))
            if measure:
                rows, untimed = time_class(made, rows, measure)
            write_summary(made, rows)
            write_finals(made, rows, rule)
    except (OSError, RuntimeError, ValueError) as error:  # a full disk: what is graded is kept
        raise UserError(str(error)) from None
    failed = untimed or any(not stands(row["problem"]) for row in rows)
    raise typer.Exit(1 if failed else 0)


def measured_by(where: str | None, at_once: int):
    """The function that times a class there, None for nowhere; UserError if that is not available."""
    if where not in (None, "here", "modal"):
        raise UserError(f"--speed {where}: write here (the B200 of this machine) or modal (rented ones)")
    if at_once < 1:
        raise UserError(
            f"--at-once {at_once}: write how many B200s may be rented at the same time, 1 or more"
        )
    if where == "here":
        from instructor.autograder.class_speed import here
        from tirxlab.devices import DeviceError

        try:
            blackwell("cuda")
        except (UserError, DeviceError) as error:
            reason = str(error).partition(": use --device")[0]
            raise UserError(f"--speed here: {reason}; --speed modal rents a B200") from None
        return here
    if where == "modal":
        if importlib.util.find_spec("modal") is None:
            raise UserError("--speed modal needs Modal: .venv/bin/pip install modal && .venv/bin/modal setup")
        from instructor.cloud import checked_account, rented

        if problem := checked_account():
            raise UserError(f"--speed modal: {problem}")
        return functools.partial(rented, at_once=at_once)
    return None


def time_class(made, rows: list[dict], measure) -> tuple[list[dict], dict[str, Exception]]:
    """(the rows with speed, submission -> error where it has none); prints both, and the B200 seconds."""
    from instructor.autograder.class_speed import measure_class
    from tirxlab.sandbox.limits import printable

    with Bar(len(rows), "timing") as bar:
        rows, failed, seconds = measure_class(made, rows, measure, bar.tick)
    console = output()
    for key, error in failed.items():
        why = f"{key}: speed not measured: {type(error).__name__}: {error}"
        console.print(printable(why, 1), markup=False)
    console.print(f"{seconds:.0f} s of B200, without the start of containers", markup=False)
    return rows, failed


def alike_in(made) -> tuple[list, list, dict[str, str], list[str]]:
    """(pairs alike by text, by the CUDA they build, what was not compared and why, whose code is hidden)."""
    from instructor.autograder import similar
    from instructor.autograder.submission import Submission

    read = {key: made.read(key) for key in made.names()}
    texts = {key: one.text for key, one in read.items() if isinstance(one, Submission)}
    prints, unread = similar.fingerprints(texts, made.options.level)
    hidden = similar.hiding(texts, made.options.level)
    bundles = ((key, made.place(key) / "bundle.zip") for key in texts)
    built, unread_too = similar.builds(
        ((key, path.read_bytes()) for key, path in bundles if path.exists()), made.options.level
    )
    by_text = similar.alike(prints)
    same = similar.built_alike(built, hidden, by_text)
    by_text, same = [similar.of_two_students(found, made.roster) for found in (by_text, same)]
    return by_text, same, unread | unread_too, [key for key in hidden if built.get(key)]


def write_summary(made, rows: list[dict]) -> None:
    """grades.csv and index.html beside the submissions' folders."""
    from instructor.autograder.points import NOT_GRADED, stands
    from instructor.formats.summary import class_page, to_csv
    from tirxlab.sandbox.limits import printable

    made.out.mkdir(parents=True, exist_ok=True)
    write_file(made.out / "grades.csv", to_csv(rows, made.roster).encode())
    by_text, same, unread, unseen = alike_in(made)
    write_file(made.out / "index.html", class_page(rows, by_text, unread, same, unseen).encode())
    console = output()
    for key, why in unread.items():
        console.print(printable(f"{key}: not compared: {why}", 1), markup=False)
    bad = [row for row in rows if row["problem"]]
    for row in bad:
        console.print(printable(f"{row['name']}: {row['problem']}", 1), markup=False)
    for names, what in (
        (sorted(set(made.roster) - set(made.names())), "in the roster, not in the folder"),
        (made.left_out(), "not graded: not a folder, .py or .tar, or the name begins with a dot"),
    ):
        if names:
            console.print(printable(f"{len(names)} {what}: {', '.join(names[:5])}", 1), markup=False)
    left = sum(not stands(row["problem"]) for row in rows)
    levels = ", ".join(sorted({row["confined"] for row in rows if row["confined"]})) or "nothing was run"
    said = (
        f"{len(rows)} submissions, {len(bad)} with a problem, {left} of them {NOT_GRADED}; confined: {levels}"
    )
    console.print(f"{said}; see {made.out / 'index.html'}", markup=False)


def told(made, tick):
    """A callback for finished submissions: calls `tick`, and writes status.html anew."""
    from instructor.formats.status import status_page

    rows = dict.fromkeys(made.names())
    write_file(made.out / "status.html", status_page(rows).encode())

    def done(key: str) -> None:
        tick(key)
        try:
            rows[key] = json.loads((made.place(key) / "grade.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        write_file(made.out / "status.html", status_page(rows).encode())

    return done


def write_finals(made, rows: list[dict], rule) -> None:
    """Writes each student's final points, also in platforms' formats; ValueError for a bad adjust.csv."""
    from instructor.autograder.ledger import ADJUST, finals, idle, read_adjust
    from instructor.formats.exports import EXPORTS
    from tirxlab.sandbox.limits import printable

    adjust = read_adjust(made.out / ADJUST)
    every = finals(rows, made.roster, adjust, rule)
    for name, export in EXPORTS.items():
        write_file(made.out / name, export(every).encode())
    nobody, no_longer = idle(adjust, every, rows)
    for names, what in (
        (nobody, "names nobody in the class:"),
        (no_longer, f"changes nothing where another attempt counts (the {rule.attempts} one):"),
    ):
        if names:
            output().print(printable(f"{ADJUST} {what} {', '.join(names[:5])}", 1), markup=False)


def reachable(address: str) -> str:
    """The address, if a scheduler answers there; UserError if none does, or without Dask."""
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
