"""`./lab skeleton`: generate gemm_kernels.py and its pristine copy from the solutions; `--check` compares."""

from typing import Annotated

import typer

from tirxlab.cli.common import REFERENCE, STUDENT, UserError
from tirxlab.steps import SKELETON, read_skeleton, read_text, write_skeleton


def run(
    check: Annotated[bool, typer.Option("--check", help="only compare; exit 1 if out of date")] = False,
) -> None:
    """Generate the students' gemm_kernels.py from instructor/solutions. Never overwrites an edited file."""
    from instructor.skeleton import MarkerError, make_skeleton

    try:
        text = make_skeleton(read_text(REFERENCE))
    except (MarkerError, SyntaxError) as error:
        raise UserError(f"{REFERENCE.relative_to(STUDENT.parent)}: {error}") from None
    stale = [] if STUDENT.exists() and read_text(STUDENT) == text else [STUDENT]
    stale += [] if read_skeleton() == text else [SKELETON]
    if check:
        for path in stale:
            print(f"{path.relative_to(STUDENT.parent)} is not what the solutions give; run ./lab skeleton")
        raise typer.Exit(1 if stale else 0)
    if STUDENT in stale and is_edited():
        raise UserError(f"{STUDENT.name} has been edited; move it away first, it would be overwritten")
    for path in stale:
        if path == SKELETON:
            write_skeleton(text)
        else:
            path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(STUDENT.parent)}")
    if not stale:
        print("nothing to do: gemm_kernels.py is what the solutions give")


def is_edited() -> bool:
    """Whether gemm_kernels.py is anything but the last skeleton that was generated."""
    return STUDENT.exists() and read_text(STUDENT) != read_skeleton()
