"""The skeleton: made from balanced markers, gives no step away, and grows step by step into the solutions."""

import ast
import re

import pytest

from instructor.skeleton import MarkerError, make_skeleton
from tirxlab.builders import builder
from tirxlab.cli import app
from tirxlab.cli.common import REFERENCE, STUDENT
from tirxlab.cli.runs import Job, run_job
from tirxlab.steps import STEPS, UntouchedStep, is_untouched, read_skeleton, sections

SOLUTIONS = REFERENCE.read_text()
SMALL = {1: (128, 128, 64), 2: (128, 128, 192), 9: (256, 256, 192), 10: (512, 256, 192)}


def small(step: int) -> tuple[int, int, int]:
    """A size with few tiles, and an odd number of K tiles."""
    return SMALL.get(step, (256, 128, 192))


def pasted(k: int) -> str:
    """A student's file in which steps 1..k are those of the solutions."""
    mine, theirs = sections(read_skeleton()), sections(SOLUTIONS)
    return "".join(mine[0] if step == 0 else (theirs if step <= k else mine)[step] for step in (0, *STEPS))


def test_generated_files_are_up_to_date():
    text = make_skeleton(SOLUTIONS)
    assert read_skeleton() == text, "run ./lab skeleton"
    if not is_student_at_work():
        assert STUDENT.read_text() == text, "run ./lab skeleton"


def is_student_at_work() -> bool:
    text = STUDENT.read_text()
    return any(not is_untouched(text, step) for step in STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_a_skeleton_step_builds_runs_and_is_not_right(step, tmp_path):
    file = tmp_path / "gemm_kernels.py"
    parts = sections(read_skeleton())
    parts[step] = parts[step].replace('    """', '    """(touched) ', 1)
    file.write_text("".join(parts.values()))
    outcome = run_job(Job(file, step, small(step), "sim"))
    assert outcome.verdict not in ("not built", "incomplete"), outcome.message
    assert outcome.right is not True and not outcome.passed


@pytest.mark.parametrize("k", (0, *STEPS))
def test_pasting_k_solutions_makes_exactly_k_steps_pass(k, tmp_path):
    """Steps up to k are the solutions' text; step k is run (others were, for smaller k); the rest refuse."""
    file = tmp_path / "gemm_kernels.py"
    file.write_text(pasted(k))
    parts, theirs = sections(file.read_text()), sections(SOLUTIONS)
    for step in STEPS:
        if step <= k:
            assert parts[step] == theirs[step] and builder(file, step)
        else:
            with pytest.raises(UntouchedStep, match=f"step {step} is not implemented yet"):
                builder(file, step)
    if k:
        outcome = run_job(Job(file, k, small(k), "sim"))
        assert outcome.passed and outcome.verdict == "clean", outcome.message


def test_the_skeleton_has_no_marker_left_and_a_hint_for_each():
    text = read_skeleton()
    assert "TODO[" not in text and "# | " not in text
    assert text.count("# TODO: ") == SOLUTIONS.count("# TODO[begin]")


@pytest.mark.parametrize(
    "given", ["mbarrier.init", "tcgen05.alloc", "tcgen05.dealloc", "pool.commit", "tmem = "]
)
def test_what_the_course_gives_is_kept(given):
    mine, theirs = sections(read_skeleton()), sections(SOLUTIONS)
    for step in STEPS:
        assert mine[step].count(given) == theirs[step].count(given)


@pytest.mark.parametrize(
    "taken", ["gemm_async(", "Tx.copy_async(", "Tx.cast(", "try_wait(", ".wait(", ".arrive("]
)
def test_what_the_student_learns_is_taken_out(taken):
    code = ast.unparse(ast.parse(read_skeleton()))
    assert taken not in code
    assert taken in ast.unparse(ast.parse(SOLUTIONS))


BLOCK = (
    "def hgemm_v1():\n    # TODO[begin] Say a.\n    # | Then b.\n    # > a = 0\n    a = 1\n    # TODO[end]\n"
)


def test_hint_and_replacement_code_go_into_the_skeleton():
    expected = "def hgemm_v1():\n    # TODO: Say a.\n    #       Then b.\n    a = 0\n    return a\n"
    assert make_skeleton(BLOCK + "    return a\n") == expected


@pytest.mark.parametrize(
    "text, words",
    [
        (BLOCK.replace("    # TODO[end]\n", ""), "line 2: TODO[begin] has no TODO[end]"),
        ("def hgemm_v1():\n    pass\n    # TODO[end]\n", "line 3: TODO[end] without a TODO[begin]"),
        (
            BLOCK.replace("    a = 1", "    # TODO[begin] Inner."),
            "line 5: TODO[begin] inside the one that line 2",
        ),
        (BLOCK.replace("    # TODO[end]", "  # TODO[end]"), "line 6: TODO[end] is not indented"),
        (BLOCK.replace("    a = 1\n", ""), "line 2: nothing between"),
        (BLOCK.replace("TODO[end]", "TODO[edn]"), "line 6: neither"),
        (BLOCK.replace(" Say a.", ""), "line 2: neither"),
        ("def hgemm_v1():\n    return 1\n", "hgemm_v1 has no TODO"),
    ],
)
def test_markers_that_are_wrong_are_named_by_line(text, words):
    with pytest.raises(MarkerError, match=re.escape(words)):
        make_skeleton(text)


def test_the_command_refuses_an_edited_file_and_checks_without_writing(tmp_path, monkeypatch, capsys):
    import instructor.commands.skeleton as command

    student, pristine = tmp_path / "gemm_kernels.py", tmp_path / "gemm_kernels.skeleton.gz"
    monkeypatch.setattr(command, "STUDENT", student)
    monkeypatch.setattr(command, "SKELETON", pristine)
    monkeypatch.setattr("tirxlab.steps.SKELETON", pristine)
    assert app.main(["skeleton", "--check"]) == 1 and not student.exists()
    assert app.main(["skeleton"]) == 0
    assert app.main(["skeleton", "--check"]) == 0
    edited = student.read_text() + "# mine\n"
    student.write_text(edited)
    capsys.readouterr()
    assert app.main(["skeleton"]) == 2
    assert "has been edited" in capsys.readouterr().err
    assert student.read_text() == edited
