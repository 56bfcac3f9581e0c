"""Files named on pages exist; the simulator's page names those of the machine, and its example runs."""

import re
from pathlib import Path

import numpy as np
import pages
import pytest
from pages import ROOT

ROOTS = r"(?:packages|tirxlab|ptxsim|research|instructor|slides|tests|docs)"
SIMULATOR = ROOT / "packages/ptxsim/docs/tower.md"


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name_of)
def test_named_files_exist(page):
    named = re.findall(rf"(?<![\w/.-])({ROOTS}/[\w/.*-]+)", text_of(page))
    missing = [name for name in named if not list(ROOT.glob(name.rstrip("./")))]
    assert missing == []


@pytest.mark.parametrize("column", [2, 3])
def test_what_shows_the_promises_of_grading_exists(column):
    page = text_of(ROOT / "docs" / "contributing" / "grading.md")
    rows = [line.split("|")[column] for line in page.splitlines() if re.match(r"\| \d", line)]
    named = {name for row in rows for name in re.findall(r"`([\w/]+\.py)[`:]", row)}
    files = [str(path) for top in ("instructor", "packages") for path in (ROOT / top).rglob("*.py")]
    assert len(rows) == 13 and named
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []


def test_the_handbooks_table_of_folders_names_those_that_are_there():
    rows = re.findall(r"^\| (`[^|]+) \|", text_of(ROOT / "docs" / "handbook.md"), re.M)
    folders = [name for row in rows for name in re.findall(r"`([\w./-]+/)`", row)]
    assert "packages/ptxsim/" in folders and [name for name in folders if not (ROOT / name).is_dir()] == []


def test_the_example_of_the_simulator_runs(capsys):
    space: dict = {}
    exec(re.search(r"```python\n(.*?)```", text_of(SIMULATOR), re.S).group(1), space)
    assert "clean" in capsys.readouterr().out
    assert (space["out"] == np.arange(32)).all()


def test_the_files_of_the_machine_are_those_the_page_names():
    named = re.findall(r"`(\w+\.py)`", text_of(SIMULATOR))
    here = {path.name for path in (ROOT / "packages" / "ptxsim" / "src").rglob("*.py")}
    assert named and set(named) <= here
