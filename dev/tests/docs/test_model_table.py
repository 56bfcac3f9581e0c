"""The instruction table of docs/ptxsim-model.md is the one that the simulator's tables give."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "model_table.py"


def test_the_table_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, "run dev/docs/model_table.py\n" + done.stderr
