"""The parts of ptxsim's pages that scripts write are up to date: the table of instructions, the reference."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[4] / "packages" / "ptxsim" / "docs"


@pytest.mark.parametrize("script", ["model_table.py", "api.py"])
def test_a_page_is_up_to_date(script):
    done = subprocess.run(
        [sys.executable, DOCS / script, "--check"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"run packages/ptxsim/docs/{script}\n" + done.stderr
