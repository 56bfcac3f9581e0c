"""`./lab hidden new|show|check`: the sizes and seeds that the course keeps secret."""

import itertools
import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import REFERENCE, UserError, notes, output
from tirxlab.steps import read_text, size_text


def run(
    action: Annotated[str, typer.Argument(metavar="new|show|check", help="make, print or try them")],
    secret: Annotated[
        str | None, typer.Option("--secret", metavar="TEXT", help="equal texts, equal sizes [a random one]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="check: only look at the sizes")] = False,
) -> None:
    """Make, show or check the hidden sizes and seeds, drawn from a secret, in instructor/hidden.toml.

    `new` writes them and keeps each old file beside the new one; `check` grades the reference with them, and
    exits with 1 unless it earns every point that is measured without a GPU.
    """
    actions = {"new": lambda: new(secret), "show": show, "check": lambda: check(quick)}
    if action not in actions:
        raise UserError(f"hidden {action}: it is one of {', '.join(actions)}")
    actions[action]()


def new(secret: str | None) -> None:
    from instructor.autograder.hidden_sizes import LEAST, draw, render
    from instructor.autograder.plan import HIDDEN

    if secret is not None and len(secret) < LEAST:
        raise UserError(f"--secret: fewer than {LEAST} letters can be guessed; leave it out for a random one")
    made = draw(secret or secrets.token_urlsafe(24))
    if HIDDEN.exists():
        os.replace(HIDDEN, _kept(HIDDEN))
    with open(os.open(HIDDEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(render(made))
    show()
    output().print("earlier grades are made anew with these; now: ./lab hidden check", markup=False)


def _kept(path: Path) -> Path:
    """The name under which an old file is kept, so that what was graded with it can be graded again."""
    names = (path.with_name(f"hidden.old{number}.toml") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def show() -> None:
    hidden = _load()
    for step, sizes in hidden.sizes.items():
        told = [size_text(size) + _sms(hidden.few_sms.get((step, size))) for size in sizes]
        output().print(f"step {step:>2}  {', '.join(told) or 'none'}", markup=False)


def _sms(few: int | None) -> str:
    return f" with SM_COUNT = {few}" if few else ""


def check(quick: bool) -> None:
    from instructor.autograder.grading import Options, grade
    from instructor.autograder.hidden_sizes import problems
    from instructor.autograder.submission import Submission
    from instructor.formats import words

    hidden = _load()
    found = problems(hidden)
    for problem in found:
        output().print(problem, markup=False)
    if not quick:
        made = grade(Submission("the reference", read_text(REFERENCE)), Options(hidden=hidden))
        output().print(words(made), markup=False)
        found += ["points"] * (made.earned < made.possible)
    raise typer.Exit(1 if found else 0)


def warn_of_a_known_salt() -> None:
    """Warns if points are about to be given by seeds that a student can look up or guess."""
    from instructor.autograder.hidden_sizes import guessable

    for why in guessable(_load().salt):
        notes().print(f"hidden.toml: {why}; ./lab hidden new makes another", markup=False)


def _load():
    from instructor.autograder.plan import HIDDEN, load_hidden

    try:
        return load_hidden(HIDDEN)
    except ValueError as error:
        raise UserError(str(error)) from None
