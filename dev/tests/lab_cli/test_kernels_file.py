"""Kernels files as editors leave them: text that is not Python, byte order marks, other encodings."""

import tarfile

import pytest

from lab_cli.common import REFERENCE
from tirxlab.steps import SKELETON, StepError, parse_size, read_text, sections

STEP_1 = sections(REFERENCE.read_text())[1]
NOT_PYTHON = SKELETON.read_text().replace("with Tx.kernel():", "with Tx.kernel(:", 1)
TWICE = SKELETON.read_text() + "\n\n" + STEP_1
ON_A_FILE = [
    ["check", "1"],
    ["score"],
    ["demo"],
    ["bench"],
    ["compare", "1", "2"],
    ["inspect", "1"],
    ["trace", "1"],
    ["show", "1"],
    ["predict", "1"],
]


@pytest.mark.parametrize("command", ON_A_FILE, ids=lambda command: command[0])
def test_text_that_is_not_python_is_told_with_its_line_whatever_else_is_wrong(run, tmp_path, command):
    """Also where half of a paste left a step defined twice."""
    file = tmp_path / "mine.py"
    file.write_text(NOT_PYTHON + STEP_1)
    line = NOT_PYTHON[: NOT_PYTHON.index("Tx.kernel(:")].count("\n") + 1
    status, out, err = run(*command, "--kernels", str(file))
    assert (status, out) == (2, "")
    assert err == f"lab: mine.py:{line}: invalid syntax: with Tx.kernel(:\n"


@pytest.mark.parametrize("command", ["check", "score", "demo"])
def test_a_step_that_is_defined_twice_is_told_once_with_its_lines(run, tmp_path, command):
    file = tmp_path / "mine.py"
    file.write_text(TWICE)
    lines = [n for n, line in enumerate(TWICE.splitlines(), 1) if line.startswith("def hgemm_v1(")]
    status, out, err = run(command, *["1"] * (command == "check"), "--kernels", str(file))
    assert (status, out) == (2, "")
    assert f"hgemm_v1 is defined twice, in lines {lines[0]} and {lines[1]}: keep one of them" in err


def test_a_byte_order_mark_and_the_line_ends_of_windows_do_no_harm(run, tmp_path):
    file, packed = tmp_path / "mine.py", tmp_path / "handin.tar"
    text = REFERENCE.read_text()
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_text(file) == text
    status, out, _ = run("inspect", "1", "--as", "regs", "--kernels", str(file))
    assert status == 0 and "Asmem" in out
    assert run("handin", "--kernels", str(file), "--output", str(packed))[0] == 0
    with tarfile.open(packed) as tar:
        assert tar.extractfile("gemm_kernels.py").read().decode() == text


def test_a_file_in_another_encoding_names_its_first_bad_line(run, tmp_path):
    file = tmp_path / "mine.py"
    file.write_bytes(b"# one\n# caf\xe9\n")
    status, out, err = run("check", "1", "--kernels", str(file))
    assert (status, out) == (2, "")
    assert err == f"lab: {file}:2: this is not UTF-8 text; save the file as UTF-8\n"


def test_sizes_are_read_with_either_x():
    assert parse_size("256X256x64") == (256, 256, 64)
    with pytest.raises(StepError, match="is not a size"):
        parse_size("256*256*64")
