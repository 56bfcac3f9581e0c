"""Types hold together: mypy finds nothing in the packages, the commands, the grader and the tracks."""

import subprocess
import sys

from tirxlab.checkout import ROOT


def test_mypy_finds_nothing(tmp_path):
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--no-error-summary"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
