"""A folder that a copy of `./lab` accepts as its virtual environment: it runs the Python of these tests.

With LAB_VENV=sys.prefix the copy would install itself, and a temporary folder with it, into that environment.
"""

import shlex
import sys
from pathlib import Path

from tirxlab.checkout import ROOT
from tirxlab.cli.requirements import PACKAGES

SCRIPT = """#!/bin/sh
case " $* " in *" -m pip "*) echo "tests install nothing" >&2; exit 1;; esac
exec {python} {before} "$@"
"""
COMMANDS = {"python": "", "python3": "", "pytest": "-m pytest"}


def stand_in_venv(folder: Path) -> Path:
    """Creates it in `folder`."""
    (folder / "bin").mkdir(parents=True)
    for name, before in COMMANDS.items():
        script = folder / "bin" / name
        script.write_text(SCRIPT.format(python=shlex.quote(sys.executable), before=before))
        script.chmod(0o755)
    parts = [ROOT / "packages" / package / "pyproject.toml" for package in PACKAGES]
    (folder / "lab-installed").write_bytes(b"".join(path.read_bytes() for path in parts))
    return folder
