"""What grading a submission loads."""

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
    """Those of the pool do, each for itself: a second would go by before the first kernel is built."""
    ours = environment()
    ours["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=ours)
    assert done.stdout == "True set()\n", done.stderr
