"""Where this copy of the lab is: the folder with `packages/`, `gemm_kernels.py` and the rest."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
SOURCES = tuple(ROOT / "packages" / name / "src" for name in ("tirxlab", "ptxsim"))
IMPORTED = (ROOT, *SOURCES)  # what goes on sys.path, in this order


def environment() -> dict[str, str]:
    """This process's environment, changed so that a Python started with it imports this copy of the lab."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, IMPORTED))}
