"""`./lab port FILE`: rewrite the imports of a kernel written for TVM's preview wheel, so that it runs here.

Names are looked up, not modules: whatever `from tvm... import` brings in and this lab has too then comes from
`tirxlab`. The rest of the file stays as it is, byte for byte.
"""

import ast
import difflib
from pathlib import Path
from typing import Annotated

import typer

from tirxlab import DIALECT_NAMES
from tirxlab.cli.common import UserError
from tirxlab.steps import read_text

# The wheel's name for a thing that this lab calls otherwise.
RENAMED = {"tirx": "Tx", "tid_in_wg": "axis_tid_in_wg"}


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a kernels file for the preview wheel")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="[default: in place]")
    ] = None,
    dry: Annotated[bool, typer.Option("--diff", help="only show what would change")] = False,
) -> None:
    """Make a kernel of TVM's preview wheel run here: its import lines are rewritten, nothing else."""
    text = read_text(file)
    try:
        ported, left = port(text)
    except SyntaxError as error:
        raise UserError(f"{file}:{error.lineno}: {error.msg}") from None
    for line in left:
        print(f"{file.name}:{line}")
    if ported == text and (dry or not output):
        print(f"{file.name}: nothing to rewrite")
        return
    if dry:
        lines = text.splitlines(keepends=True), ported.splitlines(keepends=True)
        print("".join(difflib.unified_diff(*lines, str(file), str(output or file))), end="")
        return
    target = output or file
    target.write_text(ported, encoding="utf-8")
    print(f"wrote {target}" + (f"; {len(left)} lines above need your eye" if left else ""))


def port(text: str) -> tuple[str, list[str]]:
    """The text with its imports rewritten, and remarks `LINE: what` on those with no counterpart here."""
    lines, remarks = text.encode().splitlines(keepends=True), []  # the tree's columns count bytes
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(imports, key=lambda node: -node.lineno):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "tvm" for alias in node.names):
            remarks.append(f"{node.lineno}: `{ast.unparse(node)}` stays; a kernel should not need it here")
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.split(".")[0] == "tvm":
            ours, theirs = split(node.names)
            new = [f"from tirxlab import {', '.join(map(written, ours))}"] if ours else []
            if theirs:
                names = ", ".join(map(written, theirs))
                new.append(f"from {node.module} import {names}")
                remarks.append(f"{node.lineno}: {names} of {node.module} has no counterpart here and stays")
            replace(lines, node, new)
    return b"".join(lines).decode(), sorted(remarks, key=lambda remark: int(remark.split(":")[0]))


def replace(lines: list[bytes], node: ast.stmt, statements: list[str]) -> None:
    """Put statements where one stands, keeping what shares its lines."""
    before = lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :]
    between = "; " if before.strip() else "\n" + before.decode()
    lines[node.lineno - 1 : node.end_lineno] = [before + between.join(statements).encode() + after]


def split(names: list[ast.alias]) -> tuple[list[ast.alias], list[ast.alias]]:
    """Imported names that this lab has, under its own name, and those that it has not."""
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
