"""What tests of the commands share."""

import pytest

from lab_cli import app


@pytest.fixture
def run(capsys):
    """Run a command: (exit status, output, notes)."""

    def call(*arguments):
        status = app.main(list(arguments))
        return status, *capsys.readouterr()

    return call
