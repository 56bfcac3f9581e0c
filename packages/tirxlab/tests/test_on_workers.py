"""Tasks of a Dask cluster: bytes, for a process that knows the installed packages but not the course."""

import os
import pickle
import subprocess
import sys

import utils
from tirxlab import on_workers
from tirxlab.checkout import IMPORTED

CODE = "import sys; from tirxlab import on_workers; sys.stdout.buffer.write(on_workers.made({!r}))"


def test_a_worker_makes_a_task_wherever_it_was_started(tmp_path):
    code = CODE.format(on_workers.task(utils.prepare_data, 16, 16, 16))
    environment = {"PYTHONPATH": os.pathsep.join(map(str, IMPORTED[1:])), "LAB_DEVICE": "sim"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True)
    assert [data.shape for data in pickle.loads(done.stdout)] == [(16, 16)] * 3, done.stderr
