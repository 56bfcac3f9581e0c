"""A process that checks nothing does not import the checks."""

from __future__ import annotations

import subprocess
import sys

import pytest

LAUNCH = """
import sys, ptxsim
ptxsim.warm_up(checks={checks})
print("ptxsim.checks.all_checks" in sys.modules, "ptxsim.checks.race.detector" in sys.modules)
"""


@pytest.mark.parametrize("checks", [True, False])
def test_only_a_launch_with_checks_imports_them(checks):
    command = [sys.executable, "-c", LAUNCH.format(checks=checks)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(checks)] * 2
