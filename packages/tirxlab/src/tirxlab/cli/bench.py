"""`./lab bench [S]`: speed on a real GPU beside the published B200 times. The simulator has no clock."""

import typer
from rich.table import Table

from tirxlab.cli import tracks, tracks_bench
from tirxlab.cli.common import (
    DeviceOption,
    JsonOption,
    KernelsOption,
    SizesOption,
    StepsArgument,
    UserError,
    choose_written,
    fold,
    kernels_file,
    left_out,
    output,
    parse_steps,
    print_json,
    usable_device,
)
from tirxlab.sandbox import artifact_of
from tirxlab.steps import StepError, parse_size, size_text


def run(
    step: StepsArgument = "all",
    rung: tracks.RungArgument = None,
    size: SizesOption = None,
    kernels: KernelsOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
    against: tracks_bench.AgainstOption = "cublas",
    dtype: tracks_bench.DtypeOption = None,
    rounds: tracks_bench.RoundsOption = 5,
    out: tracks_bench.OutOption = None,
    save: tracks_bench.SaveOption = None,
    artifacts: tracks_bench.ArtifactsOption = None,
) -> None:
    """Measure steps on a GPU and compare with the published B200 times. On the simulator: not measured.

    S may be hopper or ampere, with a RUNG: then sustained speed beside cuBLAS's in the same run, with the
    options from --against on; the table and --out (.svg, .json) give medians, spread, true clock and power.
    """
    if tracks.is_track(step):
        plan = tracks_bench.Plan(
            step, rung, size or [], kernels, against, dtype, rounds, out, save, artifacts
        )
        return tracks_bench.run(plan, json)
    tracks.no_rung(rung)
    import utils
    from tirxlab.rubric import load_rubric

    path, asked, sizes = kernels_file(kernels), parse_steps(step), [parse_size(text) for text in size or []]
    steps, left = choose_written(path, asked)
    if usable_device(device) == "sim":
        if json:
            print_json({"device": "sim", "measured": False, "rows": [], "not_run": left})
        else:
            print("speed not measured: the simulator has no clock; a B200 is needed (here, or run_modal.py)")
        raise typer.Exit(0)
    rows = []
    for number in steps:
        published = load_rubric().reference_ms[number]
        for shape in sizes or published:
            ms, tflops = utils.benchmark(built(path, number, shape), *shape, device=device)
            rows.append([number, size_text(shape), ms, tflops, published.get(shape)])
    if json:
        names = ("step", "size", "ms", "tflops", "reference_ms")
        print_json(
            {"measured": True, "rows": [dict(zip(names, row, strict=True)) for row in rows], "not_run": left}
        )
        return
    made = Table(
        "step", "size", "ms", "TFLOP/s", "reference ms", "reference / yours", box=None, pad_edge=False
    )
    for number, shape, ms, tflops, reference in rows:
        ratio = f"{reference / ms:.2f}" if reference else "-"
        made.add_row(str(number), shape, f"{ms:.4f}", f"{tflops:.0f}", str(reference or "-"), ratio)
    output().print(made)
    if left:
        output().print(left_out(left), markup=False)


def built(path, step: int, size: tuple[int, int, int]):
    """A step's artifact, built in a confined child; UserError if the build fails."""
    try:
        return artifact_of(path, step, size)
    except StepError:
        raise
    except ValueError as error:
        raise UserError(f"step {step} at {size_text(size)}: {fold(str(error))}") from None
