"""The cache folder is $LAB_CACHE or the user's, and the simulator's compiled code stands in it."""

import os
import subprocess
import sys

import pytest

from tirxlab import cache_folder


@pytest.mark.parametrize("given", ["elsewhere", None])
def test_the_folder_is_the_one_asked_for_or_the_users(given, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    monkeypatch.delenv("LAB_CACHE", raising=False)
    if given:
        monkeypatch.setenv("LAB_CACHE", str(tmp_path / given))
    assert cache_folder.root() == tmp_path / (given or "users/tirx-lab")


def test_the_package_sets_the_simulators_folder_and_imports_little(tmp_path):
    """Each process of a check imports it: modules that it does not need delay all of them."""
    code = (
        "import os, sys, tirxlab; print(os.environ['PTXSIM_CACHE']);"
        "print(*sorted(sys.modules.keys() & {'json', 'zipfile', 'dataclasses', 'tirxlab.artifact', 'numpy'}))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PTXSIM_CACHE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"LAB_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(tmp_path / "ptxsim")], done.stdout + done.stderr
