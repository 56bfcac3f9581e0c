"""The version of this lab: tirxlab's and, in a handout, the stamp of `./lab release`."""

from __future__ import annotations

import re
from pathlib import Path

from tirxlab.checkout import ROOT

STAMP = Path(__file__).parent / "data" / "release.txt"


def lab_version() -> str:
    """`0.1.0`, or `0.1.0+STAMP` in a handout; "unknown" without pyproject.toml."""
    try:
        text = (ROOT / "packages" / "tirxlab" / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    found = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    stamp = STAMP.read_text(encoding="utf-8").strip() if STAMP.exists() else ""
    return (found[1] if found else "unknown") + (f"+{stamp}" if stamp else "")
