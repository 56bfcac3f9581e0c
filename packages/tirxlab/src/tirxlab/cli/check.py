"""`./lab check S`: build and run a step and explain what is wrong with it; to be run after each change."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli import outcomes as outcome_view
from tirxlab.cli import save_loop, tracks
from tirxlab.cli.common import (
    REFERENCE,
    DeviceOption,
    JsonOption,
    KernelsOption,
    OneOrderOption,
    SizesOption,
    UserError,
    choose_written,
    kernels_file,
    left_out,
    output,
    parse_order,
    parse_steps,
    print_json,
    source_text,
    usable_device,
)
from tirxlab.cli.formats import check_format, rendered
from tirxlab.cli.report import ReportOption, check_report
from tirxlab.cli.runs import Job, Outcome, Progressing, Runner, quick_or_all
from tirxlab.cli.trials import explain, may_help, without_hint
from tirxlab.steps import is_untouched, parse_size, read_text, size_text, todos


def run(
    step: Annotated[
        str | None, typer.Argument(metavar="[S]", help="steps as 7, 1,3 or all [the first that is not clean]")
    ] = None,
    rung: tracks.RungArgument = None,
    size: SizesOption = None,
    orders: Annotated[
        str,
        typer.Option("--orders", metavar="N", help="N more orders, seeds 0 .. N-1; or all that can differ"),
    ] = "0",
    full: Annotated[bool, typer.Option("--full", help="sizes over 1024 too, also on sim")] = False,
    kernels: KernelsOption = None,
    device: DeviceOption = None,
    order: OneOrderOption = None,
    json: JsonOption = False,
    report_to: ReportOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="run again whenever the file is saved")] = False,
    trials: Annotated[
        bool, typer.Option(help="try small changes of a step that fails", envvar="LAB_TRIALS")
    ] = True,
    as_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, gcc (editors), github or sarif")
    ] = "text",
) -> None:
    """Build and run a step, smallest size first, and show what is wrong. Stops at the first failure.

    Without S: the first step that is not clean yet; earlier steps are not run again.

    On the simulator uneven sizes run in two orders: asynchronous work completes as early, or as late, as it
    may. With several steps, those that are written are run and the others listed (exit status 1).
    S may be hopper or ampere, with a RUNG of that track's ladder.
    """
    check_report(report_to, step or "")
    machine = check_format(as_) != "text"
    named = step
    if step is None and not watch:
        step = unfinished(kernels_file(kernels))
        if step is None:
            return
    chosen = None if order is None else parse_order(order)
    if step is not None and tracks.is_track(step):
        return tracks.check(step, rung, size or [], kernels, chosen, json)
    tracks.no_rung(rung)
    path, asked = kernels_file(kernels), parse_steps("all" if step is None else step)
    sizes = [parse_size(text) for text in size or []]
    jobs_of = partial(planned, path, usable_device(device), full, sizes, chosen, further_orders(orders))
    if watch:
        return save_loop.watch(path, None if named is None else asked[0], jobs_of)
    steps, left = choose_written(path, asked)
    usual, quiet = not size and chosen is None, json or machine
    outcomes: list[Outcome] = []
    with Runner(path) as runner:
        for number in steps:
            jobs = jobs_of(number)
            done = run_until_failure(runner, jobs, bool(sizes), trials or number != steps[-1])
            outcomes += done
            after_step(path, done, jobs, runner, usual, quiet, trials)
            if not done[-1].passed:
                break
    if report_to is not None:
        write_page(report_to, step or "all", path, outcomes, left)
    passed = all(outcome.passed for outcome in outcomes) and not left
    if json:
        print_json({"passed": passed, "runs": outcome_view.plain(outcomes), "not_run": left})
    elif machine:
        print(rendered(as_, outcomes, path))
    else:
        part = [*(size or []), *([f"order {order}"] if order is not None else [])]
        say_end(path, outcomes, left, ", ".join(part))
    raise typer.Exit(0 if passed else 1)


def planned(
    path: Path, device: str, full: bool, sizes: list, chosen, further: tuple, number: int
) -> list[Job]:
    """The runs of step `number`: of `sizes` or the step's own; in the order `chosen` or those it needs."""
    return [
        Job(path, number, shape, device, each)
        for shape in sizes or quick_or_all(number, device, full)
        for each in (*orders_of(number, shape, device, chosen), *further)
    ]


def after_step(
    path: Path, done: list[Outcome], jobs: list[Job], runner: Runner, usual: bool, quiet: bool, trials: bool
) -> None:
    """Records a step's result if these were its `usual` runs, shows it unless `quiet`, and tries repairs."""
    if usual:
        remember(path, done[-1].step, done)
    trials = trials and may_help(done[-1]) and not todos(read_text(path), done[-1].step)
    hint = without_hint(done[-1]) if trials else ""
    if not quiet:
        report(path, done, len(jobs), runner)
    if trials:
        explain(runner, jobs, done, hint, quiet)


def say_end(path: Path, outcomes: list[Outcome], left: dict[int, str], part: str) -> None:
    """Prints which steps were not run, and what to do next. `part`: the size or order that was asked for."""
    if left:
        output().print(left_out(left), markup=False)
    if outcomes[-1].passed:
        output().print(outcome_view.what_next(read_text(path), outcomes, part), markup=False)


def unfinished(path: Path) -> str | None:
    """The first step that is not known to be clean; if none can be run, prints what to do: None."""
    from tirxlab.cli.record import first_unfinished, load

    text = source_text(path)
    step = first_unfinished(load(path), text)
    if step is None:
        output().print("All ten steps are clean. Next: ./lab score, then ./lab handin", markup=False)
    elif is_untouched(text, step):
        lines = ", ".join(map(str, todos(text, step)))
        output().print(
            f"Step {step} is next: read docs/steps/step{step:02}.md, fill in its TODOs ({path.name}, line "
            f"{lines}), then ./lab check",
            markup=False,
        )
        return None
    return None if step is None else str(step)


def remember(path: Path, step: int, done: list[Outcome]) -> None:
    """Stores the results of a step's own runs, up to the first failure: for `progress`, `hint`, `check`."""
    from tirxlab.cli.record import load

    if path == REFERENCE:
        return
    record = load(path)
    record.note(step, read_text(path), done)
    record.save()


def forecast_lines(runner: Runner, done: list[Outcome]) -> None:
    """Prints one line: the predicted time of the largest size that passed and has a published time."""
    from tirxlab.cli.forecast_line import COMPARABLE_FROM, told_in_a_line
    from tirxlab.rubric import load_rubric

    last, published = done[-1], load_rubric().reference_ms[done[-1].step]
    sizes = [size for size in published if size_text(size) in {o.size for o in done}]
    if not last.passed or last.device != "sim" or not sizes or last.step < COMPARABLE_FROM:
        return
    size = max(sizes, key=lambda s: s[0] * s[1] * s[2])
    built = runner.made.get((last.step, size))
    if built is not None and built.artifact is not None:
        output().print(told_in_a_line(built.artifact, size, published[size], runner.pool), markup=False)


def write_page(target: Path, step: str, path: Path, outcomes: list[Outcome], left: dict[int, str]) -> None:
    """Writes the page of --report."""
    from tirxlab.cli.report import from_outcomes, write_report

    title = f"Check of step {step}" if step.isdigit() else f"Check of steps {step}"
    page = from_outcomes.outcome_page(title, f"./lab check {step}", path, outcomes)
    page.notes += [left_out(left)] if left else []
    from_outcomes.with_timelines(page, path, outcomes)
    write_report(target, page)


def further_orders(text: str) -> tuple:
    """The orders that --orders adds to the usual ones."""
    if text == "all":
        return (text,)
    if not text.isdigit():
        raise UserError("--orders takes the number of further orders to try, 0 or more, or all")
    return tuple(range(int(text)))


def orders_of(step: int, size: tuple[int, int, int], device: str, chosen: str | int | None) -> tuple:
    """The order asked for, else the rubric's for this size; `program` on a GPU, which has its own order."""
    from tirxlab.rubric import load_rubric

    if chosen is not None:
        return (chosen,)
    return load_rubric().orders(step, size) if device == "sim" else ("program",)


def run_until_failure(runner: Runner, jobs: list[Job], named: bool, more: bool) -> list[Outcome]:
    """Run jobs up to the first that fails. All orders of one size must give equal bytes.

    UserError if a size that the user has `named` does not fit the step. Unless `more` steps are to be built,
    the builder shuts down while the results are printed.
    """
    done: list[Outcome] = []
    with Progressing(f"step {jobs[0].step}", jobs, log=False) as progress:
        for job in jobs:
            done += [outcome for _, outcome in runner.run([job])]
            progress.done(job)
            if named and done[-1].misfit:
                raise UserError(done[-1].message)
            compare_orders(done)
            if not done[-1].passed:
                break
    if not more:
        runner.builder.stop()
    return done


def compare_orders(done: list[Outcome]) -> None:
    """Marks the last run as wrong if another order of the same size gave different bytes."""
    same_size = [other for other in done if other.size == done[-1].size and other.digest]
    if done[-1].passed and len({other.digest for other in same_size}) > 1:
        done[-1].right = False
        done[-1].message = f"the result depends on the order: {same_size[0].order} gave different numbers"


def report(path: Path, done: list[Outcome], planned: int, runner: Runner) -> None:
    """Prints the table, each distinct message once, TODOs left, how many runs were not made, the forecast."""
    output().print(outcome_view.table(done))
    outcome_view.details_once(done)
    step = done[-1].step
    if left := todos(read_text(path), step):
        lines = ", ".join(map(str, left))
        passed = "if it is done, delete this comment: the grade also asks for the step's technique"
        what = passed if done[-1].passed else "fill it in first"
        output().print(f"step {step} still has a TODO: {path.name}, line {lines}; {what}", markup=False)
    if not done[-1].passed and len(done) < planned:
        output().print(f"stopped here; {planned - len(done)} more runs were not made", markup=False)
    forecast_lines(runner, done)
