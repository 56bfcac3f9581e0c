"""What students get: the lab without what is the course's, and the check that nothing of that leaves.

A solution would leave if LINES lines of one of its TODO regions stand together in a file, a hidden size if it
is written in any of the usual ways. Text is read. PDFs are not copied: they are built anew from their Typst
sources, which are text and leave too. Any other file that is not text is refused.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from instructor.autograder.plan import load_hidden
from tirxlab.checkout import ROOT
from tirxlab.version import STAMP

LEFT_OUT = (
    "instructor",
    "research",
    ".ci",
    "conftest.py",
    "packages/ptxsim/tests",
    "packages/tirxlab/tests",
    "packages/tirxlab/bench",
)
COMMANDS = (
    "skeleton",
    "grade",
    "grade_all",
    "package",
    "release",
    "figures",
)  # of the course, in tirxlab/cli
LINES = 4
_REGION = re.compile(r"# TODO\[begin\](.*?)# TODO\[end\]", re.DOTALL)


def files() -> list[str]:
    """Paths of the handout, relative to the lab: what git tracks, else all, less what is the course's."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    tracked = [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else []
    found = tracked or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and _plain(p)]
    return sorted(name for name in found if not _of_the_course(name) and (ROOT / name).is_file())


def _plain(path: Path) -> bool:
    return not {".venv", ".git", "__pycache__", ".ruff_cache", ".pytest_cache"} & set(path.parts)


def _of_the_course(name: str) -> bool:
    left_out = (*LEFT_OUT, *(f"packages/tirxlab/src/tirxlab/cli/{command}.py" for command in COMMANDS))
    return any(name == path or name.startswith(path + "/") for path in left_out)


def copy(names: list[str], target: Path, stamp: str) -> None:
    """Copies the files, but no PDFs, and stamps the lab's version."""
    for name in names:
        if name.endswith(".pdf"):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    (target / STAMP.relative_to(ROOT)).write_text(stamp + "\n", encoding="utf-8")


def build_pdfs(names: list[str], target: Path) -> tuple[list[str], list[str]]:
    """(PDFs built in `target` from the sources that were copied there, those left out).

    Without typst all are left out, and always those that have no source of the same name.
    """
    try:
        import typst
    except ModuleNotFoundError:
        typst = None
    wanted, built = [name for name in names if name.endswith(".pdf")], []
    for name in wanted:
        source = (target / name).with_suffix(".typ")
        if typst and source.exists():
            where = {"output": str(target / name), "root": str(source.parent)}
            typst.compile(str(source), ignore_system_fonts=True, **where)
            built.append(name)
    return built, [name for name in wanted if name not in built]


def leaks(folder: Path, built: list[str] = ()) -> list[str]:
    """`file:line: what` for everything in a folder that must not leave; `built`: files made from others."""
    regions, sizes, salt = solution_runs(), hidden_sizes(), load_hidden().salt
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name in built:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            found.append(f"{name}: not text, so nobody has looked into it")
            continue
        found += [f"{name}:{line}: a hidden size" for line in _lines(sizes, text)]
        found += [f"{name}: the salt"] if salt in text else []
        lines = [(n, " ".join(line.split())) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        for i in range(len(lines) - LINES + 1):
            if tuple(line for _, line in lines[i : i + LINES]) in regions:
                found.append(f"{name}:{lines[i][0]}: lines of a solution")
                break
    return found


def _lines(pattern: re.Pattern, text: str) -> Iterator[int]:
    return (text.count("\n", 0, match.start()) + 1 for match in pattern.finditer(text))


def solution_runs() -> set[tuple[str, ...]]:
    """All runs of LINES lines in a TODO region of a solution, but those that the skeletons show anyway."""
    shown = "\n".join(_squeezed((ROOT / "gemm_kernels.py").read_text(encoding="utf-8")))
    found = set()
    for path in (ROOT / "instructor" / "solutions").glob("*.py"):
        for region in _REGION.findall(path.read_text(encoding="utf-8")):
            lines = [line for line in _squeezed(region) if not line.startswith("# ")]
            found |= {tuple(lines[i : i + LINES]) for i in range(len(lines) - LINES + 1)}
    return {run for run in found if "\n".join(run) not in shown}


def _squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def hidden_sizes() -> re.Pattern:
    """Matches a hidden size that is no public size of another step, written as MxNxK or M, N, K."""
    from tirxlab.rubric import load_rubric

    public = {size for step in load_rubric().points for size in load_rubric().sizes(step)}
    secret = {size for sizes in load_hidden().sizes.values() for size in sizes} - public
    ways = [rf"{m}\s*[x,]\s*{n}\s*[x,]\s*{k}" for m, n, k in sorted(secret)]
    return re.compile(rf"\b(?:{'|'.join(ways)})\b" if ways else r"(?!)")
