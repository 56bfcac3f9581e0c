"""Where this lab lies: the folder with `packages/`, `gemm_kernels.py` and the rest, whatever is installed."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SOURCES = tuple(ROOT / "packages" / name / "src" for name in ("tirxlab", "ptxsim"))
IMPORTED = (ROOT, *SOURCES)  # what goes on sys.path, in this order


def environment() -> dict[str, str]:
    """This process's environment, for a Python that shall import this copy of the lab."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, IMPORTED))}
