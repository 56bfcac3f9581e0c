"""`python -m instructor.autograder.apart`: grades one submission; input and output are pickles of our own.

Every submission of a class is graded like this: its time and memory are then measured separately, and Dask's
workers can grade, too, although they are daemons, to which multiprocessing gives no children.
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
    if sys.platform == "linux":  # die with the worker
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    with answer:
        pickle.dump(grade(*pickle.load(sys.stdin.buffer)), answer)


if __name__ == "__main__":
    main()
