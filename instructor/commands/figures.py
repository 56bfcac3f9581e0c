"""`./lab figures`: redraw every figure of README, docs and slides, and build the slides' PDFs with typst.

`drawn()` maps each file to the function that makes its text from this project's runs, layouts and recorded
measurements, in about a minute on one core. A test compares it with the files that pages and slides show.
"""

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import ROOT, UserError, notes, output, write_file

SLIDES = ROOT / "slides"
INSTALL = "pip install typst (the project's extra `slides`)"
COMPARED = (4, 5, 7, 8)  # steps in the handbook's picture
COMPARED_SIZE = (512, 512, 512)
CHART_WIDTH = 96  # columns of the charts in the handbook
CHARTS = "docs/handbook.md"
# A place in CHARTS: the chart of `./lab trace S SIZE`, without its second line.
CHART = re.compile(r"<!-- figure: trace (\d+) (\d+) -->\n```text\n.*?```\n", re.DOTALL)
RECORDS = {  # a track's ladder at 4096, measured on an H200 -> the record that `./lab bench` left
    "docs/tracks/ampere.svg": "research/chip/results/track-ampere-bfloat16-nvidia-h200.json",
    "docs/tracks/hopper.svg": "research/chip/results/track-hopper-bfloat16-nvidia-h200.json",
}


def run(
    slides_only: Annotated[
        bool, typer.Option("--slides-only", help="keep the figures, build the PDFs")
    ] = False,
) -> None:
    """Draw all figures of README, docs/ and slides/ from runs and records, and build the slides' two PDFs."""
    try:
        import typst
    except ModuleNotFoundError:
        raise UserError(f"the slides are built with typst, which is not installed: {INSTALL}") from None
    start = time.perf_counter()
    if not slides_only:
        draw()
    for source in sorted(SLIDES.glob("lecture*.typ")):
        pdf = str(source.with_suffix(".pdf"))
        # Tags, which screen readers need, would double the file; the handout's PDFs have them.
        made = {"root": str(SLIDES), "ignore_system_fonts": True, "pdf_tags": False}
        typst.compile(str(source), output=pdf, **made)
        print(f"wrote {source.with_suffix('.pdf').relative_to(ROOT)}")
    output().print(f"{time.perf_counter() - start:.0f} s in all", markup=False)


def draw() -> None:
    """Write every figure."""
    makers = drawn()
    with notes().status("") as status:
        for name, make in makers.items():
            status.update(f"drawing {name}")
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            write_file(ROOT / name, make().encode())
    print(f"wrote {len(makers)} files")


def drawn() -> dict[str, Callable[[], str]]:
    """File (relative to the lab's folder) -> the function that makes its text."""
    from instructor.figures import figures, machine, pages

    makers: dict[str, Callable[[], str]] = {
        f"slides/figures/{name}": make for name, make in figures().items()
    }
    for step in pages.SIZES:
        makers[f"docs/steps/figures/step{step:02}.svg"] = partial(pages.page_picture, step)
    for name, record in RECORDS.items():
        makers[name] = partial(ladder, ROOT / record)
    makers |= {f"docs/figures/{name}": make for name, make in machine.FIGURES.items()}
    makers["docs/figures/compare.svg"] = compared
    makers[CHARTS] = lambda: with_charts((ROOT / CHARTS).read_text(encoding="utf-8"))
    return makers


def ladder(record: Path) -> str:
    """The plot of a track's rungs at 4096, beside cuBLAS in the same run."""
    from tirxlab.cli.tracks_plot import svg

    found = json.loads(record.read_text(encoding="utf-8"))
    rows = [
        row for row in found["rows"] if row["size"] == "4096" and (row["rung"] or row["kernel"] == "cublas")
    ]
    return svg(found | {"rows": rows})


def compared() -> str:
    """Timelines of steps on one axis, as `./lab compare` draws them."""
    from instructor.figures.structure import recorded
    from ptxsim.tracing import stack

    return still(stack([(f"step {step} at 512", recorded(step, COMPARED_SIZE)) for step in COMPARED]))


def still(picture: str) -> str:
    """A picture for a page, without the tooltips of its bars and arrows; bars of one colour are one path."""
    bare = re.sub(r"<title>.*?</title>", "", picture).replace("></path>", "/>")
    bare = re.sub(r"(?<=\d)'/>\n<path d='(?=M[\d. ]+h[\d.]+'/>)", "", bare)
    return re.sub(r"<g>\n(<path [^\n]*/>)\n</g>", r"\1", bare).replace("h0.", "h.")


def with_charts(text: str) -> str:
    """A page with its charts of `./lab trace` redrawn."""
    return CHART.sub(lambda place: chart_of(int(place[1]), int(place[2])), text)


def chart_of(step: int, size: int) -> str:
    """The text of one place that CHART matches, with its chart drawn."""
    from instructor.figures.structure import recorded
    from ptxsim.tracing import words
    from tirxlab.cli.trace_chart import chart

    timeline = recorded(step, (size,) * 3)
    head = f"step {step} at {size}: {words(timeline.ticks, 'ticks')}"
    lines = [head, *(line.plain.rstrip() for line in chart(timeline, CHART_WIDTH))]
    return "\n".join([f"<!-- figure: trace {step} {size} -->", "```text", *lines, "```", ""])
