"""Fixtures of tests that run commands of `./lab`."""

import pytest

from tirxlab.cli import app
from tirxlab.cli.common import REFERENCE
from tirxlab.steps import read_skeleton, sections


@pytest.fixture
def run(capsys):
    """Runs a command: (exit status, output, notes)."""

    def call(*arguments):
        status = app.main(list(arguments))
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def kernels(tmp_path):
    """Makes a kernels file: the skeleton with steps taken from the reference, edited."""

    def make(*steps: int, edit=("", ""), name="gemm_kernels.py"):
        parts, theirs = sections(read_skeleton()), sections(REFERENCE.read_text())
        for step in steps:
            assert edit[0] in theirs[step]
            parts[step] = theirs[step].replace(*edit, 1)
        file = tmp_path / name
        file.write_text("".join(parts.values()))
        return str(file)

    return make
