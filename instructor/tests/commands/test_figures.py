"""./lab figures makes exactly the figures that README, docs and slides show."""

import re
import xml.etree.ElementTree as xml

import pytest

from instructor.commands import figures
from tirxlab.cli.common import ROOT

IMAGES = (".svg", ".png", ".jpg", ".jpeg", ".gif")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "tracks").rglob("*.md"))]


def shown_in_pages() -> set[str]:
    """Files of the lab that a page shows as an image, in Markdown or HTML."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"!\[[^\]]*\]\(([^)\s]+)", text) + re.findall(
            r"<img[^>]+src=[\"']([^\"']+)", text
        ):
            found.add((page.parent / name).resolve().relative_to(ROOT).as_posix())
    return found


def shown_in_slides() -> set[str]:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "slides").glob("*.typ"))
    names = re.findall(r'(?:fig|said)\("([\w.-]+)"', text) + re.findall(r'"figures/([\w.-]+)"', text)
    return {f"slides/figures/{name}" for name in names}


def test_every_figure_that_is_shown_is_drawn_and_no_other():
    assert set(figures.drawn()) - {figures.CHARTS} == shown_in_pages() | shown_in_slides()


def test_no_other_image_lies_in_docs_or_slides():
    folders = (ROOT / "docs", ROOT / "slides")
    images = {path for folder in folders for path in folder.rglob("*") if path.suffix in IMAGES}
    assert {path.relative_to(ROOT).as_posix() for path in images} <= set(figures.drawn())


@pytest.mark.parametrize("name", [*figures.RECORDS, "docs/figures/compare.svg", figures.CHARTS])
def test_figures_of_pages_are_up_to_date(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert figures.drawn()[name]() == text, "run ./lab figures"
    if name.endswith(".svg"):
        xml.fromstring(text)


def test_the_handbook_has_the_charts_of_two_steps():
    text = (ROOT / figures.CHARTS).read_text(encoding="utf-8")
    places = figures.CHART.findall(text)
    assert places == [("4", "512"), ("5", "512")] and text.count("<!-- figure: ") == 2
    assert all(
        len(line) <= figures.CHART_WIDTH
        for chart in figures.CHART.finditer(text)
        for line in chart[0].splitlines()
    )
