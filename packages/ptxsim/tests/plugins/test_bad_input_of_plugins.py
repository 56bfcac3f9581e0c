"""`ptxsim cute`, `tilelang` and `triton` refuse bad input alike."""

import pytest


@pytest.mark.parametrize("plugin", ["cute", "tilelang", "triton"])
@pytest.mark.parametrize("words", [["nowhere.py"], ["--chip", "v100", __file__], ["--order", "x", __file__]])
def test_bad_input_gives_one_line(command, plugin, words):
    done = command(plugin, *words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ptxsim: ")
