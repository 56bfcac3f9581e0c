"""Compiled artifacts on disk, found again by what went into them.

The folder is $LAB_CACHE, or the user's cache folder (Linux: `~/.cache/tirx-lab`); deleting it is always safe.
A broken entry counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from tirxlab.artifact import FORMAT, Artifact, ArtifactError


def root() -> Path:
    """Where all that can be made again is kept: $LAB_CACHE, or the user's cache folder."""
    import platformdirs  # here: a command that only says what is missing needs no package

    given = os.environ.get("LAB_CACHE")
    return Path(given) if given else platformdirs.user_cache_path("tirx-lab", appauthor=False)


def folder() -> Path:
    """Where artifacts are kept."""
    return root() / "artifacts"


def key(**parts) -> str:
    """A name for everything that decides the outcome; the parts must hold no absolute path."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def get(name: str) -> Artifact | None:
    """The artifact kept under `name`, if there is a sound one."""
    try:
        return Artifact.load(folder() / f"{name}.lab")
    except ArtifactError:
        return None


def put(name: str, artifact: Artifact) -> None:
    """Keep `artifact`; on a full or read-only disk the lab goes on without the cache.

    Nobody else may look: where a course grades, there are kernels of all students here.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        folder().chmod(0o700)
        artifact.save(folder() / f"{name}.lab")
    except OSError:
        pass
