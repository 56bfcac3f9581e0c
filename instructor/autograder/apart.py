"""`python -m instructor.autograder.apart`: grades one submission, given and answered as pickles of our own.

A class is graded so: what one submission took of time and memory is then its own, and Dask's workers, daemons
to which multiprocessing gives no children, can grade too.
"""

import ctypes
import os
import pickle
import signal
import subprocess
import sys

from instructor.autograder.grading import Options, grade
from instructor.autograder.points import Grade
from instructor.autograder.submission import Submission
from tirxlab.checkout import ROOT, environment


def grade_apart(submission: Submission, options: Options) -> Grade:
    """`grade` in a process of its own; CalledProcessError if it fails."""
    command = [sys.executable, "-m", "instructor.autograder.apart"]
    given = pickle.dumps((submission, options))
    return pickle.loads(
        subprocess.run(
            command, input=given, stdout=subprocess.PIPE, cwd=ROOT, check=True, env=environment()
        ).stdout
    )


def main() -> None:
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if sys.platform == "linux":  # end with the worker
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    with answer:
        pickle.dump(grade(*pickle.load(sys.stdin.buffer)), answer)


if __name__ == "__main__":
    main()
