"""`./lab progress`: where you stand, from the results that `check` and `score` recorded; nothing is run."""

from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from tirxlab.cli.common import JsonOption, KernelsOption, kernels_file, output, print_json, source_text
from tirxlab.cli.record import Attempts, digest_of, first_unfinished, load
from tirxlab.rubric import load_rubric
from tirxlab.steps import STEPS, is_untouched

COLOURS = {"clean": "green", "to review": "yellow", "fails": "red"}


def run(kernels: KernelsOption = None, json: JsonOption = False) -> None:
    """Show the ten steps: the result of each one's last check, how many attempts it took, its points."""
    path, rubric = kernels_file(kernels), load_rubric()
    text, record = source_text(path), load(path)
    states = {step: state_of(record.steps.get(step), text, step) for step in STEPS}
    points = sum(rubric.points[step] for step, state in states.items() if state in ("clean", "to review"))
    if json:
        steps = {n: asdict(record.steps.get(n, Attempts())) | {"state": states[n]} for n in STEPS}
        print_json({"points": points, "steps": steps})
        return
    made = Table(box=None, pad_edge=False)
    for name in ("step", "", "state", "attempts", "points"):
        made.add_column(name, justify="right" if name in ("step", "attempts", "points") else "left")
    for step, state in states.items():
        count = record.steps.get(step, Attempts()).count
        earned = f"{rubric.points[step] if state in ('clean', 'to review') else 0} / {rubric.points[step]}"
        shown = Text(state, COLOURS.get(state, ""))
        made.add_row(str(step), rubric.titles[step], shown, str(count or ""), earned)
    output().print(made)
    output().print(f"{points} of {sum(rubric.points.values())} points by these checks", markup=False)
    following = first_unfinished(record, text)
    if following is None:
        output().print("Next: ./lab score, then ./lab handin", markup=False)
    else:
        output().print(
            f"Next: step {following}, docs/steps/step{following:02}.md; then ./lab check", markup=False
        )


def state_of(attempts: Attempts | None, text: str, step: int) -> str:
    """The state of a step in one word or two."""
    if is_untouched(text, step):
        return "not begun"
    if attempts is None or not attempts.state:
        return "not checked"
    return attempts.state_of(digest_of(text, step)) or "changed since"
