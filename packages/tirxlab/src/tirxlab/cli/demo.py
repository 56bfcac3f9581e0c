"""`./lab demo`: the reference kernels on the simulator, at every size that it runs by default."""

import sys
import time

import typer

from tirxlab.cli import outcomes as outcome_view
from tirxlab.cli.common import (
    REFERENCE,
    DeviceOption,
    JsonOption,
    KernelsOption,
    OrderOption,
    kernels_file,
    notes,
    output,
    parse_order,
    print_json,
    shown,
    source_text,
    usable_device,
)
from tirxlab.cli.report import ReportOption, check_report, from_outcomes, write_report
from tirxlab.cli.runs import Job, quick_or_all, run_jobs
from tirxlab.steps import STEPS, is_untouched, sections


def run(
    kernels: KernelsOption = None,
    device: DeviceOption = "sim",
    order: OrderOption = "program",
    json: JsonOption = False,
    report_to: ReportOption = None,
) -> None:
    """Run the reference kernels (in a handout: yours) on the simulator and show what came of it."""
    check_report(report_to)
    path, chosen = kernels_file(kernels, reference=True), parse_order(order)
    device, text = usable_device(device), source_text(path)
    steps = [step for step in STEPS if step in sections(text) and not is_untouched(text, step)]
    if not steps:
        notes().print(f"{path.name} has no finished step yet; write step 1, then ./lab check 1", markup=False)
        raise typer.Exit(1)
    jobs = [Job(path, step, size, device, chosen) for step in steps for size in quick_or_all(step, device)]
    whose = "the solutions" if path == REFERENCE else "your kernels"
    print(f"running {whose} in {shown(path)}: {len(jobs)} runs on {device}", file=sys.stderr)
    start = time.perf_counter()
    outcomes = run_jobs(jobs, "reference kernels")
    seconds = time.perf_counter() - start
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if report_to is not None:
        page = from_outcomes.outcome_page("Demo", "./lab demo", path, outcomes, report_to)
        from_outcomes.with_timelines(page, path, outcomes)
        write_report(report_to, page)
    if json:
        print_json({"seconds": seconds, "runs": outcome_view.plain(outcomes)})
        raise typer.Exit(1 if failed else 0)
    output().print(outcome_view.table(outcomes))
    outcome_view.details_once(failed)
    good = f"{len(outcomes) - len(failed)} of {len(outcomes)} runs right"
    output().print(
        f"{good}, {seconds:.0f} s in all ({shown(path)}, device {outcomes[0].device})", markup=False
    )
    raise typer.Exit(1 if failed else 0)
