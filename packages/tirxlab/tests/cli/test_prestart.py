"""Processes that `check` starts before it imports anything: started if they will be needed, ended with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import ends, that_know

from tirxlab.cli import prestart
from tirxlab.cli.common import REFERENCE, ROOT


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["check", "1"], True),
        (["check", "1-3", "--full"], True),
        (["check", "1", "--kernels", "x.py"], True),
        (["check"], True),
        (["check", "hopper", "1"], False),
        (["check", "all"], True),
        (["check", "1", "--device", "cuda"], False),
        (["check", "1", "--device=cuda"], False),
        (["score", "1"], False),
        ([], False),
    ],
)
def test_who_starts_processes_ahead(words, wanted):
    assert prestart.wanted(*words) is wanted


def test_the_command_itself_imports_no_arrays_and_no_compiler():
    """They are imported in parallel in the processes; here everything would wait for them."""
    code = (
        "import sys; from tirxlab.cli import app, check, forecast_line, prestart;"
        "from tirxlab.cli.common import usable_device; usable_device('sim');"
        "print(sorted({'numpy', 'numba', 'tvm', 'ptxsim.launch', 'utils'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_runner_takes_what_was_started_once(monkeypatch):
    from tirxlab.cli.runs import Runner

    prestart.start()
    with Runner(REFERENCE) as first:
        assert first.pool.workers and first.builder.student.running
        pool = first.pool
        with Runner(REFERENCE) as second:
            assert second.pool is not pool
    assert not pool.workers and prestart.take() is None


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this machine does not list its processes")
def test_a_wrong_argument_leaves_no_process_behind(tmp_path):
    """All of them know the folder for temporary files, by environment or through their confinement."""
    command = [sys.executable, ROOT / "packages/tirxlab/src/tirxlab/cli/__main__.py", "check", "99"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "step 99 does not exist" in done.stderr
    assert all(map(ends, that_know(str(tmp_path)))) and list(tmp_path.iterdir()) == []
