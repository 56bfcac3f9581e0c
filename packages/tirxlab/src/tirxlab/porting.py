"""Rewrites the imports of kernels written for TVM (its preview wheel or a later release) for this lab.

Names are looked up, not modules: every name of a `from tvm... import` that this lab has too is then imported
from `tirxlab`. The rest of the file stays as it is, byte for byte.
"""

from __future__ import annotations

import ast
import re

from tirxlab import DIALECT_NAMES

PACKAGES = ("tvm", "tvm_tirx")  # the second, in newer documentation, holds only the language
_FROM_TVM = re.compile(rf"^[ \t]*(?:from|import)[ \t]+(?:{'|'.join(PACKAGES)})\b", re.MULTILINE)
# TVM's name -> this lab's, where they differ; `script` is another of TVM's names for the language.
RENAMED = {"tirx": "Tx", "script": "Tx", "tid_in_wg": "axis_tid_in_wg"}


def of_the_wheel(text: str) -> bool:
    """Whether something is imported from TVM itself."""
    return bool(_FROM_TVM.search(text))


def port(text: str, keep_lines: bool = False) -> tuple[str, list[str]]:
    """The text with its imports rewritten, and remarks `LINE: what` on those without a counterpart here.

    `keep_lines`: empty lines take the place of an import's further lines. SyntaxError if it is not Python.
    """
    lines, remarks = text.encode().splitlines(keepends=True), []  # the tree's columns count bytes
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(imports, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in PACKAGES for alias in node.names):
            remarks.append(f"{node.lineno}: `{ast.unparse(node)}` stays; a kernel should not need it here")
        elif (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and (node.module or "").split(".")[0] in PACKAGES
        ):
            ours, theirs = split(node.names)
            new = [f"from tirxlab import {', '.join(map(written, ours))}"] if ours else []
            if theirs:
                names = ", ".join(map(written, theirs))
                new.append(f"from {node.module} import {names}")
                remarks.append(f"{node.lineno}: {names} of {node.module} has no counterpart here and stays")
            replace(lines, node, new, keep_lines)
    return b"".join(lines).decode(), sorted(remarks, key=lambda remark: int(remark.split(":")[0]))


def replace(lines: list[bytes], node: ast.stmt, statements: list[str], keep_lines: bool) -> None:
    """Replace a statement by others, keeping other text on its lines."""
    before = lines[node.lineno - 1][: node.col_offset]
    end = node.end_lineno or node.lineno
    after = lines[end - 1][node.end_col_offset :]
    between = "; " if before.strip() or keep_lines else "\n" + before.decode()
    spare = b"\n" * (end - node.lineno) if keep_lines else b""
    lines[node.lineno - 1 : end] = [before + between.join(statements).encode() + after + spare]


def split(names: list[ast.alias]) -> tuple[list[ast.alias], list[ast.alias]]:
    """(the imported names that this lab has, under its own names; those that it does not have)."""
    ours, theirs = [], []
    for alias in names:
        name = RENAMED.get(alias.name, alias.name)
        if name in DIALECT_NAMES:
            bound = alias.asname or alias.name
            ours.append(ast.alias(name, None if bound == name else bound))
        else:
            theirs.append(alias)
    return ours, theirs


def written(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
