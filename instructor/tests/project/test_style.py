"""The project's style, one test per rule: contracts, functions of 40 lines, files of 400, words to avoid.

A broken rule names every place; an exemption that nothing needs fails as well.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tirxlab.rubric import tomllib

ROOT = Path(__file__).resolve().parents[3]
FUNCTION_LINES, FILE_LINES = 40, 400
ALL = "all"
KERNELS = [  # each kernel is one function, and a step's file holds ten of them
    "gemm_kernels.py",
    *(f"instructor/solutions/{name}_kernels.py" for name in ("ampere", "gemm", "hopper")),
    *(f"tracks/{name}/kernels.py" for name in ("ampere", "hopper")),
]
LONG_FUNCTIONS = {name: ALL for name in KERNELS} | {  # file -> the functions that may be long
    "packages/ptxsim/src/ptxsim/jit/loop_template.py": ["run_split"],  # calls would cost what they save
    "research/chip/cases/threads.py": ["cases"],
    "research/foreign/cute_cluster.py": ["_clusters"],
    "research/foreign/cute_simple.py": ["_matmul"],
    "research/foreign/cute_tma.py": ["_wgmma", "_tcgen05"],
    "research/foreign/triton_kernels.py": ["elementwise_cases", "tensor_cases"],
}
FORBIDDEN = re.compile(r"\b(TODO: implement|FIXME|XXX|HACK)\b")


@cache
def sources() -> dict[str, str]:
    """Name -> text of the project's Python files, as git knows them (without git: all but `.venv`)."""
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True, text=True
    )
    files = [ROOT / name for name in done.stdout.splitlines()] if done.returncode == 0 else []
    files = files or [path for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    found = {path.relative_to(ROOT).as_posix(): path for path in files if path.exists()}
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(found.items())}


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Afterwards the syntax trees are dropped: a search for garbage would look through them all."""
    yield
    trees.cache_clear()


@cache
def trees() -> dict[str, ast.Module]:
    return {file: ast.parse(text) for file, text in sources().items()}


def long_functions(tree: ast.Module, limit: int = FUNCTION_LINES) -> list[tuple[str, int]]:
    """(name, lines) of each function over the limit; its decorators and docstring do not count."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = node.lineno
            if ast.get_docstring(node) is not None:
                start = node.body[0].end_lineno
            lines = node.end_lineno - start + 1
            if lines > limit:
                found.append((node.name, lines))
    return found


@cache
def all_long_functions() -> list[tuple[str, str, int]]:
    return [(file, *found) for file, tree in trees().items() for found in long_functions(tree)]


def may_be_long(file: str, function: str) -> bool:
    return LONG_FUNCTIONS.get(file) == ALL or function in LONG_FUNCTIONS.get(file, ())


def test_a_file_opens_with_its_contract():
    assert [file for file, tree in trees().items() if tree.body and not ast.get_docstring(tree)] == []


def test_nothing_is_left_to_do():
    this = Path(__file__).relative_to(ROOT).as_posix()
    assert [file for file, text in sources().items() if FORBIDDEN.search(text) and file != this] == []


def test_files_are_short():
    long = {file: text.count("\n") for file, text in sources().items() if text.count("\n") > FILE_LINES}
    assert {file: lines for file, lines in long.items() if file not in KERNELS} == {}


def test_no_two_files_of_tests_have_one_name():
    """pytest imports a test by its file name alone, as folders of tests are not packages."""
    names = Counter(Path(file).name for file in sources() if Path(file).name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []


def test_functions_are_short():
    assert [f"{f}: {n} ({lines})" for f, n, lines in all_long_functions() if not may_be_long(f, n)] == []


def test_every_exemption_is_needed():
    long = {(file, function) for file, function, _ in all_long_functions()}
    files = {file for file, _ in long}
    dead = [file for file, names in LONG_FUNCTIONS.items() if names == ALL and file not in files]
    pairs = [(file, name) for file, names in LONG_FUNCTIONS.items() if names != ALL for name in names]
    assert dead + [f"{file}: {name}" for file, name in pairs if (file, name) not in long] == []


def ruff_exemptions() -> list[tuple[str, str]]:
    """(pattern of files, rule) of pyproject.toml."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    return [(pattern, code) for pattern, codes in lint["per-file-ignores"].items() for code in codes]


def test_every_exemption_of_ruff_is_needed():
    dead = []
    for pattern, code in ruff_exemptions():
        options = ["--isolated", "--no-cache", "--quiet", "--line-length=110", f"--select={code}"]
        files = sorted(ROOT.glob(pattern))
        command = [sys.executable, "-m", "ruff", "check", *options, *files]
        if not files or subprocess.run(command, capture_output=True).returncode == 0:
            dead.append(f"{pattern}: {code}")
    assert dead == []


def test_the_rule_counts_what_it_should():
    body = "\n".join("    x = 1" for _ in range(40))
    assert long_functions(ast.parse(f"def f():\n    '''{'a' * 50}\n    b\n    '''\n{body}\n")) == [("f", 41)]
    assert long_functions(ast.parse(f"def f():\n{body[:-10]}\n")) == []
