"""A launch that is killed leaves none of its processes running."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ptxsim

PARENT = """
import os, signal, sys
from ptxsim.grid.processes import _die_with_parent
child = os.fork()
if child == 0:
    _die_with_parent()
    print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_workers_end_with_the_process_that_forked_them():
    environment = os.environ | {"PYTHONPATH": str(Path(ptxsim.__file__).resolve().parents[1])}
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=environment) as parent:
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        ready, _, _ = select.select([worker], [], [], 60)
        os.close(worker)
    assert ready
