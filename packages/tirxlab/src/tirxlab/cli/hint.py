"""`./lab hint S`: help in stages: first the place, then the rule, then the idiom; never the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tirxlab.cli.common import KernelsOption, UserError, kernels_file, output, parse_step, source_text
from tirxlab.cli.record import Attempts, digest_of, first_unfinished, load
from tirxlab.steps import todos

HINTS = Path(__file__).parents[1] / "data" / "hints.toml"
STAGES = ("place", "rule", "idiom")


def run(
    step: Annotated[str | None, typer.Argument(metavar="[S]", help="a step 1..10 [the next one]")] = None,
    kernels: KernelsOption = None,
    again: Annotated[bool, typer.Option("--from-start", help="begin with the first hint again")] = False,
) -> None:
    """Give the next hint for a step: where to look, then which rule applies, then how TIRX expresses it.

    After a failed check, the first hint is the line that it named. No hint gives the answer away.
    """
    path = kernels_file(kernels)
    text, record = source_text(path), load(path)
    number = parse_step(step) if step is not None else first_unfinished(record, text)
    if number is None:
        raise UserError("all ten steps are clean; name one of them: ./lab hint 7")
    mine = record.steps.setdefault(number, Attempts())
    mine.hints = 0 if again else mine.hints
    stages = hints(number, mine, text, path.name)
    shown = min(mine.hints, len(stages) - 1)
    title, said = stages[shown]
    output().print(f"step {number}, hint {shown + 1} of {len(stages)} ({title}): {said}", markup=False)
    if shown + 1 < len(stages):
        output().print("Try it first; ./lab hint again gives the next one", markup=False)
    else:
        output().print(f"That was the last one; docs/steps/step{number:02}.md has the rest", markup=False)
    mine.hints = min(mine.hints + 1, len(stages) - 1)
    record.save()


def hints(step: int, mine: Attempts, text: str, name: str) -> list[tuple[str, str]]:
    """(stage, words) in order. What the last check said comes first, if the text has not changed since."""
    known = tomllib.loads(HINTS.read_text(encoding="utf-8"))[f"step{step}"]
    found = [(stage, " ".join(known[stage].split())) for stage in STAGES]
    open_lines = todos(text, step)
    if mine.said and mine.text == digest_of(text, step):
        where = f"{name}, line {mine.line}" if mine.line else f"the size {mine.size}"
        return [("place", f"the last check stopped at {where}: {mine.said}"), *found]
    if open_lines:
        lines = ", ".join(map(str, open_lines))
        found[0] = ("place", f"{found[0][1]} The TODOs are in {name}, line {lines}.")
    return found
