"""inspect_cuda.py: the greps of the course handout on step 7, the views, errors, clean output."""

import re
import subprocess
import sys

import pytest

import inspect_cuda
from tirxlab.cli.common import REFERENCE, ROOT

K = ["--kernels", str(REFERENCE)]


@pytest.fixture(scope="module")
def v7():
    return inspect_cuda.inspect(REFERENCE, 7, None, "cuda")


def grep(pattern: str, text: str) -> list[str]:
    """`grep pattern`."""
    return [line for line in text.splitlines() if pattern in line]


def calls(pattern: str, text: str) -> list[str]:
    """The hits of a grep that are statements of the kernel, not helper functions."""
    return [line.strip() for line in grep(pattern, text) if line.strip().endswith(";") and "asm" not in line]


def before(pattern: str, count: int, text: str) -> list[list[str]]:
    """`grep -B count pattern`: the lines before each hit."""
    lines = text.splitlines()
    return [lines[max(0, i - count) : i] for i, line in enumerate(lines) if pattern in line]


def test_grep_tcgen05_alloc_finds_one_call_under_warp_guards_alone(v7):
    assert len(calls("tcgen05_alloc", v7)) == 1
    guards = [line for line in before("tcgen05_alloc_cta_group_1((", 5, v7)[-1] if "if (" in line]
    assert [guard.strip() for guard in guards[-2:]] == [
        "if ((warp_id_in_cta >> 2) == 0) {",
        "if (warp_id_in_cta == 0) {",
    ]


def test_grep_mbarrier_init_finds_six_barriers_with_their_counts(v7):
    inits = [line for line in calls("ptx_mbarrier_init(", v7)]
    assert [int(re.search(r", (\d+)\);", line)[1]) for line in inits] == [1, 1, 1, 1, 1, 128]


def test_grep_b10_mbarrier_init_shows_thread_0_and_no_warpgroup_guard(v7):
    body = inspect_cuda.cuda_text(v7, body=True)
    for lines in before("ptx_mbarrier_init(", 10, body):
        guards = [
            line for line in lines if "if (" in line and "linear_idx" not in line and "blockIdx" not in line
        ]
        assert guards and all("thread_rank() == 0" in line for line in guards)


def test_grep_for_int_k_finds_two_loops_of_the_same_length(v7):
    loops = grep("for (int k", v7)
    assert len(loops) == 2
    assert all(re.search(r"k(_\d+)? < 16;", line) for line in loops)


@pytest.mark.parametrize(
    "pattern, count",
    [
        ("mbarrier_try_wait(", 4),
        ("tcgen05_mma_cta_1", 4),
        ("cp_async_bulk_tensor_g2s", 2),
        ("arrive_expect_tx", 1),
        ("tcgen05_dealloc", 1),
        ("cta_sync()", 2),
    ],
)
def test_other_greps_of_the_manual_method(v7, pattern, count):
    assert len(calls(pattern, inspect_cuda.cuda_text(v7, body=True))) == count


def test_text_is_clean_and_markers_show_only_when_asked(v7):
    assert "lab_src" not in v7 and "gemm_kernels.py" not in v7
    lines = inspect_cuda.inspect(REFERENCE, 7, None, "cuda", body=True, lines=True)
    shown = set(re.findall(r"// gemm_kernels\.py:(\d+)", lines))
    source = REFERENCE.read_text().splitlines()
    assert any("tcgen05.alloc" in source[int(number) - 1] for number in shown)
    assert lines.startswith('extern "C" __global__') and lines.endswith("}\n")


def test_ptx_is_complete_or_the_kernel_alone_and_without_markers():
    whole = inspect_cuda.inspect(REFERENCE, 1, None, "ptx")
    body = inspect_cuda.inspect(REFERENCE, 1, None, "ptx", body=True)
    assert whole.count(".version 9.") == 1 and ".target sm_100a" in whole
    assert body.startswith(".visible .entry kernel_kernel(") and whole.endswith(body)
    assert "@src" not in whole and "\0" not in whole
    marked = inspect_cuda.inspect(REFERENCE, 1, None, "ptx", lines=True)
    assert [line for line in marked.splitlines() if "// gemm_kernels.py:" not in line] == whole.splitlines()


def test_sass_holds_the_tensor_core_instructions():
    if inspect_cuda.find_nvdisasm() is None:
        pytest.skip("no nvdisasm here")
    sass = inspect_cuda.inspect(REFERENCE, 1, None, "sass")
    assert "UTCHMMA" in sass and "EXIT" in sass


def test_sass_without_a_disassembler_says_what_to_install(monkeypatch):
    monkeypatch.setattr(inspect_cuda, "find_nvdisasm", lambda: None)
    with pytest.raises(ValueError, match="pip install nvidia-cuda-nvdisasm"):
        inspect_cuda.inspect(REFERENCE, 1, None, "sass")


def test_resources_name_the_shared_buffers_at_their_offsets():
    text = inspect_cuda.inspect(REFERENCE, 7, (256, 256, 128), "regs")
    assert re.search(r"^  Asmem +1024 +32768  float16  2x128x64$", text, re.MULTILINE)
    assert re.search(r"^  ld2mma +48 +8  uint64   1$", text, re.MULTILINE)
    assert "(148, 1, 1), (256, 1, 1), (1, 1, 1)" in text


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["11"], "step 11 does not exist"),
        (["seven"], "invalid int value"),
        (["7", "big", *K], "'big' is not a size"),
        (["7", "--as", "llvm"], "invalid choice"),
        (["1", "512", *K], "M must be 128 (got 512)"),
        (["1", "--kernels", "nowhere.py"], "nowhere.py: no such file"),
    ],
)
def test_the_script_reports_bad_input_in_one_line(arguments, words):
    done = script(*arguments)
    assert done.returncode == 2 and words in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""


def test_the_script_prints_the_same_text_and_survives_head(v7):
    assert script("7", *K).stdout == v7
    command = f"'{sys.executable}' inspect_cuda.py 7 --kernels '{REFERENCE}' --as ptx | head -n 3"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == ""


def script(*arguments):
    command = [sys.executable, "inspect_cuda.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
