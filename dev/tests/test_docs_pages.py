"""The pages for instructors and contributors: links lead somewhere, commands exist, the example runs."""

import re
from pathlib import Path

import numpy as np
import pytest

from lab_cli import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/instructors.md",
    ROOT / "docs/machines.md",
    *sorted((ROOT / "docs/contributing").glob("*.md")),
]
COMMANDS = {*app.EVERYONE, *app.STUDENTS, *app.INSTRUCTORS}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_exist(page):
    named = re.findall(r"\./lab ([a-z][\w-]*)", text_of(page))
    assert set(named) <= COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page):
    roots = r"(?:ptxsim|tirxlab|dev|instructor|slides|lab_cli|tests|docs)"
    named = re.findall(rf"[`/ ]({roots}/[\w/.*-]+)", text_of(page))
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("./")))]
    assert missing == []


def test_the_example_of_the_simulator_runs(capsys):
    page = text_of(ROOT / "docs/contributing/ptxsim.md")
    space: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S).group(1), space)
    assert "clean" in capsys.readouterr().out
    assert (space["out"] == np.arange(32)).all()


def test_the_files_of_the_machine_are_those_the_page_names():
    named = re.findall(r"`(\w+\.py)`", text_of(ROOT / "docs/contributing/ptxsim.md"))
    here = {path.name for path in (ROOT / "ptxsim").rglob("*.py")}
    assert named and set(named) <= here
