"""The size limits of the project's style: functions of 40 lines, files of 400; and the words it avoids."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FUNCTION_LINES, FILE_LINES = 40, 400
KERNELS = (
    "gemm_kernels.py",
    "instructor/solutions/",
    "tracks/",
    "research/chip/cases/",
    "research/foreign/",
)  # kernels may be long
# inner loops: calls would cost what they save
ONE_LOOP = {
    "packages/ptxsim/src/ptxsim/jit/loop_template.py": ["run_split"],
}
FORBIDDEN = re.compile(r"\b(TODO: implement|FIXME|XXX|HACK)\b")


def sources() -> list[Path]:
    """The project's Python files, as git knows them (without git: all but the virtual environment)."""
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, capture_output=True, text=True
    )
    names = done.stdout.splitlines() if done.returncode == 0 else []
    files = [ROOT / name for name in names] or [p for p in ROOT.rglob("*.py") if ".venv" not in p.parts]
    return sorted(path for path in files if path.exists())


def long_functions(text: str, limit: int = FUNCTION_LINES) -> list[str]:
    """`name (lines)` of each function over the limit; its decorators and docstring do not count."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = node.lineno
            if ast.get_docstring(node) is not None:
                start = node.body[0].end_lineno
            lines = node.end_lineno - start + 1
            if lines > limit:
                found.append(f"{node.name} ({lines})")
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_size_and_contract(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a file opens with its contract"
    assert not FORBIDDEN.search(text) or path == Path(__file__)
    if path.relative_to(ROOT).as_posix().startswith(KERNELS):
        return
    assert text.count("\n") <= FILE_LINES
    allowed = ONE_LOOP.get(path.relative_to(ROOT).as_posix(), [])
    assert [function for function in long_functions(text) if function.split()[0] not in allowed] == []


def test_the_rule_counts_what_it_should():
    body = "\n".join("    x = 1" for _ in range(40))
    assert long_functions(f"def f():\n    '''{'a' * 50}\n    b\n    '''\n{body}\n") == ["f (41)"]
    assert long_functions(f"def f():\n{body[:-10]}\n") == []
