"""utils: data, the report of wrong elements, timing; and how the step tests behave."""

import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import utils
from ptxsim import Finding
from tirxlab.artifact import Artifact, BufferInfo, BufferParam
from tirxlab.devices import Run, sim
from tirxlab.rubric import load_rubric
from tirxlab.steps import read_skeleton

ROOT = Path(__file__).resolve().parents[3]
SOLUTIONS = ROOT / "instructor" / "solutions" / "gemm_kernels.py"


@pytest.fixture(autouse=True)
def on_sim(monkeypatch):
    monkeypatch.setenv("LAB_DEVICE", "sim")


# --- data ---


@pytest.mark.parametrize(("dtype", "kind"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_data(dtype, kind):
    A, B, C = utils.prepare_data(6, 4, 8, dtype, seed=3)
    assert [x.shape for x in (A, B, C)] == [(6, 8), (4, 8), (6, 4)] and all(
        x.dtype == kind for x in (A, B, C)
    )
    again, *_ = utils.prepare_data(6, 4, 8, dtype, seed=3)
    other, *_ = utils.prepare_data(6, 4, 8, dtype, seed=4)
    assert (A == again).all() and (A != other).any() and np.isnan(C.astype(np.float32)).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0, 4, 8), "M must be a positive"), ((4, 4, 8.0), "K must be a positive"), ((4, 4, 8, "fp8"), "'fp8'")],
)
def test_bad_data(arguments, words):
    with pytest.raises(ValueError, match=words):
        utils.prepare_data(*arguments)


def test_cuda_without_torch_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match="needs torch: pip install"):
        utils.prepare_data(2, 3, 4, device="cuda")


def test_no_arithmetic_makes_a_canary():
    for dtype, bits in utils.CANARY.items():
        canary = utils.canaries((1,), dtype)
        assert canary.view(f"u{canary.itemsize}")[0] == bits and np.isnan(canary.astype(np.float64))[0]
        zero = np.zeros(1, canary.dtype)
        with np.errstate(invalid="ignore"):
            made = zero / zero
        assert made.view(f"u{made.itemsize}")[0] != bits


# --- verify ---


def problem(M=256, N=384, K=64, dtype="fp16"):
    A, B, _ = utils.prepare_data(M, N, K, dtype, seed=1)
    return utils.reference(A, B), A, B


def complaint(D, A, B, **tolerance):
    with pytest.raises(AssertionError) as caught:
        utils.verify(D, A, B, **tolerance)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_the_reference_is_right(dtype):
    utils.verify(*problem(dtype=dtype))


def test_reference_accumulates_in_float32():
    A = np.full((1, 4096), 1, np.float16)
    assert utils.reference(A, np.full((1, 4096), 0.25, np.float16))[0, 0] == 1024


def test_one_wrong_element():
    D, A, B = problem()
    D[130, 257] = 2
    D[130, 258] = np.nan
    text = complaint(D, A, B)
    expected = float(utils.reference(A, B)[130, 257])
    allowed = 0.01 + 0.001 * abs(expected)
    assert text.splitlines() == [
        "2 of 98304 elements are wrong (0.00203 %); all were written",
        f"  first: D[130, 257] = 2, expected {expected:g} "
        f"(off by {abs(expected - 2):g}, allowed {allowed:g})",
        "  128x128 tiles with wrong elements: 1 of 6: (1, 2)",
        "  rows: 130",
        "  columns: 257-258",
    ]


def test_what_was_never_written():
    D, A, B = problem()
    D[128:, 128:256] = utils.canaries((128, 128), "float16")
    text = complaint(D, A, B)
    assert "16384 of them were never written" in text and "D[128, 128] was never written, expected" in text
    assert "1 of 6: (1, 1)" in text and "rows: 128-255" in text and "columns: 128-255" in text


def test_many_places_are_cut_short():
    D, A, B = problem()
    D[::2, ::2] += 1
    text = complaint(D, A, B)
    assert "rows: 0, 2, 4, 6, 8, 10, 12, 14, ... (128 in all)" in text and len(text) < 600


@pytest.mark.parametrize(("factor", "right"), [(0.9, True), (1.1, False)])
def test_the_tolerance_is_the_rubrics(factor, right):
    A = np.zeros((128, 64), np.float16)
    A[:, 0] = 1
    D = utils.reference(A, A)
    D = (D.astype(np.float32) + factor * (1e-2 + 1e-3)).astype(np.float16)
    if right:
        utils.verify(D, A, A)
    else:
        assert "16384 of 16384" in complaint(D, A, A)
    utils.verify(D, A, A, atol=0.1)


def test_wrong_shape_or_dtype():
    D, A, B = problem()
    assert "the output is float16(256, 383), expected float16(256, 384)" in complaint(D[:, 1:], A, B)
    assert "the output is float32" in complaint(D.astype(np.float32), A, B)


def test_infinities_must_agree():
    A = np.full((128, 64), 300, np.float16)
    D = utils.reference(A, A)
    assert np.isinf(D).all()
    utils.verify(D, A, A)
    for wrong in (-np.inf, 60000, np.nan):
        D[0, 0] = wrong
        assert "1 of 16384" in complaint(D, A, A)


# --- running ---


def fake_artifact(role="out"):
    shapes = {"A": (2, 4), "B": (3, 4), "D": (2, 3)}
    roles = {"A": "in", "B": "in", "D": role}
    return Artifact(
        "sm_100a",
        "k",
        "",
        ".entry k()",
        b"",
        (1, 1, 1),
        (32, 1, 1),
        (1, 1, 1),
        0,
        params=tuple(BufferParam(n) for n in shapes),
        buffers=tuple(BufferInfo(n, s, "float16", roles[n]) for n, s in shapes.items()),
        source={"file": "gemm_kernels.py", "text": "first\n    second\n"},
    )


def pretend(monkeypatch, verdict, findings=(), ran=True, seen=None):
    """Replaces the simulator by one that reports this."""

    def run(artifact, arrays, **options):
        if seen is not None:
            seen.update(options, arrays=arrays)
        return Run({}, 0.1, verdict, list(findings), ran=ran, stdout="printed by the kernel")

    monkeypatch.setattr(sim, "run", run)


FINDING = Finding("race", "error", "two writers", "wait for mma2tma", {"line": 2})


@pytest.mark.parametrize(("verdict", "ran"), [("error", True), ("incomplete", False)])
def test_errors_are_raised_with_line_and_hint(monkeypatch, verdict, ran):
    pretend(monkeypatch, verdict, [FINDING], ran)
    with pytest.raises(utils.KernelError) as caught:
        utils.compile_and_run(fake_artifact(), *utils.prepare_data(2, 3, 4))
    assert isinstance(caught.value, AssertionError) and caught.value.run.verdict == verdict
    said = "error: race: two writers\n  at gemm_kernels.py:2: second\n  hint: wait for mma2tma"
    assert str(caught.value) == (said if verdict == "error" else f"{verdict}:\n{said}")


def test_review_is_printed_and_the_output_given(monkeypatch, capsys):
    seen = {}
    pretend(monkeypatch, "review", [Finding("proxy-fence", "review", "no fence")], seen=seen)
    A, B, C = utils.prepare_data(2, 3, 4)
    C[:] = 5
    C_out = utils.compile_and_run(fake_artifact(), A, B, C, order="adverse")
    assert C_out is seen["arrays"]["D"] and seen["order"] == "adverse" and seen["arrays"]["A"] is A
    assert (C_out.view(np.uint16) == utils.CANARY["float16"]).all() and (C == 5).all()
    printed = capsys.readouterr()
    assert "no fence" in printed.err and "printed by the kernel" in printed.out


def test_a_kernel_that_reads_its_output_gets_c(monkeypatch):
    seen = {}
    pretend(monkeypatch, "clean", seen=seen)
    A, B, C = utils.prepare_data(2, 3, 4)
    C[:] = 5
    assert (utils.compile_and_run(fake_artifact("inout"), A, B, C) == 5).all()
    assert seen["arrays"]["D"] is not C


def test_a_kernel_that_never_writes_gives_canaries(monkeypatch):
    pretend(monkeypatch, "clean")
    A, B, C = utils.prepare_data(2, 3, 4)
    assert "6 of them were never written" in complaint(
        utils.compile_and_run(fake_artifact("in"), A, B, C), A, B
    )


# --- timing ---


def test_nothing_is_timed_on_the_simulator(capsys):
    assert utils.benchmark(fake_artifact(), 2, 3, 4) == (None, None)
    assert "speed not measured" in capsys.readouterr().out
    assert utils.benchmark_flops(fake_artifact(), 2, 3, 4) is None
    timing = utils.check_timing(fake_artifact(), 4, 1024, 1024, 1024)
    assert timing.status == "not measured" and round(timing.reference_tflops, 1) == 126.3
    ms, tflops = timing  # as the course's own check_timing returned them
    assert (ms, tflops) == (None, None)


def test_the_published_times_have_their_names():
    assert utils.REFERENCE_TIMES[4][1024, 1024, 1024] == 0.017 and len(utils.REFERENCE_TIMES) == 10
    assert utils.TIMING_TOLERANCE == 1.3


@pytest.mark.parametrize(("ms", "right"), [(0.017, True), (0.0220, True), (0.0222, False)])
def test_speed_limit(monkeypatch, ms, right):
    monkeypatch.setattr(utils, "benchmark", lambda *_, **__: (ms, utils.tflops(1024, 1024, 1024, ms)))
    if right:
        assert utils.check_timing(None, 4, 1024, 1024, 1024).status == "passed"
        return
    with pytest.raises(
        AssertionError, match=r"0.022 ms, 96.7 TFLOP/s: too slow, 97.2 are needed \(reference 126.3 / 1.3"
    ):
        utils.check_timing(None, 4, 1024, 1024, 1024)


def test_sizes_without_a_reference_time():
    with pytest.raises(ValueError, match="no reference time for step 4 at 384x640x192"):
        utils.check_timing(None, 4, 384, 640, 192)


# --- the rubric ---


def test_rubric():
    rubric = load_rubric()
    assert sum(rubric.points.values()) == 100 and len(rubric.points) == 10
    assert sum(len(times) for times in rubric.reference_ms.values()) == 37
    assert (rubric.rtol, rubric.atol, rubric.speed_factor) == (1e-3, 1e-2, 1.3)


@pytest.mark.parametrize("step", range(6, 11))
def test_uneven_sizes_give_all_ctas_at_least_five_tiles(step):
    rubric = load_rubric()
    rows, columns, ctas = {9: (256, 256, 2), 10: (512, 256, 2)}.get(step, (128, 128, 1))
    for size in rubric.uneven[step]:
        M, N, K = size
        assert M % rows == N % columns == K % 64 == 0 and M != N
        groups, tiles = rubric.few_sms.get((step, size), 148) / ctas, (M // rows) * (N // columns)
        assert tiles >= 5 * groups
        assert K in (64, 128) or K > 1024 and K // 64 % 2 and tiles % groups  # some a sixth


@pytest.mark.parametrize("step", range(6, 11))
def test_check_and_grade_have_more_tiles_than_stages_with_fewer_k_tiles_than_stages(step):
    """Otherwise every tile begins at stage 0, or fills the whole ring wherever it begins."""
    rubric = load_rubric()
    for sizes in (rubric.uneven[step], rubric.graded[step]):
        assert any(K == 64 and rubric.few_sms.get((step, (M, N, K)), 148) <= 2 for M, N, K in sizes)


@pytest.mark.parametrize("step", range(6, 11))
def test_check_and_grade_have_more_tiles_than_ctas_with_an_even_number_of_k_tiles(step):
    """Otherwise an accumulator phase that flips with every K tile would pass."""
    rubric = load_rubric()
    for sizes in (rubric.uneven[step], rubric.graded[step]):
        assert any(K // 64 % 2 == 0 and (step, (M, N, K)) in rubric.few_sms for M, N, K in sizes)


@pytest.mark.parametrize("step", range(2, 11))
def test_check_and_grade_reach_more_than_16_k_tiles(step):
    rubric = load_rubric()
    for sizes in (rubric.uneven[step], rubric.graded[step]):
        assert any(K > 1024 and K // 64 % 2 for _, _, K in sizes)


@pytest.mark.parametrize("step", range(5, 11))
def test_one_default_size_has_a_single_k_tile(step):
    rubric = load_rubric()
    single = [size for size in rubric.quick_sizes(step) if size[2] == 64]
    assert single and all(rubric.orders(step, size) == ("program", "adverse") for size in single)
    assert rubric.orders(step, (1024, 1024, 1024)) == ("program",)


# --- the step tests themselves ---


def run_tests(*arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    return done.returncode, done.stdout + done.stderr


def kernels_with(tmp_path, *changes):
    """The solutions with (old, new) pieces of text replaced."""
    text = SOLUTIONS.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "gemm_kernels.py"
    path.write_text(text)
    return path


def test_step_tests_pass_on_the_solutions():
    status, text = run_tests("tests/test_step01.py", "--kernels", SOLUTIONS, "-rs", "-vv")
    assert status == 0 and "1 passed, 1 skipped" in text, text
    assert "speed not measured" in text and "128x128x64" in text


def test_an_unknown_order_or_file_is_one_line():
    for arguments, words in (
        (("--order", "late"), "--order late: write program, adverse"),
        (("--kernels", "nowhere.py"), "--kernels nowhere.py: no such file"),
    ):
        status, text = run_tests("tests/test_step01.py", *arguments)
        assert status != 0 and words in text and "Traceback" not in text


def test_ids_hold_the_size():
    status, text = run_tests("tests", "-k", "1024", "--kernels", SOLUTIONS, "--collect-only", "-q", "-q")
    assert status == 0 and "test_step07.py: 2" in text


def test_large_sizes_need_full():
    status, text = run_tests("tests/test_step08.py", "-k", "4096", "--kernels", SOLUTIONS, "-rs")
    assert status == 0 and "add --full" in text and "passed" not in text


def test_an_untouched_step_says_so(tmp_path):
    path = tmp_path / "gemm_kernels.py"
    path.write_text(read_skeleton())
    status, text = run_tests("tests/test_step03.py", "tests/test_step05.py", "--kernels", path)
    assert status == 1 and "step 3 is not implemented yet" in text and "Traceback" not in text
    assert "2 errors" in text  # one for each step, whatever number of sizes it has


def test_a_hanging_kernel_is_a_failed_test(tmp_path):
    (wait,) = re.findall(
        r"^ +Tx\.ptx\.mbarrier\.try_wait\(mma_bar\.ptr_to\(\[0\]\), 0\)", SOLUTIONS.read_text(), re.M
    )
    path = kernels_with(tmp_path, (wait, f"{wait}\n{wait[:-2]}1)"))
    status, text = run_tests("tests/test_step01.py", "--kernels", path)
    assert status == 1 and "deadlock" in text and "1 failed" in text, text[-3000:]
