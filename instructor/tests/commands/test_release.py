"""The handout: its contents, that it works by itself, and that it contains no solution or hidden size."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from instructor import handout
from instructor.autograder.plan import load_hidden
from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.steps import sections


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A handout as the files would be copied."""
    folder = tmp_path_factory.mktemp("release") / "handout"
    handout.copy(handout.files(), folder, "20300101.abc")
    return folder


def test_the_handout_has_what_students_need_and_nothing_of_the_course(made):
    names = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert {
        "lab",
        "README.md",
        "gemm_kernels.py",
        "utils.py",
        "tests/test_step01.py",
        "packages/tirxlab/src/tirxlab/cli/check.py",
    } <= names
    assert not [
        n for n in names if n.startswith(("instructor/", "research/")) or "solutions" in n or "hidden" in n
    ]
    assert (
        not {
            "instructor/commands/grade.py",
            "instructor/commands/release.py",
            "conftest.py",
        }
        & names
    )


def test_nothing_leaks(made):
    assert handout.leaks(made) == []


def test_a_leak_is_found(made, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    step = sections(REFERENCE.read_text(encoding="utf-8"))[4]
    (copy / "docs" / "tip.md").write_text(step.replace("    ", "  "))
    (m, n, k), *_ = [size for sizes in load_hidden().sizes.values() for size in sizes]
    (copy / "sizes.md").write_text(f"try {m} x {n} x {k}")
    found = handout.leaks(copy)
    assert any("docs/tip.md" in line and "solution" in line for line in found)
    assert any("sizes.md:1: a hidden size" == line for line in found)


def test_pdfs_are_built_from_the_sources_that_leave_and_never_copied(made, tmp_path):
    """A stale PDF could contain what its source no longer says; one without a source cannot be checked."""
    names = handout.files()
    pdfs = ["slides/lecture1.pdf", "slides/lecture2.pdf"]
    assert not list(made.rglob("*.pdf"))
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    try:
        assert handout.build_pdfs([*names, "slides/answers.pdf"], copy) == pdfs
    except handout.NoTypst:
        pytest.skip("no typst, and no network to get it")
    assert all((copy / name).read_bytes().startswith(b"%PDF") for name in pdfs)
    assert handout.leaks(copy, pdfs) == []
    assert (
        handout.leaks(copy)[0] == f"{pdfs[0]}: not text, or cannot be unpacked, so nobody has looked into it"
    )


def test_without_typst_and_network_the_release_fails_unless_slides_are_left_out(run, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    status, _, err = run("release", str(tmp_path / "a"))
    assert status == 2 and "--no-slides leaves them out" in err and not (tmp_path / "a").exists()
    status, out, _ = run("release", str(tmp_path / "b"), "--no-slides")
    assert status == 0 and "left out: the slides" in out and not list((tmp_path / "b").rglob("*.pdf"))


def test_no_page_of_the_handout_leads_to_a_file_that_is_not_there(made):
    """Pages, links with their anchors, pictures; the two lectures are built later."""
    broken = []
    for page in made.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if not link.startswith(("http:", "https:")) and not (page.parent / link).exists():
                broken.append(f"{page.relative_to(made)}: {link}")
    assert [line for line in broken if not re.search(r"slides/lecture[12]\.pdf$", line)] == []


def test_the_front_page_of_a_handout_begins_with_step_1_and_its_workflow_scores(made):
    text = (made / "README.md").read_text(encoding="utf-8")
    assert text.split("\n## ")[1].startswith("Begin with step 1")
    (workflow,) = (made / ".github" / "workflows").iterdir()
    assert "./lab score" in workflow.read_text() and ".ci/" not in workflow.read_text()


def test_the_command_refuses_a_folder_with_something_in_it_and_an_edited_skeleton(run, tmp_path, monkeypatch):
    (tmp_path / "x").write_text("")
    status, _, err = run("release", str(tmp_path))
    assert status == 2 and "is not empty" in err
    monkeypatch.setattr("instructor.commands.release.STUDENT", REFERENCE)
    status, _, err = run("release", str(tmp_path / "new"))
    assert status == 2 and "not the skeleton" in err and not (tmp_path / "new").exists()


def lab(folder, *arguments: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "LAB_VENV": sys.prefix}
    command = [sys.executable, str(folder / "packages/tirxlab/src/tirxlab/cli" / "__main__.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=200)


def test_the_commands_of_a_handout_work_without_the_course(made):
    shown = lab(made, "--help").stdout
    assert "check" in shown and "grade" not in shown and "release" not in shown
    done = lab(made, "check", "1")
    assert done.returncode == 1 and "step 1 is not implemented yet" in done.stderr
    done = lab(made, "handin", "--student", "ab1")
    assert done.returncode == 0 and "0 of 100 points" in done.stdout
    assert "0.1.0+20300101.abc" in (made / "handin.tar").read_bytes().decode("latin-1")
    assert ROOT != made
