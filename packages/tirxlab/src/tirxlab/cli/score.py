"""`./lab score [S]`: the public rubric applied to your file, without the course's hidden sizes and checks."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from tirxlab.cli.check import compare_orders, planned, remember
from tirxlab.cli.common import (
    DeviceOption,
    JsonOption,
    KernelsOption,
    StepsArgument,
    kernels_file,
    output,
    parse_steps,
    print_json,
    source_text,
    usable_device,
)
from tirxlab.cli.report import ReportOption, check_report, from_outcomes, from_scores, write_report
from tirxlab.cli.runs import Outcome, run_jobs
from tirxlab.sandbox import Builder
from tirxlab.steps import is_untouched, may_have, read_text


@dataclass
class StepScore:
    """What one step earns."""

    step: int
    title: str
    points: int  # what the step is worth
    earned: int  # all or nothing; 0 unless every size is right (and, on a GPU, fast enough)
    right: str  # "4 of 4 sizes", or why nothing was run
    speed: str  # "4 of 4 sizes", "not measured" on the simulator
    problems: list[str] = field(default_factory=list)


def run(
    step: StepsArgument = "all",
    kernels: KernelsOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
    report_to: ReportOption = None,
) -> None:
    """Score your kernels by the public rubric: results and, on a GPU, speed. Exit 1 unless all is earned.

    Makes the runs of `check` without stopping at a failure; ./lab progress counts them, too.
    """
    check_report(report_to)
    path, steps = kernels_file(kernels), parse_steps(step)
    device, text = usable_device(device), source_text(path)
    written = [number for number in steps if not reason_not_to_run(text, number)]
    jobs = [job for number in written for job in planned(path, device, False, [], None, (), number)]
    outcomes = run_jobs(jobs, "scoring") if jobs else []
    for number in written:
        judged(path, [outcome for outcome in outcomes if outcome.step == number])
    scores = [score_step(path, text, number, outcomes, device) for number in steps]
    if report_to is not None:
        page = from_scores.score_page(path, scores, outcomes)
        from_outcomes.with_timelines(page, path, outcomes)
        write_report(report_to, page)
    earned, possible = sum(s.earned for s in scores), sum(s.points for s in scores)
    if json:
        print_json({"earned": earned, "possible": possible, "steps": [asdict(s) for s in scores]})
    else:
        output().print(table(scores))
        for score in scores:
            for problem in score.problems:
                output().print(f"step {score.step}: {problem}", markup=False)
        measured = any(score.speed == "not measured" for score in scores)
        remark = ", speed not measured: that needs a B200" if measured else ""
        output().print(f"{earned} of {possible} points{remark}; techniques are not checked", markup=False)
    raise typer.Exit(0 if earned == possible else 1)


def judged(path: Path, mine: list[Outcome]) -> None:
    """Compares the orders of each size of a step and records the result, as `check` does."""
    for count in range(1, len(mine) + 1):
        compare_orders(mine[:count])
    first = next((index for index, outcome in enumerate(mine) if not outcome.passed), len(mine))
    remember(path, mine[0].step, mine[: first + 1])


def reason_not_to_run(text: str, step: int) -> str:
    """Why a step is not worth running; "" if it is."""
    if not may_have(text, step):
        return "missing"
    return "not implemented yet" if is_untouched(text, step) else ""


def score_step(path, text: str, step: int, outcomes: list[Outcome], device: str) -> StepScore:
    """Full points if all of a step's runs are right and, on a GPU, fast enough; else none."""
    from tirxlab.rubric import load_rubric

    rubric = load_rubric()
    score = StepScore(step, rubric.titles[step], rubric.points[step], 0, reason_not_to_run(text, step), "-")
    if score.right:
        return score
    mine = [outcome for outcome in outcomes if outcome.step == step]
    sizes = {outcome.size for outcome in mine}
    good = sizes - {outcome.size for outcome in mine if not outcome.passed}
    score.right = f"{len(good)} of {len(sizes)} sizes"
    score.problems = [f"{o.size}, order {o.order}: {o.message}" for o in mine if not o.passed][:1]
    fast = True
    if good == sizes:
        score.speed, slow = speed(path, step, device)
        score.problems += slow
        fast = not slow
    score.earned = score.points if good == sizes and fast else 0
    return score


def speed(path, step: int, device: str) -> tuple[str, list[str]]:
    """(how many of the published sizes are fast enough, a message for each that is not)."""
    import utils
    from tirxlab.rubric import load_rubric

    if device == "sim":
        return "not measured", []
    sizes, slow = list(load_rubric().reference_ms[step]), []
    with Builder(read_text(path), path.name) as builder:
        for size in sizes:
            built = builder.build(step, size)
            try:
                if built.artifact is None:
                    raise AssertionError(built.message)
                utils.check_timing(built.artifact, step, *size, device=device)
            except AssertionError as error:
                slow.append(str(error))
    return f"{len(sizes) - len(slow)} of {len(sizes)} sizes", slow


def table(scores: list[StepScore]) -> Table:
    made = Table(box=None, pad_edge=False)
    for name in ("step", "", "right", "speed", "points"):
        made.add_column(name, justify="right" if name in ("step", "points") else "left")
    for score in scores:
        full = score.earned == score.points
        points = Text(f"{score.earned} / {score.points}", "green" if full else "red")
        made.add_row(str(score.step), score.title, score.right, score.speed, points)
    return made
