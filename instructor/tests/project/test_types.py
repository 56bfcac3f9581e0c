"""Types are consistent: mypy and pyright find nothing in the packages, commands, grader and tracks."""

import os
import subprocess
import sys

import pytest

from tirxlab.checkout import ROOT
from tirxlab.rubric import tomllib

QUIET = {
    "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",  # it must not ask for updates
    "NODE_OPTIONS": "--max-semi-space-size=64",  # MiB: it collects garbage less often, a tenth of its time
}


def test_mypy_finds_nothing():
    command = [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--no-error-summary"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _pyright(*more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--level", "error", *more]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYRIGHT_")}
    return subprocess.run(command, cwd=ROOT, env=kept | QUIET, capture_output=True, text=True)


@pytest.mark.timeout(900)  # a minute alone, much more where others compute
def test_pyright_finds_nothing():
    done = _pyright()
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_a_wrong_type(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("count: int = ''\n")
    done = _pyright(str(wrong))
    assert done.returncode == 1 and "reportAssignmentType" in done.stdout, done.stdout + done.stderr


def test_both_read_the_same_files():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["pyright"]["include"] == tools["mypy"]["files"]
