"""What `check` starts before it imports anything: started when it will be needed, gone with the command."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tirxlab.cli import ahead
from tirxlab.cli.common import REFERENCE, ROOT


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["check", "1"], True),
        (["check", "1-3", "--full"], True),
        (["check", "1", "--kernels", "x.py"], True),
        (["check"], False),
        (["check", "hopper", "1"], False),
        (["check", "all"], True),
        (["check", "1", "--device", "cuda"], False),
        (["check", "1", "--device=cuda"], False),
        (["score", "1"], False),
        ([], False),
    ],
)
def test_who_starts_processes_ahead(words, wanted):
    assert ahead.wanted(*words) is wanted


def test_the_command_itself_imports_no_arrays_and_no_compiler():
    """They are imported side by side in the processes; here everybody would wait for them."""
    code = (
        "import sys; import tirxlab.cli.app, tirxlab.cli.check, tirxlab.cli.foretell, tirxlab.cli.ahead;"
        "from tirxlab.cli.common import usable_device; usable_device('sim');"
        "print(sorted({'numpy', 'numba', 'tvm', 'ptxsim.launch', 'utils'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_runner_takes_what_was_started_once(monkeypatch):
    from tirxlab.cli.runs import Runner

    ahead.start()
    with Runner(REFERENCE) as first:
        assert first.pool.workers and first.builder.student.running
        pool = first.pool
        with Runner(REFERENCE) as second:
            assert second.pool is not pool
    assert not pool.workers and ahead.take() is None


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="this machine does not list its processes")
def test_a_wrong_argument_leaves_no_process_behind(tmp_path):
    """All of them know the folder for temporary files, by environment or by what shuts them in."""
    command = ["env", f"TMPDIR={tmp_path}", str(ROOT / "lab"), "check", "99"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "step 99 does not exist" in done.stderr
    deadline = time.monotonic() + 10
    while (left := _that_know(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == [] == list(tmp_path.iterdir())


def _that_know(path: Path) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(path).encode() in (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found
