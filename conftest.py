"""Bare `pytest` here means the project's tests: its own tests, and the student's on the reference kernels.

`pytest tests/...` means what it means to a student: gemm_kernels.py. A handout does not have this file.
"""

import os
from pathlib import Path

from tirxlab.checkout import environment

REFERENCE = Path(__file__).parent / "instructor" / "solutions" / "gemm_kernels.py"


def pytest_configure(config):
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]  # what tests start imports this copy too
    os.environ.setdefault(
        "LAB_TRIALS", "0"
    )  # a `check` that fails tries no repairs, but where it is asked to
    option, default = getattr(config.option, "kernels", None), Path(__file__).parent / "gemm_kernels.py"
    if config.args_source is config.ArgsSource.TESTPATHS and option == default and REFERENCE.exists():
        config.option.kernels = REFERENCE
