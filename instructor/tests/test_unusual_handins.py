"""Hand-ins that are right but unusual: each is accepted, or one line says what to do."""

import bz2
import gzip
import lzma

import pytest
from kernel_variants import REFERENCE, solved

from instructor.autograder import batch
from instructor.autograder.grading import Options, failed, grade
from instructor.autograder.submission import Submission, SubmissionError, read_submission
from tirxlab.steps import sections


@pytest.mark.parametrize("name", ["gemm_kernels (1).py", "gemm_kernels-2.PY", "kernels.py"])
def test_the_only_file_of_a_hand_in_is_taken_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text("")
    assert read_submission(tmp_path).text == "x = 1\n"
    (tmp_path / "other.py").write_text("")
    with pytest.raises(SubmissionError, match="holds 2 .py files"):
        read_submission(tmp_path)


def test_a_hand_in_may_have_a_folder_around_it(tmp_path):
    """Like an unpacked archive, with the files that macOS adds."""
    inner, theirs = tmp_path / "Übung 5 (GEMM)", tmp_path / "__MACOSX"
    for folder in (inner, theirs, tmp_path / ".git"):
        folder.mkdir()
    (inner / "gemm_kernels.py").write_text("x = 1\n")
    (theirs / "._gemm_kernels.py").write_text("no Python")
    assert read_submission(tmp_path).text == "x = 1\n"
    (tmp_path / "other").mkdir()
    with pytest.raises(SubmissionError, match="holds neither gemm_kernels.py nor handin.tar"):
        read_submission(tmp_path)
    (tmp_path / "gemm_kernels.py").write_text("y = 2\n")
    assert read_submission(tmp_path).text == "y = 2\n"


def test_names_that_differ_by_case_or_by_an_end_have_folders_of_their_own_on_any_disk(tmp_path):
    names = ["ann.py", "Ann.py", "bob.py", "eve", "eve. "]
    for name in names:
        (tmp_path / name).mkdir()
    with batch.Class(tmp_path, tmp_path / "out", Options()) as made:
        places = {name: made.place(name).name for name in made.names()}
    assert sorted(places) == sorted(names) and places["bob.py"] == "bob.py"
    assert len({place.casefold().rstrip(". ") for place in places.values()}) == len(names)


def test_what_macos_puts_beside_the_hand_ins_is_none(tmp_path):
    for name in ("ana", "__MACOSX"):
        (tmp_path / "class" / name).mkdir(parents=True)
    with batch.Class(tmp_path / "class", tmp_path / "grades", Options()) as made:
        assert made.names() == ["ana"] and made.left_out() == []


def test_a_name_in_a_hand_in_reaches_no_terminal_as_it_is(tmp_path):
    for name in ("a\x1b[2Jb", "c\nd"):
        (tmp_path / name / name).mkdir(parents=True)
        (tmp_path / name / name / "gemm_kernels.py").write_bytes(b"\xff")
        with pytest.raises(SubmissionError) as caught:
            read_submission(tmp_path / name)
        assert str(caught.value).isprintable() and caught.value.what.isprintable()


def test_only_one_folder_and_no_link_is_looked_into(tmp_path):
    (tmp_path / "deep" / "one" / "two").mkdir(parents=True)
    (tmp_path / "deep" / "one" / "two" / "gemm_kernels.py").write_text("x = 1\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "one").symlink_to(tmp_path / "deep" / "one" / "two")
    for folder in ("deep", "linked"):
        with pytest.raises(SubmissionError, match=f"{folder}: holds neither"):  # the hand-in's own name
            read_submission(tmp_path / folder)


@pytest.mark.parametrize(
    "ending, kind", [(".zip", "zip"), (".tar.gz", "gzip"), (".tar.xz", "xz"), (".tbz2.py", "bzip2")]
)
def test_a_packed_hand_in_says_what_it_is(tmp_path, ending, kind):
    data = {
        "zip": b"PK\3\4",
        "gzip": gzip.compress(b"x"),
        "xz": lzma.compress(b"x"),
        "bzip2": bz2.compress(b"x"),
    }[kind]
    (tmp_path / f"kernels{ending}").write_bytes(data)
    for path in (tmp_path, tmp_path / f"kernels{ending}"):
        with pytest.raises(SubmissionError, match=f"is packed with {kind}.*hand in gemm_kernels.py"):
            read_submission(path)


def test_a_reason_why_nothing_is_graded_is_never_an_old_one(tmp_path):
    (tmp_path / "class" / "eve").mkdir(parents=True)
    with batch.Class(tmp_path / "class", tmp_path / "grades", Options(steps=(1,))) as made:
        reason = made.read("eve")
        made.write("eve", reason, failed("eve", "", reason, (1,)))
        assert made.done("eve", reason) and not made.done("eve", "eve: holds 2 .py files")


def test_letters_with_marks_find_their_row_in_either_spelling():
    apart, whole = "Mu\u0308ller.tar", "M\u00fcller.tar"
    rows = {"M\u00fcller": {"late_days": "1"}}
    assert batch.match_roster({whole: {}}, [apart]) == {apart: {}}
    assert batch.match_roster({apart: {}}, [whole]) == {whole: {}}
    assert batch.match_roster(rows, [apart]) == {apart: {"late_days": "1"}}
    assert batch.match_roster({whole: {}}, [apart, whole]) == {whole: {}}
    assert batch.match_roster(rows, [apart, "M\u00fcller.py"]) == rows  # which of them nobody knows


def test_a_step_that_is_bound_by_an_assignment_is_graded_as_check_takes_it():
    step = sections(REFERENCE)[1].replace("def hgemm_v1(M, N, K):", "def tile(M, N, K):")
    text = f"{sections(REFERENCE)[0]}{step}\n\nhgemm_v1 = tile\n"
    made = grade(Submission("kernels.py", text), Options(steps=(1, 2)))
    assert made.steps[0].earned == made.steps[0].possible == 4.25, made.steps[0].hints
    assert made.steps[1].state == "missing"


def test_a_syntax_error_in_one_step_costs_no_other_whatever_sizes_it_is_tried_at():
    text = solved(1, 2).replace("def hgemm_v1(M, N, K):", "def hgemm_v1(M, N, K:")
    (made,) = grade(Submission("kernels.py", text), Options(steps=(2,))).steps
    assert made.earned == made.possible == 4.25, made.hints
