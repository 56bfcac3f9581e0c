"""Makes the students' handout, the lab without the course's own files, and checks that nothing of them leaks.

A solution leaks if LINES consecutive lines of one of its TODO regions are in a file, a hidden size if it is
written in any of the usual ways. Text files are searched. PDFs are not copied but built from their Typst
sources, which are text and in the handout, too. Any other file that is not text is refused. The files that
replace ones of the project, the front page and the workflow, are in handout_files/.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from instructor.autograder.plan import load_hidden
from tirxlab.checkout import ROOT
from tirxlab.version import STAMP

OWN = ROOT / "instructor" / "handout_files"
TYPST = "typst>=0.15,<0.16"
LEFT_OUT = (
    "instructor",
    ".github/workflows",
    ".github/ISSUE_TEMPLATE",
    "research",
    ".ci",
    "conftest.py",
    "packages/ptxsim/tests",
    "packages/tirxlab/tests",
    "packages/tirxlab/bench",
)
LINES = 4
_REGION = re.compile(r"# TODO\[begin\](.*?)# TODO\[end\]", re.DOTALL)


def files() -> list[str]:
    """Paths of the handout, relative to the lab: what git tracks (else all files) but the course's own."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    tracked = [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else []
    found = tracked or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and _plain(p)]
    return sorted(name for name in found if not _of_the_course(name) and (ROOT / name).is_file())


def _plain(path: Path) -> bool:
    return not {".venv", ".git", "__pycache__", ".ruff_cache", ".pytest_cache"} & set(path.parts)


def _of_the_course(name: str) -> bool:
    return any(name == path or name.startswith(path + "/") for path in LEFT_OUT)


def copy(names: list[str], target: Path, stamp: str) -> None:
    """Copies the files except PDFs, then the handout's own over them; stamps the lab's version."""
    for name in names:
        if name.endswith(".pdf"):
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)
    shutil.copytree(OWN, target, dirs_exist_ok=True)
    (target / STAMP.relative_to(ROOT)).write_text(stamp + "\n", encoding="utf-8")


class NoTypst(Exception):
    """The slides cannot be built: typst is not installed, and pip cannot install it."""


def build_pdfs(names: list[str], target: Path) -> list[str]:
    """Builds PDFs of the lectures copied to `target` and returns their names; NoTypst without a compiler."""
    built = [str(Path(name).with_suffix(".pdf")) for name in names if Path(name).match("slides/lecture*.typ")]
    with typst_folder() as path:
        code = (
            "import sys; sys.path[:0] = sys.argv[1].split(); import typst\n"
            "for name in sys.argv[2:]: typst.compile(name + '.typ', output=name + '.pdf', "
            "ignore_system_fonts=True)"
        )
        stems = [str((target / name).with_suffix("")) for name in built]
        if stems:
            subprocess.run([sys.executable, "-c", code, path, *stems], check=True)
    return built


@contextlib.contextmanager
def typst_folder() -> Iterator[str]:
    """The folder from which to import typst: "" if it is installed, else a temporary one."""
    if importlib.util.find_spec("typst") is not None:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="lab-typst-") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--target", folder, TYPST], capture_output=True, text=True)
        if done.returncode != 0:
            raise NoTypst(f"typst is not installed, and pip cannot install it: {done.stderr.strip()[-200:]}")
        yield folder


def leaks(folder: Path, built: Sequence[str] = ()) -> list[str]:
    """`file:line: what` for everything in a folder that must not be handed out, but in the `built` files."""
    regions, sizes, salt = solution_runs(), hidden_sizes(), load_hidden().salt
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name in built:
            continue
        try:
            text = (gzip.decompress if path.suffix == ".gz" else bytes)(path.read_bytes()).decode()
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error):
            found.append(f"{name}: not text, or cannot be unpacked, so nobody has looked into it")
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
    """All runs of LINES lines in TODO regions of the solutions, but those that the skeleton shows anyway."""
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
    """Matches a hidden size, written as MxNxK or M, N, K, unless it is a public size of some step."""
    from tirxlab.rubric import load_rubric

    public = {size for step in load_rubric().points for size in load_rubric().sizes(step)}
    secret = {size for sizes in load_hidden().sizes.values() for size in sizes} - public
    ways = [rf"{m}\s*[x,]\s*{n}\s*[x,]\s*{k}" for m, n, k in sorted(secret)]
    return re.compile(rf"\b(?:{'|'.join(ways)})\b" if ways else r"(?!)")
