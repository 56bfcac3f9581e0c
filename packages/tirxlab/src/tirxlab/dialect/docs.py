"""The docstrings of the language, read from the stubs beside this file: editors and `help()` show the same.

`documented()` maps a dotted name as students write it (`Tx.ptx.tcgen05.commit`) to its docstring.
"""

import ast
import functools
from pathlib import Path

STUBS = ("__init__.pyi", "namespace.pyi", "tile_ops.pyi", "instructions.pyi", "sync.pyi")
PARTS = ("Lowers to:", "Who:", "Then:")  # in every docstring, except those of mere groups


@functools.cache
def documented() -> dict[str, str]:
    """Dotted name -> docstring ("" if there is none), for everything public in the stubs."""
    classes: dict[str, ast.ClassDef] = {}
    modules: dict[str, str] = {}
    for name in STUBS:
        tree = ast.parse((Path(__file__).parent / name).read_text(encoding="utf-8"))
        classes |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        modules |= _top_level(tree.body)
    found = {name: text for name, text in modules.items() if not name.startswith("_")}
    for name, node in classes.items():
        if not name.startswith("_"):
            found |= _members(name, node, classes)
    return found | _members("Tx", classes["_Tx"], classes)


def _top_level(body: list[ast.stmt]) -> dict[str, str]:
    """Classes, functions and `name: Type` lines; the string after such a line is its docstring."""
    found: dict[str, str] = {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = ast.get_docstring(node) or ""
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = getattr(following, "value", None) if isinstance(following, ast.Expr) else None
            found[node.target.id] = str(getattr(value, "value", ""))
    return found


def _members(prefix: str, node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> dict[str, str]:
    """Docstrings of a class, its methods and, through `name: OtherClass`, its nested names; with bases."""
    found = {prefix: ast.get_docstring(node) or ""}
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            found |= _members(prefix, classes[base.id], classes) | found
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__call__":
            found[prefix] = ast.get_docstring(item) or ""
        elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            found[f"{prefix}.{item.name}"] = ast.get_docstring(item) or ""
        elif isinstance(item, ast.AnnAssign) and isinstance(item.annotation, ast.Name):
            inner = classes.get(item.annotation.id)
            if inner is not None and isinstance(item.target, ast.Name) and prefix.split(".")[0] == "Tx":
                found |= _members(f"{prefix}.{item.target.id}", inner, classes)
    return found
