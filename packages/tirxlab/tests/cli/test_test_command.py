"""`./lab test` in a handout: which steps it tests, the progress bar on a terminal, and lines that fit."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tirxlab.cli import test as command
from tirxlab.cli.common import ROOT, Paper, UserError, hang
from tirxlab.cli.pytest_bar import cost_of
from tirxlab.cli.runs import BUILD_COST
from tirxlab.steps import UntouchedStep

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def test_without_a_name_the_written_steps_are_tested(kernels, capsys):
    given, left = command.written_first(Path(kernels(1, 4)), ["-x", "-k", "1024"])
    assert given == ["tests/test_step01.py", "tests/test_step04.py", "-x", "-k", "1024"]
    assert sorted(left) == [2, 3, 5, 6, 7, 8, 9, 10]
    assert "not run: steps 2-3, 5-10 (not implemented yet)" in capsys.readouterr().err


def test_a_test_that_is_named_is_run_whatever_is_written(kernels):
    for named in ("tests/test_step03.py", "tests/test_step03.py::test_result", "tests"):
        assert command.written_first(Path(kernels(1)), ["-x", named]) == (["-x", named], {})


def test_an_untouched_file_is_one_line(kernels):
    with pytest.raises(UntouchedStep, match="none of the steps 1-10 is implemented yet"):
        command.written_first(Path(kernels()), [])


@pytest.mark.parametrize("name", command.PARTS)
def test_a_part_of_the_project_is_named_by_one_word(name, monkeypatch, tmp_path):
    (folder,) = command.step_files([name])
    assert folder == command.PARTS[name] and any((ROOT / folder).rglob("test_*.py"))
    assert command.step_files(["-k", name, "-x"]) == ["-k", name, "-x"]
    assert command.step_files([name, "1"]) == [folder, "tests/test_step01.py"]
    monkeypatch.setattr(command, "ROOT", tmp_path)
    with pytest.raises(UserError, match=f"tests of {name} are not in this copy"):
        command.step_files([name])


def test_whole_parts_run_on_all_cores(monkeypatch):
    monkeypatch.setattr(command.os, "sched_getaffinity", lambda _: range(3), raising=False)
    for named in ([], [command.PARTS["ptxsim"]], list(command.PARTS.values())):
        assert command.parallel(named)[:2] == ["-n", "3"]
    for named in (["tests/test_step01.py"], ["packages/ptxsim/tests", "-x"]):
        assert command.parallel(named) == []


def test_workers_on_all_cores_have_one_thread_each_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert command.surroundings(True)["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_NUM_THREADS" not in command.surroundings(False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    assert command.surroundings(True)["OPENBLAS_NUM_THREADS"] == "3"


SAMPLE = """
import pytest
@pytest.mark.parametrize("n", range(3))
def test_it(n):
    assert n != 1
"""


def test_the_bar_takes_the_place_of_the_dots_and_failures_are_told(tmp_path):
    """The bar goes to a file here, which is not a terminal: it stays silent, and counts."""
    file, log = tmp_path / "test_sample.py", tmp_path / "log"
    file.write_text(SAMPLE)
    code = (
        "import os, sys, pytest; from tirxlab.cli.pytest_bar import Bar; "
        f"bar = Bar(os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT)); "
        f"status = pytest.main(['-q', '-p', 'no:cacheprovider', '--rootdir', {str(tmp_path)!r}, {str(file)!r}"
        "], plugins=[bar]); "
        "task = bar.bar.tasks[0]; print(task.completed == task.total, task.fields); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "test_it[1]" in done.stdout and "1 failed, 2 passed" in done.stdout
    assert "True {'count': 3, 'jobs': 3}" in done.stdout
    assert ".F." not in done.stdout


def test_a_test_that_will_be_skipped_counts_nothing():
    class Item:
        cost = None

    assert cost_of(Item()) == 0.0 and cost_of(object()) == BUILD_COST


def test_the_step_tests_say_what_they_cost(tmp_path):
    """test_speed is skipped on the simulator; so is a size over 1024, unless it is uneven."""
    plugin = tmp_path / "costs.py"
    plugin.write_text(
        "def pytest_collection_finish(session):\n"
        "    for item in session.items:\n"
        "        print('cost', item.name, item.cost)\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ['PYTHONPATH']}"}
    options = ["tests/test_step03.py", "--collect-only", "-p", "costs", "-s", "--device", "sim"]
    done = subprocess.run([*PYTEST, *options], capture_output=True, text=True, cwd=ROOT, env=env)
    costs = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("cost "))
    assert costs["test_result[256]"] == str(256**3) and costs["test_result[2048]"] == "None"
    assert {cost for name, cost in costs.items() if name.startswith("test_speed")} == {"None"}


def test_on_a_terminal_a_long_line_goes_on_further_in():
    said = "error: race: two accesses\n  at kernels.py:3: Tx.copy(D[:, :], Dreg[:]); no barrier between them"
    assert hang(said, 40).splitlines() == [
        "error: race: two accesses",
        "  at kernels.py:3: Tx.copy(D[:, :],",
        "      Dreg[:]); no barrier between them",
    ]
    for terminal, lines in ((True, 3), (False, 2)):
        paper = Paper(file=io.StringIO(), width=40, force_terminal=terminal, soft_wrap=not terminal)
        paper.print(said, markup=False)
        assert paper.file.getvalue().count("\n") == lines
