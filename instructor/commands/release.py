"""`./lab release DIR`: write the students' handout: without `instructor/`, `research/` and solutions."""

import datetime
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tirxlab.cli.common import ROOT, STUDENT, UserError, output, read_text
from tirxlab.steps import read_skeleton


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a folder that is new or empty")],
    no_slides: Annotated[bool, typer.Option("--no-slides", help="leave the lectures' PDFs out")] = False,
) -> None:
    """Write the handout, with this version stamped in; nothing is written if it would contain a solution.

    Slides are built anew from their sources, which are searched too; existing PDFs are not copied.
    """
    from instructor import handout

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is not empty; name a folder that does not exist yet")
    if read_text(STUDENT) != read_skeleton():
        raise UserError("gemm_kernels.py is not the skeleton: ./lab skeleton, or ./lab reset all")
    names = handout.files()
    with tempfile.TemporaryDirectory(dir=folder.parent if folder.parent.is_dir() else None) as scratch:
        made = Path(scratch) / "handout"
        handout.copy(names, made, version_stamp())
        built = [] if no_slides else slides(names, made)
        found = handout.leaks(made, built)
        if found:
            shown = "\n".join(f"  {line}" for line in found[:20])
            raise_leaks(found, shown)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, folder, dirs_exist_ok=True)
    count = sum(path.is_file() for path in folder.rglob("*"))
    output().print(f"wrote {folder}: {count} files, version {version_stamp()}", markup=False)
    if no_slides:
        output().print("left out: the slides (--no-slides); the front page names them", markup=False)


def slides(names: list[str], made: Path) -> list[str]:
    """Builds the lectures' PDFs; if typst is missing, it is installed for this one use."""
    from instructor import handout

    try:
        return handout.build_pdfs(names, made)
    except handout.NoTypst as error:
        raise UserError(f"the slides cannot be built: {error}; --no-slides leaves them out") from None


def raise_leaks(leaks: list[str], shown: str) -> None:
    output().print(shown, markup=False)
    raise UserError(f"{len(leaks)} places would reveal a solution or a hidden size; nothing was written")


def version_stamp() -> str:
    """The day and, in a git repository, the commit."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    commit = done.stdout.strip() if done.returncode == 0 else ""
    return ".".join(filter(None, [datetime.date.today().strftime("%Y%m%d"), commit]))
