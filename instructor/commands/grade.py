"""`./lab grade FILE`: grade one submission as the course does: result, implementation, speed on a GPU."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import (
    DeviceOption,
    JsonOption,
    UserError,
    notes,
    output,
    parse_steps,
    usable_device,
    write_file,
)
from tirxlab.cli.report import ReportOption, check_report

LevelOption = Annotated[
    str | None,
    typer.Option(
        "--confine",
        metavar="LEVEL",
        help="bubblewrap, namespaces, user, landlock or limits [the strongest that works]",
    ),
]

PLATFORMS = ("gradescope", "autolab")  # these show a student a bad hand-in's error as a grade


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="gemm_kernels.py or handin.tar")],
    step: Annotated[str, typer.Option("--steps", metavar="S", help="only these steps: 3, or 1,3,5")] = "all",
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="text, json, html, gradescope or autolab")
    ] = "text",
    out: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="write it there")] = None,
    full: Annotated[bool, typer.Option("--full", help="all public sizes on the simulator")] = False,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", help="work time for all runs of a step")
    ] = 120,
    confine: LevelOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
    report_to: ReportOption = None,
) -> None:
    """Grade one submission. Exit 0: full marks in what was measured; 1: fewer; 2: some part not graded."""
    from instructor.autograder.grading import Options, grade, refused
    from instructor.autograder.submission import SubmissionError, read_submission
    from instructor.formats import FORMATS

    check_report(report_to)
    form = "json" if json else form
    if form not in FORMATS:
        raise UserError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    steps = tuple(parse_steps(step))
    try:
        submission = read_submission(Path(os.path.realpath(file)))  # survives a link to itself, too
        options = Options(full, min(2, cores()), limit, level=level(confine), steps=steps)
        options.device = blackwell(device)
        with Bar(len(steps)) as bar:
            made = grade(submission, options, bar.tick)
    except SubmissionError as error:
        if form not in PLATFORMS:
            raise UserError(str(error)) from None
        made = refused(file.name, error.what, steps)
    except ValueError as error:
        raise UserError(str(error)) from None
    if report_to is not None:
        from tirxlab.cli.report import from_scores, write_report

        write_report(report_to, from_scores.grade_page(made, FORMATS["text"](made)))
    text = FORMATS[form](made)
    if out is not None:
        write_file(out, (text + "\n").encode())
    if out is None or form != "text":
        output().print(text if out is None else FORMATS["text"](made), markup=False)
    if not made.final:
        notes().print(f"{made.problem}; grade it again", markup=False)
        raise typer.Exit(2)
    raise typer.Exit(0 if made.earned == made.possible and not made.problem else 1)


def blackwell(name: str | None) -> str:
    """Where speed is measured: "cuda" on a Blackwell GPU, as for the published times; "sim": nowhere."""
    from tirxlab.devices import driver

    device = usable_device(name)
    if device == "cuda" and not any(major == 10 for major, _ in driver.capabilities()):
        raise UserError("--device cuda: the published times are a B200's, and this GPU is not a Blackwell")
    return device


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def level(name: str | None) -> str | None:
    """The level of confinement to grade with, one that works here; "limits" only if it is asked for."""
    from instructor.autograder.grading import NOT_SHUT_IN
    from tirxlab.sandbox import LEVELS, strongest
    from tirxlab.sandbox.levels import SHUT_IN, works

    if name is None and strongest() not in SHUT_IN:
        raise UserError(NOT_SHUT_IN)
    if name is None:
        return None
    if name not in LEVELS:
        raise UserError(f"--confine {name}: it is one of {', '.join(LEVELS)}")
    if name in SHUT_IN and not works(name):
        raise UserError(f"--confine {name} does not work on this machine; {strongest()} does")
    return name


class Bar:
    """A progress bar that counts steps; shown only on a terminal."""

    def __init__(self, steps: int, what: str = "grading"):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = notes()
        columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("", total=steps)

    def __enter__(self) -> "Bar":
        self.bar.start()
        return self

    def __exit__(self, *_) -> None:
        self.bar.stop()

    def tick(self, step: int) -> None:
        self.bar.advance(self.task)
