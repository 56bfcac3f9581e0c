"""The files that people expect of a public repository agree with the project: versions, commands, Python."""

import re
from pathlib import Path

import pytest

from tirxlab.rubric import tomllib

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "packages" / "tirxlab" / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
WORKFLOW = ".github/workflows/test.yml"
FILES = ["CHANGELOG.md", "CITATION.cff", "SECURITY.md", "LICENSE", "CONTRIBUTING.md", WORKFLOW]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_it_is_there(name):
    assert text_of(name).strip()


def test_the_version_is_one():
    assert f"\nversion: {PROJECT['version']}\n" in text_of("CITATION.cff")
    assert f"\n## {PROJECT['version']}\n" in text_of("CHANGELOG.md")


def test_the_workflow_runs_the_same_tests_on_every_python_that_is_supported():
    workflow = text_of(WORKFLOW)
    assert ".ci/run" in workflow and "./lab test" in text_of(".ci/run")
    least, below = map(int, re.findall(r"3\.(\d+)", PROJECT["requires-python"]))
    listed = re.search(r"python: \[(.*)\]", workflow)[1]
    assert re.findall(r'"(3\.\d+)"', listed) == [f"3.{minor}" for minor in range(least, below)]
    assert all(f"| Python 3.{minor} " in text_of("docs/machines.md") for minor in range(least, below))


def test_files_that_security_names_exist():
    named = re.findall(r"`((?:packages|docs)/[\w/.]+)`", text_of("SECURITY.md"))
    assert named and all((ROOT / name).exists() for name in named)
