"""The slides: this project draws every figure that they show, and no page overflows."""

import json
import re
from pathlib import Path

import pytest

from instructor.figures import charts, figures, layouts, pages

ROOT = Path(__file__).resolve().parents[3]
SLIDES = ROOT / "slides"
LECTURES = sorted(SLIDES.glob("lecture*.typ"))


def headings(source: Path) -> int:
    return len(re.findall(r"^= ", source.read_text(encoding="utf-8"), re.MULTILINE))


def test_two_lectures_of_at_least_25_pages_together():
    assert len(LECTURES) == 2
    assert sum(1 + headings(source) for source in LECTURES) >= 25


def test_the_figures_on_disk_are_those_that_are_drawn_and_shown():
    drawn = set(figures())
    text = "".join(source.read_text(encoding="utf-8") for source in LECTURES)
    text += (SLIDES / "theme.typ").read_text(encoding="utf-8")
    shown = set(re.findall(r'(?:fig|said)\("([\w.-]+)"', text)) | set(
        re.findall(r'"figures/([\w.-]+)"', text)
    )
    assert {path.name for path in (SLIDES / "figures").iterdir()} == drawn == shown


@pytest.mark.parametrize("name", ["swizzle.svg", "tmem.svg", "pair.svg", "published.svg"])
def test_figures_that_need_no_run_are_up_to_date(name):
    make = (layouts.FIGURES | charts.FIGURES)[name]
    assert (SLIDES / "figures" / name).read_text(encoding="utf-8") == make()


def test_published_speeds_are_those_of_the_table():
    assert charts.published(4096)[10] == pytest.approx(2 * 4096**3 / 0.107e-3 / 1e12)


@pytest.mark.parametrize("step", [1, 4])
def test_the_pictures_on_the_step_pages_are_up_to_date(step):
    file = ROOT / "docs" / "steps" / "figures" / f"step{step:02}.svg"
    assert file.read_text(encoding="utf-8") == pages.page_picture(step), "run ./lab figures"


@pytest.mark.parametrize("source", LECTURES, ids=lambda path: path.stem)
def test_no_page_runs_over_or_is_half_empty_or_too_small(source):
    """theme.typ sets each page in the largest size that fits, and records its choice as metadata."""
    typst = pytest.importorskip("typst", reason="needs the extra `slides`")
    made = typst.compile(str(source), root=str(SLIDES), format="png", ppi=20, ignore_system_fonts=True)
    assert len(made) == 1 + headings(source)
    asked = {"field": "value", "root": str(SLIDES), "ignore_system_fonts": True}
    pages_ = json.loads(typst.query(str(source), "<fit>", **asked))
    assert len(pages_) == headings(source)
    largest = max(page["size"] for page in pages_)
    bad = [
        (number, page)
        for number, page in enumerate(pages_, 2)
        if page["size"] < 16 or page["full"] > 1 or (page["full"] < 0.75 and page["size"] < largest)
    ]
    assert bad == []


def code_on(source: Path) -> list[str]:
    """The Python blocks of a lecture, and text in backquotes that calls something of Tx."""
    text = source.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return blocks + [code for code in re.findall(r"`([^`\n]+)`", rest) if "Tx." in code]


@pytest.mark.parametrize("source", LECTURES, ids=lambda path: path.stem)
def test_code_on_slides_names_what_the_language_has(source):
    """Each dotted name of Tx is documented; blocks are Python once their omissions are filled in."""
    from tirxlab.dialect.docs import documented

    known = documented()
    for code in code_on(source):
        for name in re.findall(r"\bTx(?:\.\w+)+", code):
            assert name in known, f"{source.name}: {name} in `{code}`"
