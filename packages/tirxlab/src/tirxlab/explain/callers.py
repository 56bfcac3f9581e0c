"""Where a kernel calls the function that holds a line: a helper's line does not say which use is wrong."""

from __future__ import annotations

import ast
import functools
import re

MOST = 3  # calls that are named


def called_at(text: str, ptx: str, line: int) -> str:
    """`  # called at line 12`, for a line of an @Tx.inline function of the kernel with this PTX; else ""."""
    functions = _functions(_outermost(text, line)) or _functions(text)
    around = sorted((f for f in functions if _holds(f, line)), key=lambda f: f.lineno)
    if not around or not any("inline" in ast.unparse(d) for d in around[-1].decorator_list):
        return ""
    marked = {int(n) for n in re.findall(r"// @src (\d+)", ptx)}
    outer = around[:1]
    if len(around) == 1:
        outer = [f for f in _functions(text) if any(_holds(f, n) for n in marked)]
    calls = {node for f in outer for node in ast.walk(f) if isinstance(node, ast.Call)}
    lines = sorted({c.lineno for c in calls if getattr(c.func, "id", "") == around[-1].name})
    if not 0 < len(lines) <= MOST:
        return ""
    return f"  # called at line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}"


def _outermost(text: str, line: int) -> str:
    """The function at the left margin that holds a line, at its lines: the whole file takes longer."""
    lines = text.splitlines(keepends=True)
    first = end = min(line, len(lines))
    while first and not lines[first - 1].startswith("def "):
        first -= 1
    while first and lines[first - 1].startswith(("def ", "@")):
        first -= 1
    while end < len(lines) and lines[end][:1].isspace():
        end += 1
    return "\n" * first + "".join(lines[first:end])


@functools.lru_cache(maxsize=4)
def _functions(text: str) -> list[ast.FunctionDef]:
    try:
        statements: list[ast.AST] = [*ast.parse(text).body]
    except SyntaxError:
        return []
    for statement in statements:  # grows; no function is within an expression
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            statements += getattr(statement, part, ())
    return [node for node in statements if isinstance(node, ast.FunctionDef)]


def _holds(function: ast.FunctionDef, line: int) -> bool:
    return function.lineno <= line <= (function.end_lineno or 0)
