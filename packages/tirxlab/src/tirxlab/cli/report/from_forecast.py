"""The page of `predict`: a predicted time, what bounds it, a roofline, and the timeline in nanoseconds."""

from __future__ import annotations

from tirxlab.cli.common import ROOT
from tirxlab.cli.report.model import Cell, Grid, Link, Page, Point, Roofline
from tirxlab.cli.report.reading import step_links
from tirxlab.cli.report.timelines import run_of
from tirxlab.steps import size_text
from tirxlab.version import lab_version

ELEMENT = 2  # bytes of A, B and D: float16
MODEL = "packages/ptxsim/docs/timing.md"


def forecast_page(command: str, title: str, size: tuple, forecast, timeline, about: dict) -> Page:
    """The page of a Forecast and the Timeline of its replayed cluster. `about` has the keys published (ms or
    None), chip, source, steps and lesson (what to do about the bound).
    """
    published, (m, n, k) = about["published"], size
    lead = (
        f"{forecast.ms:.4g} ms, {forecast.tflops:,.0f} TFLOP/s on an {forecast.chip}: predicted, not measured"
    )
    rows = [[Cell(kind), Cell(f"{share:.0%}", number=True)] for kind, share in forecast.spent.items()]
    grids = [Grid("Forecast", ["", ""], _facts(forecast, published, about["lesson"]))]
    grids.append(Grid("Critical path: where the time goes", ["", "share"], rows))
    links = step_links(about["steps"])
    links += [Link("How times are predicted", MODEL)] if (ROOT / MODEL).exists() else []
    flops, moved = 2.0 * m * n * k, ELEMENT * (m * k + n * k + m * n)
    known = flops / published / 1e9 if published else None
    name = title.split(",")[0]
    point = Point(name, flops / moved, forecast.tflops, known)
    page = Page(
        f"Forecast of {title} at {size_text(size)}",
        "plain",
        lead,
        facts=[("command", command), ("chip", forecast.chip), ("lab", lab_version())],
        grids=grids,
        runs=[run_of(timeline, f"{name} at {size_text(size)}, the first cluster", about["source"])],
        notes=[*forecast.notes, *(f"Timeline: {note}." for note in timeline.notes)],
        links=links,
    )
    page.roofline = roofline(about["chip"], forecast, point)
    return page


def _facts(forecast, published: float | None, lesson: str) -> list[list[Cell]]:
    facts = {
        "time": f"{forecast.ms:.4g} ms",
        "speed": f"{forecast.tflops:,.1f} TFLOP/s",
        "bound by": forecast.bound,
        "tensor cores multiply": f"{forecast.tensor_busy:.0%} of the time",
        "clock": f"{forecast.ghz:.2f} GHz",
        "SMs with work": f"{forecast.sms}, in {forecast.waves} wave{'s' * (forecast.waves != 1)}",
    }
    if published:
        facts["published"] = f"{published:g} ms; predicted / published {forecast.ms / published:.2f}"
    facts["what to do about it"] = lesson
    return [[Cell(name), Cell(value)] for name, value in facts.items()]


def roofline(chip: str, forecast, point: Point) -> Roofline:
    """The roofline, with the model's constants as ceilings: MMA rate at the forecast's clock, HBM rate."""
    from ptxsim.forecasting import chip as chip_of

    constants = chip_of(chip)
    peak = 2 * constants.mma_macs * constants.sms * forecast.ghz / 1e3
    remark = "Bytes: A and B read once and D written once."
    terabytes = round(constants.hbm_rate / 1e12, 2)
    return Roofline(f"{forecast.chip} at {forecast.ghz:.2f} GHz", peak, terabytes, [point], remark)
