"""Compiled artifacts on disk, keyed by everything that determines them.

The folder is $LAB_CACHE, or the user's cache folder (Linux: `~/.cache/tirx-lab`); deleting it is always safe.
A broken entry counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from tirxlab.artifact import FORMAT, Artifact, ArtifactError


def root() -> Path:
    """The folder for everything that can be regenerated: $LAB_CACHE, or the user's cache folder."""
    import platformdirs  # not at the top: commands that report a missing package must run without any

    given = os.environ.get("LAB_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("tirx-lab", appauthor=False)


def folder() -> Path:
    """The folder for artifacts."""
    return root() / "artifacts"


def key(**parts) -> str:
    """A hash of everything that determines the outcome; the parts must not contain absolute paths."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def get(name: str) -> Artifact | None:
    """The artifact kept under `name`; None if there is no valid one."""
    try:
        return Artifact.load(folder() / f"{name}.lab")
    except ArtifactError:
        return None


def put(name: str, artifact: Artifact) -> None:
    """Keep `artifact`; on a full or read-only disk the lab continues without the cache.

    The folder is private, because on a grading machine it holds the kernels of all students.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        folder().chmod(0o700)
        artifact.save(folder() / f"{name}.lab")
    except OSError:
        pass
