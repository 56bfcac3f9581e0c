"""Prints what to install, one requirement a line, read from pyproject.toml beside the `lab` script.

Run by `lab` before anything is installed, so it uses the standard library and pip's own TOML reader alone;
imported by run_modal.py for the image. The `dev` extra is included where the project's own tests are.
"""

from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def requirements(extras: tuple[str, ...] = ()) -> list[str]:
    """The pinned dependencies plus those of the named extras, as PEP 508 strings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


def local_extras() -> tuple[str, ...]:
    """The extras a working copy needs: `dev` in the project itself, none in a student's handout."""
    return ("dev",) if (ROOT / "dev" / "tests").is_dir() else ()


if __name__ == "__main__":
    print("\n".join(requirements(local_extras())))
