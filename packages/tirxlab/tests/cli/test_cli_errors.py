"""Every command: its help, and one line with exit status 2 for input that it cannot use."""

import subprocess
import sys

import pytest

from instructor.commands import SUMMARIES
from tirxlab.cli import app
from tirxlab.cli.common import REFERENCE, ROOT, parse_steps

COMMANDS = app.commands()
K = ["--kernels", str(REFERENCE)]


def run(capsys, *arguments):
    """(exit status, standard output, standard error)."""
    status = app.main(list(arguments))
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_the_command_and_explains_it(capsys, name):
    status, out, _ = run(capsys, name, "--help")
    assert status == 0
    assert f"lab {name}" in out and len(out.splitlines()) >= 5


def test_every_command_of_the_table_is_there():
    assert {*app.OWN, *SUMMARIES} == set(COMMANDS)


def test_no_arguments_show_the_help(capsys):
    status, out, _ = run(capsys)
    assert status == 0 and "Commands" in out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["chekc"], "chekc"),
        (["check", "11"], "step 11 does not exist"),
        (["check", "x"], "'x' is not a step"),
        (["check", ""], "'' is not a step"),
        (["check", "0"], "step 0 does not exist"),
        (["check", "3", *K, "--size", "12x"], "is not a size"),
        (["check", "3", *K, "--size", "0"], "is not a size"),
        (["check", "3", *K, "--size", "100"], "M must be a multiple of 128 (got 100)"),
        (["check", "3", *K, "--order", "fast"], "is not an order"),
        (["check", "3", *K, "--orders", "-1"], "--orders"),
        (["check", "3", *K, "--device", "tpu"], "unknown device 'tpu'"),
        (["check", "3", "--kernels", "nowhere.py"], "nowhere.py: no such file"),
        (["check", "3", *K, "--color"], "No such option"),
        (["inspect", "7", *K, "--as", "llvm"], "no view 'llvm'"),
        (["inspect", "1", "1024", *K], "M must be 128 (got 1024)"),
        (["inspect", "1,2", *K], "takes one step"),
        (["compare", "7", *K], "two different steps or more"),
        (["compare", "1", "2", *K], "step 1 at 1024"),
        (["trace", "12", *K], "step 12 does not exist"),
        (["reset", "12"], "step 12 does not exist"),
        (["port", "nowhere.py"], "nowhere.py: no such file"),
        (["handin", "--kernels", "nowhere.py"], "nowhere.py: no such file"),
        (["score", "z"], "'z' is not a step"),
        (["check", "4-2"], "write the smaller number first"),
        (["check", "1-30"], "step 11 does not exist"),
        (["check", "1,,2"], "'1,,2' is not a step"),
        (["grabe", "x"], "no command 'grabe'; did you mean grade?"),
        (["tarce", "x"], "no command 'tarce'; did you mean trace?"),
        (["xyz"], "no command 'xyz' (see ./lab --help)"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys, arguments, words):
    status, out, err = run(capsys, *arguments)
    assert status == 2, (out, err)
    assert words in err
    assert err.startswith("lab: ") and err.count("\n") == 1 and out == ""


@pytest.mark.parametrize("command", ["trace", "show", "predict", "inspect"])
def test_a_missing_argument_says_what_it_is(capsys, command):
    status, _, said = run(capsys, command)
    assert status == 2 and "Missing argument 'S': a step 1..10" in said and said.count("\n") == 1


def test_steps_may_be_a_range():
    assert parse_steps("1-3, 7,2") == [1, 2, 3, 7]


def test_help_is_a_word_too(capsys):
    assert run(capsys, "help") == run(capsys, "--help")


TESTS = "import sys; sys.modules['ml_dtypes'] = None; import pytest; pytest.main(['tests/test_step01.py'])"


def test_a_package_that_pytest_misses_is_told_in_one_line():
    done = subprocess.run([sys.executable, "-c", TESTS], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"the environment {sys.prefix} is damaged: " in done.stderr and "ml_dtypes" in done.stderr


def test_another_python_is_told_in_one_line():
    """As when the environment is not activated: all packages are missing (-S)."""
    command = [sys.executable, "-S", "inspect_cuda.py", "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "this is not the lab's Python; run `. .venv/bin/activate` first" in done.stderr


def test_untouched_step_says_so(capsys, kernels):
    status, _, err = run(capsys, "check", "4", "--kernels", kernels())
    assert status == 1 and err.startswith("lab: step 4 is not implemented yet") and err.count("\n") == 1


@pytest.mark.parametrize(
    "text, words",
    [
        ("def hgemm_v1(M, N, K):\n    return (\n", "mine.py:2: '(' was never closed"),
        ("import nothing_like_this\n", "mine.py:1: ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("x = 1 / 0\n", "mine.py:1: ZeroDivisionError"),
        ("def hgemm_v2(M, N, K):\n    pass\n", "mine.py has no hgemm_v1(M, N, K)"),
        ("def hgemm_v1(M):\n    pass\n\n\ndef hgemm_v1(M):\n    pass\n", "hgemm_v1 is defined twice"),
    ],
)
def test_a_kernels_file_that_cannot_be_used_names_the_place(capsys, tmp_path, text, words):
    file = tmp_path / "mine.py"
    file.write_text(text)
    status, out, err = run(capsys, "check", "1", "--kernels", str(file))
    assert status == 2 and words in err and err.count("\n") == 1 and out == ""


def test_help_imports_no_simulator_and_no_compiler():
    """`./lab --help` answers at once: the commands' own modules, which need
    numba or TVM, are not imported.
    """
    code = (
        "import sys; from tirxlab.cli.app import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    loaded = set(done.stderr.split())
    assert "check" in done.stdout and "tirxlab.cli.app" in loaded
    assert not loaded & {"numba", "tvm", "numpy", "tirxlab.cli.check"}


def test_a_mistyped_command_gets_the_near_one(capsys):
    answer = "lab: no command 'chek'; did you mean check? (see ./lab --help)\n"
    assert run(capsys, "chek", "1") == (2, "", answer)
