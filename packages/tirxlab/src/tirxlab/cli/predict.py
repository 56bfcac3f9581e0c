"""`./lab predict S [SIZE]`: a step's predicted time on a chip that is not here, and what it waits for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ptxsim.tracing import Timeline
from tirxlab.artifact import Artifact
from tirxlab.cli import tracks
from tirxlab.cli.common import (
    JsonOption,
    KernelsOption,
    UserError,
    choose_written,
    kernels_file,
    notes,
    output,
    parse_step,
    print_json,
    shown,
)
from tirxlab.cli.forecast_line import COMPARABLE_FROM
from tirxlab.cli.report import ReportOption, check_report, from_forecast, write_report
from tirxlab.forecast import CHIPS, Forecast, NoForecast, timed
from tirxlab.pool import Failed, Pool
from tirxlab.rubric import DATA
from tirxlab.sandbox import Builder
from tirxlab.steps import StepError, parse_size, read_text, size_text

Size = tuple[int, int, int]
SIZES = {1: (128, 128, 64), 2: (128, 128, 1024), 3: (1024,) * 3}  # defaults of these steps; others: SIZE
SIZE: Size = (4096, 4096, 4096)
SPREAD = "the same kernel differs by 12 to 15 % between machines with this chip"
COURSE = f"the course's reference times, {shown(DATA / 'b200_reference_ms.csv')}"
LESSONS = {  # what bounds a kernel -> what to do about it
    "tensor core": "The tensor cores hardly ever wait: only fewer or cheaper products would make it faster.",
    "load latency": "It waits for loads to arrive: start them earlier, with more stages in flight.",
    "L2 / HBM": "It waits for L2 or HBM: larger tiles, multicast or a better order of tiles read less; "
    "more stages hide more.",
    "epilogue": "It waits for results to be written back: overlap that with the next tile's MMAs.",
    "barriers": "It waits for barriers and commits: let producer and consumer run further apart.",
    "instructions": "Its threads' own instructions take the time: let TMA and the tensor core do more.",
    "launch": "Most of it is the launch itself: a larger problem, or fewer launches, would show the kernel.",
}
ChipOption = Annotated[str, typer.Option("--chip", metavar="CHIP", help="b200 or h200")]


def run(
    step: Annotated[str, typer.Argument(metavar="S", help="a step 1..10, hopper or ampere")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNG] [SIZE]", help="RUNG of a track; 1024 or MxNxK")
    ] = None,
    chip: ChipOption = "",
    kernels: KernelsOption = None,
    json: JsonOption = False,
    report_to: ReportOption = None,
) -> None:
    """Predict the time of a step on a B200, or of a track's rung on an H200, and say what bounds it.

    One cluster is run on the simulator and recorded; the record is replayed with the chip's measured costs
    (packages/ptxsim/docs/timing.md). A prediction is not a measurement, and no points depend on it.
    """
    if chip not in ("", *CHIPS):
        raise UserError(f"--chip takes {' or '.join(CHIPS)} (got {chip!r})")
    check_report(report_to)
    try:
        if tracks.is_track(step):
            chip = chip or "h200"
            title, size, (found, timeline), path = of_track(step, words or [], chip, kernels)
            published = None
        else:
            chip = chip or "b200"
            title, size, (found, timeline), published, path = of_step(step, words or [], chip, kernels)
    except NoForecast as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if report_to is not None:
        command = " ".join(["./lab predict", step, *(words or [])])
        about = {"published": published, "chip": chip, "source": read_text(path)}
        about["lesson"] = LESSONS[found.bound]
        about["steps"] = [] if tracks.is_track(step) else [int(step)]
        page = from_forecast.forecast_page(command, title, size, found, timeline, about)
        write_report(report_to, page)
    if json:
        print_json(
            {"what": title, "size": size_text(size), "predicted": asdict(found), "published_ms": published}
        )
    else:
        show(title, size, found, published)


def of_step(text: str, words: list[str], chip: str, kernels: Path | None):
    """(title, size, (Forecast, Timeline), published ms or None, file) of a step of the kernels file."""
    from tirxlab.rubric import load_rubric

    if len(words) > 1:
        raise UserError(f"a step takes one SIZE, not {' '.join(words)!r}")
    number, path = parse_step(text), kernels_file(kernels)
    choose_written(path, [number])
    size = parse_size(words[0]) if words else SIZES.get(number, SIZE)
    found = foreseen(path, number, size, chip)
    rubric = load_rubric()
    comparable = chip == "b200" and number >= COMPARABLE_FROM
    published = rubric.reference_ms[number].get(size) if comparable else None
    return f"step {number}, {rubric.titles[number]}", size, found, published, path


def foreseen(path: Path, step: int, size: Size, chip: str) -> tuple[Forecast, Timeline]:
    """Builds a step in the confined child and replays it in a process of its own, as check does."""
    with replayer() as forecast:
        with Builder(read_text(path), path.name) as builder:
            built = builder.build(step, size)
        if built.kind == "misfit":
            raise UserError(built.message)
        if built.kind == "file":
            raise StepError(built.message)
        if built.artifact is None:
            raise NoForecast(built.message)
        return forecast(built.artifact, chip, 2.0 * size[0] * size[1] * size[2])


@contextmanager
def replayer() -> Iterator[Callable[[Artifact, str, float], tuple[Forecast, Timeline]]]:
    """`apart`, in a process that imports the simulator from now on, while the caller builds the kernel."""
    with Pool(1) as pool:
        pool.start(prepare)
        yield partial(apart, pool)


def prepare() -> None:
    """Loads what `attempt` will need. Runs in a process of the pool."""
    import ptxsim
    import ptxsim.forecasting
    import tirxlab.devices.sim  # noqa: F401

    ptxsim.warm_up(checks=False)


def apart(pool: Pool, artifact: Artifact, chip: str, flops: float) -> tuple[Forecast, Timeline]:
    """The forecast and its timeline, made in a separate process, which may be killed; NoForecast if none."""
    pool.submit("forecast", attempt, artifact, chip, flops)
    ((_, found),) = pool.results()
    if isinstance(found, Failed):
        if found.memory:
            raise MemoryError(found.message)
        raise NoForecast(f"the replay {found.message}")
    if isinstance(found, str):
        raise NoForecast(found)
    return found


def attempt(artifact: Artifact, chip: str, flops: float) -> tuple[Forecast, Timeline] | str:
    """The forecast and its timeline, or why there is none. Runs in a process of the pool."""
    try:
        return timed(artifact, chip, flops)
    except (NoForecast, ValueError) as error:
        return str(error)


def of_track(name: str, words: list[str], chip: str, kernels: Path | None):
    """(title, size, (Forecast, Timeline), file) of a rung of a track; the last rung if none is named."""
    if len(words) > 2:
        raise UserError(f"a track takes RUNG and SIZE, not {' '.join(words)!r}")
    track = tracks.track_of(name)
    rung = tracks.one_rung(track, words[0] if words else None)
    size = parse_size(words[1]) if len(words) > 1 else SIZE
    path = tracks.source(track, rung, kernels)
    with replayer() as forecast:
        artifact = tracks.build(rung, path, size).artifact
        found = forecast(artifact, chip, 2.0 * size[0] * size[1] * size[2])
    return f"{track.title} rung {rung.number}, {rung.title}", size, found, path


def show(title: str, size: Size, forecast: Forecast, published: float | None) -> None:
    """Prints the prediction in a few lines."""
    say = output().print
    say(f"{title}, at {size_text(size)} on an {forecast.chip}: predicted, not measured", markup=False)
    say(f"  {forecast.ms:.4g} ms, {forecast.tflops:.4g} TFLOP/s", markup=False)
    if published:
        say(
            f"  published: {published:g} ms ({COURSE}); predicted / published {forecast.ms / published:.2f}",
            markup=False,
        )
    say(
        f"  tensor cores multiply {forecast.tensor_busy:.0%} of the time, at {forecast.ghz:.2f} GHz",
        markup=False,
    )
    parts = ", ".join(f"{kind} {share:.0%}" for kind, share in forecast.spent.items() if share >= 0.005)
    say(f"  bound by: {forecast.bound} (critical path: {parts})", markup=False)
    say(f"  {forecast.sms} SMs work, in {forecast.waves} wave{'s' * (forecast.waves != 1)}", markup=False)
    for note in forecast.notes:
        say(f"  {note}", markup=False)
    say(LESSONS[forecast.bound], markup=False)
    notes().print(f"predictions come from a model (packages/ptxsim/docs/timing.md); {SPREAD}", markup=False)
