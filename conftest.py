"""Bare `pytest` here means the project's tests: its own tests, and the student's on the reference kernels.

`pytest tests/...` means what it means to a student: gemm_kernels.py. A handout does not have this file.
"""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tirxlab.checkout import environment

REFERENCE = Path(__file__).parent / "instructor" / "solutions" / "gemm_kernels.py"
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # what a test says must not depend on how busy the computer is
gc.disable()  # while tests are collected, which are all kept


def pytest_configure(config):
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]  # what tests start imports this copy too
    sys.dont_write_bytecode = False  # else each of a thousand processes compiles this copy for itself
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault(
        "LAB_TRIALS", "0"
    )  # a `check` that fails tries no repairs, but where it is asked to
    option, default = getattr(config.option, "kernels", None), Path(__file__).parent / "gemm_kernels.py"
    if config.args_source is config.ArgsSource.TESTPATHS and option == default and REFERENCE.exists():
        config.option.kernels = REFERENCE


WITHOUT_THE_SIMULATOR = {
    "test_types.py",
    "test_wheel.py",
    "test_style.py",
    "test_layers.py",
    "test_public_files.py",
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Of two workers, the second begins in the middle: with what needs no simulator, while the first compiles
    it. Else both would.
    """
    others = [item for item in items if item.path.name not in WITHOUT_THE_SIMULATOR]
    first = [item for item in items if item.path.name in WITHOUT_THE_SIMULATOR]
    middle = len(items) // 2
    items[:] = others[:middle] + first + others[middle:]


def pytest_collection_finish():
    """Thousands of tests and what they import need not be looked through for garbage again and again."""
    gc.freeze()
    # Syntax trees, of which there are many, took four times as long; what lives long is searched by launches
    # (ptxsim.grid.processes), which give that a hundredth of the time.
    gc.set_threshold(50_000, 10, 1000)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """pytest looks for garbage five times over before it ends, which takes five seconds of each worker."""
    gc.freeze()
