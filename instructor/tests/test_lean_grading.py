"""The modules that grading a submission loads."""

import os
import subprocess
import sys
from pathlib import Path

from tirxlab.checkout import environment

SCRIPT = """
import sys
from kernel_variants import solved
from instructor.autograder.grading import Options, grade
from instructor.autograder.submission import Submission
if __name__ == "__main__":
    (step,) = grade(Submission("", solved(1)), Options(steps=(1,))).steps
    print(step.right, {"numpy", "numba", "tvm", "ptxsim.launch"} & set(sys.modules))
"""


def test_the_process_that_grades_loads_no_simulator():
    """Only the pool's processes do; in the grading process it would delay the first kernel by a second."""
    ours = environment()
    ours["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=ours)
    assert done.stdout == "True set()\n", done.stderr
