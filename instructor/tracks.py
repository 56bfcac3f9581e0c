"""The students' files of the tracks, made from their solutions: `python -m instructor.tracks [--check]`."""

import sys
from pathlib import Path

from instructor.skeleton import make_skeleton

ROOT = Path(__file__).resolve().parents[1]
FILES = {  # solution -> student's file
    ROOT / "instructor/solutions/ampere_kernels.py": ROOT / "tracks/ampere/kernels.py",
    ROOT / "instructor/solutions/hopper_kernels.py": ROOT / "tracks/hopper/kernels.py",
}


def differing() -> list[Path]:
    """Students' files that differ from what their solutions make."""
    return [
        student
        for solution, student in FILES.items()
        if not student.exists() or student.read_text() != make_skeleton(solution.read_text())
    ]


def write() -> None:
    for solution, student in FILES.items():
        student.write_text(make_skeleton(solution.read_text()))


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        write()
    stale = differing()
    print(
        "\n".join(f"{path} is not what its solution makes" for path in stale) or "the tracks are up to date"
    )
    sys.exit(bool(stale))
