"""Kernels files as editors leave them: text that is not Python, byte order marks, other encodings."""

import contextlib
import subprocess
import sys
import tarfile
import time

import pytest

from tirxlab.cli.common import REFERENCE, ROOT
from tirxlab.steps import StepError, may_have, parse_size, read_skeleton, read_text, sections

STEP_1 = sections(REFERENCE.read_text())[1]
NOT_PYTHON = read_skeleton().replace("with Tx.kernel():", "with Tx.kernel(:", 1)
TWICE = read_skeleton() + "\n\n" + STEP_1
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
    """Also if a partial paste left a step defined twice."""
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


@pytest.mark.parametrize("text", ["", "x = 1\n", TWICE], ids=["empty", "no steps", "twice"])
def test_reset_all_begins_anew_where_steps_are_lost(run, tmp_path, text):
    file = tmp_path / "mine.py"
    file.write_text(text)
    status, _, err = run("reset", "3", "--kernels", str(file))
    assert status == 2 and file.read_text() == text
    assert "begin anew with ./lab reset all" in err or "defined twice" in err
    assert run("reset", "all", "--kernels", str(file))[0] == 0
    assert file.read_text() == read_skeleton()
    assert file.with_name("mine.py.bak").read_text() == text


TOP = {  # text at the top of the file -> the rest of the message
    "from mylib import helper": "No module named 'mylib': all of your code goes into this file",
    "from .mylib import helper": "no known parent package: all of your code goes into this file",
    "from tirxlab import TMABarr": "; did you mean TMABar?",
    "name = input('your name? ')": "EOF when reading a line: there is no keyboard here",
}


@pytest.mark.parametrize("line", TOP)
def test_errors_at_the_top_of_the_file_come_with_a_remedy(run, tmp_path, line):
    file = tmp_path / "mine.py"
    file.write_text(f"{line}\n{REFERENCE.read_text()}")
    status, out, err = run("check", "1", "--device", "sim", "--kernels", str(file))
    assert status == 2 and out == "" and err.startswith("lab: mine.py:1: ") and TOP[line] in err


def test_the_tests_tell_of_a_file_in_another_encoding_too(tmp_path):
    file = tmp_path / "mine.py"
    file.write_bytes(REFERENCE.read_text().encode("utf-16"))
    command = [sys.executable, "-m", "pytest", "-q", "tests/test_step01.py", "--device", "sim"]
    done = subprocess.run([*command, "--kernels", str(file)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "this is not UTF-8 text; save the file as UTF-8" in done.stdout
    assert "Traceback" not in done.stdout and "request" not in done.stdout


@pytest.mark.parametrize(
    "head", ["def hgemm_v3 (M, N, K):", "def  hgemm_v3(M, N, K):", "def hgemm_v3(\n    M: int, N, K\n):"]
)
def test_a_step_is_found_however_its_head_is_spaced(head):
    text = read_skeleton().replace("def hgemm_v3(M, N, K):", head)
    assert sections(text)[3].startswith(head) and list(sections(text)) == list(range(11))


@pytest.mark.parametrize("quotes", ['"""', "'''", 'r"""'])
def test_an_old_version_in_a_string_is_no_step(quotes):
    old = (
        f'{quotes}my first try, isn\'t it\ndef hgemm_v1(M, N, K):\n    # "old" {quotes[-1]}\n{quotes[-3:]}\n'
    )
    text = f"# it's the head\n{old}{STEP_1}"
    compile(text, "kernels", "exec")
    found = sections(text)
    assert list(found) == [0, 1] and found[1] == STEP_1 and found[0] + found[1] == text
    with pytest.raises(StepError, match="defined twice"):
        sections(text, broken=True)
    with pytest.raises(StepError, match="defined twice"):
        sections(text + STEP_1)


def test_behind_a_string_that_does_not_end_steps_are_found():
    for broken in ('"""', "'''", "x = 'open\n"):
        assert list(sections(f"{broken}\n{STEP_1}def hgemm_v2(M, N, K):\n    pass\n")) == [0, 1, 2]


def test_a_text_of_strings_is_taken_apart_at_once():
    start = time.process_time()
    for text in ('"""x\n"""' * 100_000, '"\\"' * 250_000, 'def hgemm_v1(\n"""\n"""\n' * 40_000):
        with contextlib.suppress(StepError):
            sections(text)
    assert time.process_time() - start < 20  # it takes 2


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("hgemm_v3 = functools.partial(ringed, 2)", True),
        ("hgemm_v2, hgemm_v3 = map(made, (2, 3))", True),
        ("if True:\n    def hgemm_v3(M, N, K):\n        pass", True),
        ('for n in range(3, 5):\n    globals()[f"hgemm_v{n}"] = made(n)', True),
        ("def hgemm_v2(M, N, K):\n    pass", False),
        ("x = 1", False),
    ],
)
def test_a_step_may_be_bound_otherwise_than_by_its_def(text, has):
    assert may_have(text, 3) is has
