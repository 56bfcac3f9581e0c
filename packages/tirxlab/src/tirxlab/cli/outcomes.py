"""Outcomes as a table and as findings, for people; as plain data, for tools."""

import re
from dataclasses import asdict, replace

from rich.table import Table
from rich.text import Text

from tirxlab.cli.common import output
from tirxlab.cli.runs import Outcome
from tirxlab.steps import STEPS, is_untouched, size_text

FIRST, LAST = 60, 60  # how many lines of a kernel's printed text are shown
_SEEN = re.compile(r"\n *seen of .*(?:\n {4,}.*)*")  # what each barrier saw; its counts differ between runs
COLOURS = {
    "clean": "green",
    "review": "yellow",
    "error": "red",
    "incomplete": "yellow",
    "not checked": "yellow",
    "not built": "red",
}


def table(outcomes: list[Outcome]) -> Table:
    """The table of step, size, right?, verdict and seconds; with the order if there are several."""
    made = Table(box=None, pad_edge=False)
    several = len({outcome.order for outcome in outcomes}) > 1
    for name in ("step", "size", *["order"] * several, "right?", "verdict", "seconds"):
        made.add_column(name, justify="right" if name in ("step", "seconds") else "left", no_wrap=True)
    for outcome in outcomes:
        made.add_row(
            str(outcome.step),
            outcome.size,
            *[str(outcome.order)] * several,
            right_text(outcome.right),
            Text(outcome.verdict, COLOURS.get(outcome.verdict, "")),
            f"{outcome.seconds:.1f}",
        )
    return made


def place_of(job) -> tuple[str, str]:
    """(size, order) of a job, written as in its outcome."""
    return size_text(job.size), str(job.order)


def right_text(right: bool | None) -> Text:
    return {True: Text("yes", "green"), False: Text("NO", "red"), None: Text("-", "red")}[right]


def details(outcome: Outcome) -> None:
    """Shows what the kernel printed, and what is wrong or to be reviewed."""
    console = output()
    if outcome.printed:
        console.print(shortened(outcome.printed), markup=False)
    if outcome.message:
        console.print(f"step {outcome.step} at {outcome.size}, order {outcome.order}:", markup=False)
        console.print("\n".join("  " + line for line in outcome.message.splitlines()), markup=False)


def shortened(printed: str) -> str:
    """What a kernel printed; of a long text the first and last lines, which show how far each role got."""
    lines = printed.splitlines()
    if len(lines) <= FIRST + LAST:
        return printed
    left = f"... {len(lines) - FIRST - LAST} more lines; --json has them all"
    return "\n".join([*lines[:FIRST], left, *lines[-LAST:]])


def numberless(message: str) -> str:
    """A message without its numbers and without what each barrier saw."""
    return re.sub(r"\d+", "", _SEEN.sub("", message))


def details_once(outcomes: list[Outcome]) -> None:
    """Shows the details of outcomes, without messages that differ from an earlier one only in numbers."""
    told: dict[tuple, Outcome] = {}
    again: dict[tuple, list[Outcome]] = {}
    for outcome in outcomes:
        key = outcome.step, numberless(outcome.message)
        if outcome.message and key in told:
            again.setdefault(key, []).append(outcome)
            outcome = replace(outcome, message="")
        else:
            told[key] = outcome
        details(outcome)
    for key, others in again.items():
        sizes = ", ".join(dict.fromkeys(other.size for other in others if other.size != told[key].size))
        if sizes:
            output().print(f"step {key[0]}: the same at {sizes}", markup=False)


def plain(outcomes: list[Outcome]) -> list[dict]:
    """Outcomes as --json prints them; without the map of wrong elements, which only a page shows."""
    left_out = ("wrong", "mismatch")
    made = [asdict(outcome) | {"passed": outcome.passed} for outcome in outcomes]
    return [{key: value for key, value in one.items() if key not in left_out} for one in made]


def what_next(text: str, outcomes: list[Outcome], part: str = "") -> str:
    """What to do after a step that passes: fix what is to be reviewed, then write the next step.

    If an earlier step is not begun in the file's `text`, that one is next. `part`: the sizes or the order
    that the student asked for; only all of the step's own sizes and orders show that it passes.
    """
    from tirxlab.rubric import load_rubric

    step = outcomes[-1].step
    on_gpu = outcomes[-1].device == "cuda"
    where = "on this GPU" if on_gpu else "on the simulator (its speed needs a GPU)"
    reviewed = any(outcome.verdict == "review" for outcome in outcomes)
    if part:
        said = "is not clean: fix what is listed above" if reviewed else "is right"
        return f"Step {step} {said} ({part} only). Next: all of its sizes and orders, ./lab check {step}"
    if reviewed:
        return f"Step {step} passes {where}, but is not clean: fix what is listed above, then go on"
    following = next((n for n in STEPS if n < step and is_untouched(text, n)), step + 1)
    if following not in STEPS:
        return f"Step {step} passes {where}. Next: ./lab score, then ./lab handin"
    title = load_rubric().titles[following]
    return f"Step {step} passes {where}. Next: step {following}, {title}; then ./lab check {following}"
