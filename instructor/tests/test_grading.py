"""Grading: what earns points, what does not, and what the student sees."""

import dataclasses
import gzip
import io
import math
import os
import random
import tarfile
from pathlib import Path

import pytest
from corpus import bug_source, of_file
from kernel_variants import EDITS, REFERENCE, file_with, moved, solved, variants

from instructor.autograder import opening
from instructor.autograder.behaviour import DEMANDS
from instructor.autograder.building import built_for
from instructor.autograder.families import FEW, SMS, TILES, WORKERS, candidates
from instructor.autograder.grading import Options, grade
from instructor.autograder.plan import load_hidden, plan, secret_seed
from instructor.autograder.points import StepGrade
from instructor.autograder.ptx_rules import broken_rule, changing
from instructor.autograder.reader import Reader
from instructor.autograder.submission import Submission, SubmissionError, read_submission
from tirxlab.artifact import Artifact
from tirxlab.cli.handin import write_tar
from tirxlab.rubric import load_rubric
from tirxlab.sandbox import Builder
from tirxlab.steps import read_skeleton, sections, size_text
from tirxlab.version import lab_version

STEPS = tuple(range(1, 11))


def graded(text: str, *steps: int):
    """{step: StepGrade} of a file."""
    made = grade(Submission("gemm_kernels.py", text), Options(steps=steps or STEPS))
    return {step.step: step for step in made.steps}


def full(step) -> bool:
    return step.earned == step.possible > 0


def test_a_right_step_earns_what_was_measured_and_a_skeleton_nothing():
    done = graded(solved(1, 2), 1, 2, 3)
    assert (done[1].earned, done[1].possible, done[1].points) == (4.25, 4.25, 5)
    assert full(done[2]) and done[2].speed == "not measured"
    assert done[3].earned == 0 and done[3].state == "not implemented yet" and len(done[3].hints) == 1


def test_the_skeleton_earns_nothing():
    assert {step.earned for step in graded(read_skeleton()).values()} == {0}


@pytest.mark.parametrize("source, target, words", [(3, 4, "by TMA"), (4, 5, "one stage ahead")])
def test_an_earlier_step_in_a_later_place_loses_the_implementation_and_is_told_why(source, target, words):
    step = graded(moved(source, target), target)[target]
    assert step.right and not step.implemented and words in step.hints[0]
    assert step.earned == pytest.approx(0.6 * step.points)


def test_a_copied_step_keeps_a_part_of_its_result_and_is_told_why():
    step = graded(moved(4, 6), 6)[6]
    assert step.right and not step.complete and step.earned == pytest.approx(0.15 * step.points)
    assert len(step.hints) == 2 and "step 5 already asks for more" in step.hints[1]


def test_copying_step_4_into_all_later_ones_earns_15_of_59_5():
    """Step 5 counts in full, as the next one; the others count a quarter."""
    points = load_rubric().points
    steps = [StepGrade(n, "", points[n], "right", right=True, complete=n == 5) for n in range(5, 11)]
    for step in steps:
        step.settle()
    assert sum(step.earned for step in steps) == 15 and sum(step.possible for step in steps) == 59.5


def test_a_kernel_that_refuses_a_long_k_has_no_result():
    text = sections(REFERENCE)[4].replace(
        "    K_TILES = K", '    if K > 1000: raise ValueError("K must be at most 1000")\n    K_TILES = K'
    )
    step = graded(file_with({4: text}), 4)[4]
    assert step.state == "not built" and step.earned == 0


def test_from_step_4_on_no_ring_holds_all_of_a_hidden_k():
    assert all(K >= 1024 for step in range(4, 11) for _, _, K in load_hidden().sizes[step])


EARLIER = [(source, target) for target in STEPS for source in range(1, target) if (source, target) != (3, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("source, target", EARLIER)
def test_no_earlier_step_has_the_implementation_of_a_later_one(source, target):
    step = graded(moved(source, target), target)[target]
    assert step.implementation_points == 0 and len(step.hints) in (1, 2)
    assert step.right or source < 3  # a kernel for one tile does not take the sizes of several


@pytest.mark.slow
@pytest.mark.parametrize("source, target", [(s, t) for t in STEPS for s in range(max(t, 3) + 1, 11)])
def test_a_later_step_in_an_earlier_place_is_right_or_refuses_the_size(source, target):
    """About a hidden size the hint says only that it is refused."""
    step = graded(moved(source, target), target)[target]
    refused = any(
        words in hint for hint in step.hints for words in ("must be a multiple", "size that the course")
    )
    assert step.right or step.state == "not built" and refused


@pytest.mark.slow
@pytest.mark.timeout(1800)  # of wall time: it is all ten steps, and other work may hold both cores
def test_the_reference_earns_every_point_that_was_measured():
    assert {n: step.hints for n, step in graded(REFERENCE).items() if not full(step)} == {}


CASES = [
    pytest.param(step, name, marks=() if (step, name) == (4, "b_first") else pytest.mark.slow)
    for step in EDITS
    for name in variants(step)
]


def test_there_are_three_variants_of_each_step_from_4_on():
    assert {step: len(variants(step)) for step in EDITS} == dict.fromkeys(range(4, 11), 3)


@pytest.mark.parametrize("step, name", CASES)
def test_a_correct_kernel_that_is_built_otherwise_keeps_all_points(step, name):
    made = graded(variants(step)[name], step)[step]
    assert full(made), made.hints


MUTANTS = {
    bug.name: bug
    for name in ("barriers", "fences", "phases")
    for bug in of_file(name)
    if bug.ctas is None and bug.severity == "error" and bug.kind != "build"
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if i == 0 else pytest.mark.slow) for i, name in enumerate(sorted(MUTANTS))],
)
def test_a_mutant_loses_the_points_of_its_step_only(name):
    bug = MUTANTS[name]
    other = 1 if bug.step > 1 else 2
    text = bug_source(bug)
    done = graded(file_with({n: sections(text)[n] for n in (bug.step, other)}), bug.step, other)
    assert not done[bug.step].right and done[bug.step].earned == 0 and len(done[bug.step].hints) == 1
    assert full(done[other])


def test_nothing_that_is_shown_tells_a_hidden_size():
    (secret,) = load_hidden().sizes[3]
    text = sections(REFERENCE)[3].replace(
        "    K_TILES = K", f"    if (M, N, K) == {secret}: raise ValueError((M, N, K))\n    K_TILES = K"
    )
    step = graded(file_with({3: text}), 3)[3]
    assert step.state == "wrong" and "keeps to itself" in step.hints[0]
    assert size_text(secret) not in step.hints[0] and str(secret) not in step.hints[0]


def test_plans_have_all_orders_and_kinds_of_data_and_seeds_that_nobody_knows():
    hidden = load_hidden()
    runs = [run for step in STEPS for run in plan(step, "a" * 64, hidden)]
    assert {run.data for run in runs} == {"random", "integers", "windows"}
    assert {"program", "adverse"} < {run.order for run in runs} and any(type(r.order) is int for r in runs)
    assert sum(run.record for run in runs) == 10 and any(run.secret for run in runs)
    assert not any(run.record and run.secret for run in runs)
    other = dataclasses.replace(hidden, salt="another")
    assert secret_seed(hidden, "d", 1) != secret_seed(other, "d", 1) != secret_seed(other, "e", 1)
    assert not any(set(load_rubric().sizes(step)) & set(hidden.sizes[step]) for step in STEPS)


@pytest.mark.parametrize("step", STEPS[1:])
def test_what_is_recorded_is_drawn_for_the_submission(step):
    """A technique used at one size alone earns nothing; the drawn size reveals nothing about hidden ones."""
    drawn = {run.size for d in "abcdefghijklmnop" for run in plan(step, d, load_hidden()) if run.record}
    assert len(drawn) > 1 and not drawn & set(load_rubric().sizes(step))
    for secret in drawn:
        hidden = dataclasses.replace(load_hidden(), sizes={step: (secret,)})
        again = {run.size for d in "abcdefghijklmnop" for run in plan(step, d, hidden) if run.record}
        assert again == drawn


@pytest.mark.parametrize("step", range(6, 11))
def test_what_is_recorded_has_few_sms_and_some_of_them_two_tiles(step):
    height, width = TILES[step]
    runs = [run for n in range(20) for run in plan(step, str(n), load_hidden()) if run.record]
    assert len({run.launch for run in runs}) > 10
    for run in runs:
        tiles, workers = run.size[0] * run.size[1] / (height * width), WORKERS[step] * run.sms / SMS
        assert run.sms == FEW and workers < tiles <= 1.75 * workers


def test_ptxas_sees_the_first_kernel_of_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    handed_in = Submission("a.py", REFERENCE)
    made = grade(handed_in, Options(steps=(3,), keep=True))
    whole = {name for name, data in made.artifacts.items() if Artifact.from_bytes(data).cubin}
    first = plan(3, handed_in.digest, load_hidden())[0]
    assert len(made.artifacts) == 3 and whole == {f"step3-{size_text(first.size)}.lab"}


def test_a_kernel_that_writes_148_itself_is_recorded_on_all_sms():
    (run,) = [run for run in plan(7, "a", load_hidden()) if run.record]
    text = sections(REFERENCE)[7]
    assert "SM_COUNT" in text
    with Builder(file_with({7: text})) as builder:
        same, built = built_for(run, builder.build)
    assert same == run and math.prod(built.artifact.grid) == run.sms
    with Builder(file_with({7: text.replace("SM_COUNT", "148")})) as builder:
        other, built = built_for(run, builder.build)
    assert other.sms == SMS == math.prod(built.artifact.grid)
    assert other.size in candidates(7) and other.seed == run.seed and other.record


@pytest.mark.parametrize("step", range(6, 11))
def test_one_cluster_alone_has_four_tiles_and_more_of_a_long_k_at_square_sizes_too(step):
    runs = [run for n in range(40) for run in plan(step, str(n), load_hidden()) if run.alone]
    assert len(runs) == 40 and len({run.size for run in runs}) > 15
    height, width = TILES[step]
    for M, N, K in {run.size for run in runs}:
        assert not M % height and not N % width and not K % 64 and K > 1344
        assert M * N >= 4 * WORKERS[step] * height * width
    assert {run.size[0] == run.size[1] for run in runs} == {True, False}


def test_a_hint_names_the_drawn_size_at_which_a_student_can_see_it():
    text = moved(4, 5)
    (size,) = [r.size for r in plan(5, Submission("", text).digest, load_hidden()) if r.record]
    step = graded(text, 5)[5]
    assert step.right and not step.implemented
    assert f"(seen at {size_text(size)}, drawn for this file)" in step.hints[0]


@pytest.mark.parametrize(
    "text", ["__TIME__", "__DATE__", "#define A(x, y) x ## y", "__TI\\\nME__", "A(x, y) x %:%: y"]
)
def test_a_kernel_that_depends_on_when_it_is_compiled_is_refused(text):
    assert "whenever it is built" in changing(f"int f() {{ return 0; }}\n{text}\n")


def test_no_kernel_of_the_reference_depends_on_when_it_is_compiled():
    with Builder(file_with({10: sections(REFERENCE)[10]})) as builder:
        assert changing(builder.build(10, (1024, 768, 64)).artifact.cuda) == ""


def test_every_step_has_demands_and_shares_add_up():
    assert set(DEMANDS) == set(load_rubric().points) == set(load_rubric().graded)
    assert sum(load_rubric().points.values()) == 100


@pytest.mark.parametrize(
    "text, words",
    [
        ("mov.u64 %rd1, %clock64;", "%clock64"),
        ("mov.u32 %r1, %smid;", "%smid"),
        ("mov.u64 %rd1, %globaltimer;", "%globaltimer"),
        (".global .align 4 .u32 launches;\nld.global.u32 %r1, [launches];", "launches"),
        (".visible .global .align 4 .b8 memo[8] = {0};\nst.global.u32 [memo], %r1;", "memo"),
        ("// %clock64\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %laneid;", ""),
        (".global .align 1 .b8 $str[4] = {37, 100};\nmov.u64 %rd1, $str;", ""),
        (".weak .global .align 1 .u8 _ZN4cuda5valueE;", ""),
        ("{ .reg .b32 t; .global .b32 memo; st.global.u32 [memo], t; }", "memo"),
        ("{.global .attribute(.managed) .b32 memo; st.global.u32 [memo], t; }", "memo"),
        ("{ ld.global.u32 t, [a]; st.global.u32 [a], t; }", ""),
        ("// said\rmov.u32 %r1, %clock;", "%clock"),
        (".global .align 1 .b8 $str$1[4] = {37, 100};\nmov.u64 %rd1, $str$1;", ""),
        ("\n" * 200_000 + "mov.u32 %r1, %clock;", "%clock"),
        ('.pragma "/*";\nmov.u32 %r1, %clock;\n.pragma "*/";', "%clock"),
        (".extern .func (.param .b32 r) cudaLaunchDeviceV2\n(.param .b64 a);", "starts another"),
        ("call.uni (r), cudaGraphLaunch_ptsz, (a);", "starts another"),
        ("griddepcontrol.launch_dependents;", "starts another"),
        ("mov.u32 %cudaLauncher, 1;", ""),
        ('// it\'s "quoted\nmov.u32 %r1, %clock; // "', "%clock"),
    ],
)
def test_what_tells_one_machine_or_launch_from_another_is_refused(text, words):
    said = broken_rule(text)
    assert words in said and bool(said) == bool(words)


def tar_of(*members: tuple[str, bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(data), kind, "/etc/passwd"
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    "data, words",
    [
        (tar_of(("gemm_kernels.py", b"", tarfile.SYMTYPE)), "holds no gemm_kernels.py"),
        (tar_of(("../gemm_kernels.py", b"x", tarfile.REGTYPE)), "holds no gemm_kernels.py"),
        (tar_of(("gemm_kernels.py", b"x" * (2 << 20), tarfile.REGTYPE)), "at most 1 MiB"),
        (tar_of(*[(f"{n}", b"", tarfile.REGTYPE) for n in range(99)]), "more than 64 members"),
        (tar_of(("gemm_kernels.py", b"\xff\xfe", tarfile.REGTYPE)), "not UTF-8"),
        (b"no tar", "cannot be read"),
        (gzip.compress(tar_of(("gemm_kernels.py", b"x", tarfile.REGTYPE))), "is packed with gzip"),
        (
            tar_of(
                ("a/gemm_kernels.py", b"x", tarfile.REGTYPE), ("b/gemm_kernels.py", b"x", tarfile.REGTYPE)
            ),
            "holds no",
        ),
        (tar_of(("big", bytes(5 << 20), tarfile.REGTYPE)), "larger than 4 MiB"),
    ],
)
def test_a_tar_is_read_as_data(tmp_path, data, words):
    (tmp_path / "handin.tar").write_bytes(data)
    with pytest.raises(SubmissionError, match=words):
        read_submission(tmp_path)


@pytest.mark.parametrize("name", ["gemm_kernels.py", "handin.tar"])
def test_links_and_pipes_are_no_submissions(tmp_path, name):
    """A link in a hand-in could lead to another student's file, or to the solutions."""
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / name).symlink_to(Path(__file__))
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / name)
    (tmp_path / "folder").symlink_to(tmp_path / "link")
    for folder in ("link", "pipe", "folder"):
        with pytest.raises(SubmissionError, match="is not a regular file"):
            read_submission(tmp_path / folder)


def test_a_broken_tar_is_one_line_whatever_is_broken(tmp_path):
    rng = random.Random(1)
    write_tar(tmp_path / "h.tar", "x = 1\n", "ab123")
    whole = (tmp_path / "h.tar").read_bytes()
    with Reader(opening) as reader:
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(rng.choice([1, 3, 30])):
                data[rng.randrange(2600)] = rng.choice([0, 255, ord("9"), ord("-"), rng.randrange(256)])
            (tmp_path / "h.tar").write_bytes(data)
            try:
                assert len(read_submission(tmp_path / "h.tar", reader).text) < 1 << 20
            except SubmissionError as error:
                assert len(str(error).splitlines()) == 1


def test_a_syntax_error_costs_the_step_that_it_stands_in():
    parts = sections(solved(1, 2))
    parts[2] = parts[2].replace("K_TILES = K // BLK_K", "K_TILES = (K // BLK_K", 1) + "\nUSED = 64\n\n\n"
    parts[1] = parts[1].replace("_check_exact(M=(M, BLK_M)", "_check_exact(M=(M, 2 * USED)")
    done = graded("".join(parts.values()), 1, 2)
    assert full(done[1]), done[1].hints
    assert (
        done[2].earned == 0 and "'(' was never closed" in done[2].hints[0] and "only the" in done[2].hints[0]
    )


def test_the_preview_wheels_spelling_is_ported_on_arrival():
    text = solved(1).replace(
        "from tirxlab import (", "from tvm.script import tirx as Tx\nfrom tvm.tirx.lang import ("
    )
    text = text.replace("    Tx,\n", "")
    made = grade(Submission("x.py", text), Options(steps=(1,)))
    assert full(made.steps[0]) and "./lab port" in made.notes[0]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_mark_at_the_head_of_a_file_and_ends_of_lines_cost_nothing(tmp_path, end):
    """Python accepts them all, and a step begins at the start of a line."""
    (tmp_path / "a.PY").write_bytes(b"\xef\xbb\xbfx = 1" + end + b"y = 2" + end)
    assert read_submission(tmp_path / "a.PY").text == "x = 1\ny = 2\n"


def test_a_hand_in_says_who_and_with_which_lab(tmp_path):
    write_tar(tmp_path / "h.tar", "x = 1\n", "ab123")
    made = read_submission(tmp_path / "h.tar")
    assert (made.text, made.student, made.lab) == ("x = 1\n", "ab123", lab_version())
