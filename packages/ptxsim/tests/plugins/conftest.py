"""What the tests of the three plugins for compilers share. A module names its PLUGIN and that COMPILER."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def kernels(request, tmp_path_factory):
    """The module's SCRIPT, imported from a file, as these compilers read sources."""
    compiler, plugin = request.module.COMPILER, request.module.PLUGIN
    for package in (compiler, "torch"):
        pytest.importorskip(package, reason=f"the extra [{plugin}] is not installed")
    folder, name = tmp_path_factory.mktemp("kernels"), f"{plugin}_kernels_for_test"
    (folder / f"{name}.py").write_text(request.module.SCRIPT)
    sys.path.insert(0, str(folder))
    yield __import__(name)
    sys.path.remove(str(folder))


@pytest.fixture
def command():
    """Runs `ptxsim` with these words."""

    def call(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-m", "ptxsim", *words], capture_output=True, text=True)

    return call
