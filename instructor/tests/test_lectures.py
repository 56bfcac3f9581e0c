"""Speaker notes: one section for each slide, answers for each exercise, and minutes that add up."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def sections(number: int) -> dict[str, tuple[int, str]]:
    """Heading -> (minutes, text) of the notes of a lecture."""
    text = (ROOT / "instructor" / "lectures" / f"lecture{number}.md").read_text(encoding="utf-8")
    found = re.findall(r"^## ([^\n]+) \((\d+)\)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {title: (int(minutes), body) for title, minutes, body in found}


def slides(number: int) -> dict[str, str]:
    """Heading -> source of each page."""
    source = (ROOT / "slides" / f"lecture{number}.typ").read_text(encoding="utf-8")
    return dict(re.findall(r"^= ([^\n]+)\n(.*?)(?=^= |\Z)", source, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("number", [1, 2])
def test_every_slide_has_its_notes_in_order(number):
    assert list(sections(number)) == list(slides(number))


@pytest.mark.parametrize("number", [1, 2])
def test_every_exercise_has_answers_and_no_slide_has_them(number):
    notes = sections(number)
    asked = [title for title, page in slides(number).items() if "#ask[" in page]
    assert len(asked) >= 6
    assert [title for title in asked if "**Answer" not in notes[title][1]] == []
    assert "**Answer" not in "".join(slides(number).values())


@pytest.mark.parametrize("number", [1, 2])
def test_the_minutes_add_up_to_what_the_head_says(number):
    text = (ROOT / "instructor" / "lectures" / f"lecture{number}.md").read_text(encoding="utf-8")
    without, whole = map(int, re.search(r"brackets: (\d+) without the exercises, (\d+) with", text).groups())
    notes = sections(number)
    assert sum(minutes for minutes, _ in notes.values()) == whole
    assert (
        sum(minutes for title, (minutes, _) in notes.items() if not title.startswith("In class")) == without
    )
