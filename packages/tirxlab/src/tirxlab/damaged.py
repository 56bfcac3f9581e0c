"""The one-line message for a package of the environment that cannot be imported."""

from __future__ import annotations

import sys

OURS = ("tirxlab", "ptxsim", "tracks", "instructor", "utils", "inspect_cuda")


def told(error: Exception) -> str:
    """`the environment .venv is damaged: No module named 'numpy'; ...`; outside it, how to activate it."""
    said = " ".join(str(error).split())[:300] or type(error).__name__
    if sys.prefix == sys.base_prefix:
        return f"{said}: {sys.executable} is not the lab's Python; run `. .venv/bin/activate` first"
    return f"the environment {sys.prefix} is damaged: {said}; remove that folder and run ./lab again"


def is_ours(error: ImportError) -> bool:
    """Whether the import that failed is of the lab's own code, which makes it a bug in the lab."""
    return (error.name or "").split(".")[0] in OURS
