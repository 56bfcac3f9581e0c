"""The folder for what can be made again. Every process of the lab imports this, so it imports little."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """$LAB_CACHE, or the user's cache folder (Linux: `~/.cache/tirx-lab`)."""
    given = os.environ.get("LAB_CACHE")
    if given:
        return Path(given)
    import platformdirs  # not at the top: commands that report a missing package must run without any

    return platformdirs.user_cache_path("tirx-lab", appauthor=False)
