"""The instruction table of packages/ptxsim/docs/model.md is the one that the simulator's tables give."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[4] / "packages" / "ptxsim" / "docs" / "model_table.py"


def test_the_table_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, "run packages/ptxsim/docs/model_table.py\n" + done.stderr
