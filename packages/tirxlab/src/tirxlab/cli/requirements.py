"""Prints what to install, one requirement a line, read from the pyproject.toml of the two packages.

`lab` runs it before anything is installed, so it uses only the standard library and pip's own TOML reader;
run_modal.py imports it for the image. The `dev` extra is included if the project's own tests are there.
"""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[5]
PACKAGES = ("ptxsim", "tirxlab")


def requirements(extras: tuple[str, ...] = ()) -> list[str]:
    """What both packages require, plus tirxlab's named extras, as PEP 508 strings, each once."""
    found = []
    for package in PACKAGES:
        project = _project(package)
        found += project["dependencies"]
        for extra in extras:
            found += project.get("optional-dependencies", {}).get(extra, [])
    return [line for line in dict.fromkeys(found) if not line.startswith(PACKAGES)]


def editable() -> list[str]:
    """The two packages themselves, as pip's lines, in the lab's folder: their sources stay where they are."""
    return [f"-e ./packages/{package}" for package in PACKAGES]


def local_extras() -> tuple[str, ...]:
    """The extras a working copy needs: `dev` in the project itself, none in a student's handout."""
    return ("dev",) if (ROOT / "research").is_dir() else ()


def _project(package: str) -> dict:
    file = ROOT / "packages" / package / "pyproject.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["project"]


if __name__ == "__main__":
    print("\n".join([*requirements(local_extras()), *editable()]))
