"""`./lab handin`: pack gemm_kernels.py, and nothing else, into handin.tar; list what would be scored."""

import io
import json as jsonlib
import tarfile
import time
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import STUDENT, JsonOption, KernelsOption, kernels_file, print_json, write_file
from tirxlab.steps import STEPS, StepError, is_untouched, may_have, read_text, refuse_syntax_errors, sections
from tirxlab.version import lab_version

MEMBER = "gemm_kernels.py"


def run(
    kernels: KernelsOption = None,
    student: Annotated[
        str,
        typer.Option(
            "--student",
            metavar="ID",
            help="your name or number, if your course wants it; kept in the archive",
        ),
    ] = "",
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="[handin.tar]")] = None,
    json: JsonOption = False,
) -> None:
    """Write handin.tar with just gemm_kernels.py in it, whatever the tests say; list what would be scored."""
    source = kernels_file(kernels)
    text = read_text(source)
    target = output or STUDENT.parent / "handin.tar"
    write_tar(target, text, student)
    listing, steps, problem = list_tar(target), *step_states(text)
    if json:
        print_json({"file": str(target), "listing": listing, "steps": steps, "problem": problem})
        return
    print(f"{target}:")
    print("\n".join(f"  {line}" for line in listing))
    if student:
        print(f"  student: {student}")
    if problem:
        print(f"Careful: {problem}. The file is packed as it is.")
    points = sum(row["points"] for row in steps if row["state"] == "written")
    for row in steps:
        print(f"  step {row['step']:>2}  {row['points']:>3} points  {row['state']}")
    print(
        f"Steps that would be scored carry {points} of {sum(row['points'] for row in steps)} points; "
        "`./lab score` shows what they earn."
    )


def write_tar(target: Path, text: str, student: str = "") -> None:
    """Write one member, readable by all, without an owner; if that fails, UserError, and the old file stays.

    The lab's version and the student go into the member's pax header `comment`, as JSON.
    """
    data = text.encode("utf-8")
    info = tarfile.TarInfo(MEMBER)
    info.size, info.mode, info.mtime = len(data), 0o644, int(time.time())
    info.pax_headers = {"comment": jsonlib.dumps({"lab": lab_version(), "student": student})}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(data))
    write_file(target, packed.getvalue())


def list_tar(target: Path) -> list[str]:
    """What `tar tvf` would show."""
    with tarfile.open(target) as tar:
        return [
            f"-rw-r--r-- {m.size:>8} {time.strftime('%Y-%m-%d %H:%M', time.localtime(m.mtime))} {m.name}"
            for m in tar.getmembers()
        ]


def step_states(text: str) -> tuple[list[dict], str]:
    """(a row per step with its points and state, what is wrong with the file as a whole or "")."""
    from tirxlab.rubric import load_rubric

    points = load_rubric().points
    problem = ""
    try:
        refuse_syntax_errors(text, MEMBER)
        sections(text)
    except StepError as error:
        problem = f"{error}; no step of such a file can score"

    def state(step: int) -> str:
        if problem or not may_have(text, step):
            return "cannot be read" if problem else "missing"
        return "not implemented yet" if is_untouched(text, step) else "written"

    return [{"step": s, "points": points[s], "state": state(s)} for s in STEPS], problem
