"""`./lab demo`: the reference kernels on the simulator, at every size that runs there by default.

In a handout with no step written: a finished copy kernel, and the same kernel with a mistake and its finding.
"""

import sys
import time
from pathlib import Path

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
    """Run the reference kernels (in a handout: yours) on the simulator and show the results."""
    check_report(report_to)
    path, chosen = kernels_file(kernels, reference=True), parse_order(order)
    device, text = usable_device(device), source_text(path)
    steps = [step for step in STEPS if step in sections(text) and not is_untouched(text, step)]
    if not steps and device == "sim" and kernels is None:
        raise typer.Exit(shown_kernels(json))
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
        page = from_outcomes.outcome_page("Demo", "./lab demo", path, outcomes)
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


def shown_kernels(json: bool) -> int:
    """Run the kernel of data/demo_kernels.py as it should be and with a mistake; 0 if both do as expected."""
    import numpy as np

    import utils
    from tirxlab.data import demo_kernels
    from tirxlab.devices import sim
    from tirxlab.toolchain.build import build

    X = np.arange(256 * demo_kernels.COLS, dtype=np.float16).reshape(256, demo_kernels.COLS)
    found = []
    for bytes_ in (demo_kernels.TILE_BYTES, demo_kernels.TILE_BYTES * 2):
        artifact, Y = build(demo_kernels.copy_rows(256, bytes_)), np.zeros_like(X)
        found.append((sim.run(artifact, [X, Y]), artifact, bool((X == Y).all())))
    (good, _, copied), (bad, artifact, _) = found
    right = good.verdict == "clean" and copied and bad.verdict == "error"
    if json:
        print_json({"right": right, "verdicts": [good.verdict, bad.verdict]})
        return 0 if right else 1
    say = output().print
    say(f"a copy of 256 rows by TMA, {shown(Path(demo_kernels.__file__))}: {good.verdict}, all rows copied")
    say(f"the same, told to expect twice the bytes that TMA brings: {bad.verdict}", markup=False)
    say("\n".join("  " + line for line in utils.report(bad, artifact).splitlines()), markup=False)
    say("Next: read docs/steps/step01.md, write step 1 in gemm_kernels.py, then ./lab check 1", markup=False)
    return 0 if right else 1
