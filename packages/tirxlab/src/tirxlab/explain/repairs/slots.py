"""Kinds of places of expressions, to find others in the same kind: second argument of a wait, a bound, ..."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

Slot = tuple[str, ...]


def tail(node: ast.AST) -> str:
    """The last part of a dotted name; "" for other nodes."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def kind(node: ast.AST) -> str:
    """A buffer's name without its letter, so that Asmem and Bsmem are one kind."""
    name = tail(node)
    return name[1:] if name[:1] in ("A", "B", "D") and name[1:].islower() else name


def slots(tree: ast.AST) -> Iterator[tuple[Slot, ast.expr]]:
    """(kind of place, the expression there), for all expressions that have one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = tail(node.func)
            for i, argument in enumerate(node.args):
                yield ("call", name, str(i)), argument
            for word in node.keywords:
                if word.arg is not None:
                    yield ("call", name, word.arg), word.value
        elif isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for i, part in enumerate(parts):
                yield ("index", kind(node.value), str(i - len(parts))), part
        elif isinstance(node, ast.Assign):
            yield ("value", tail(node.targets[0])), node.value
        elif isinstance(node, ast.If | ast.While):
            yield ("test", type(node).__name__), node.test
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield ("key", str(key.value)), value
        elif isinstance(node, ast.List):
            for i, element in enumerate(node.elts):
                yield ("list", str(i)), element


def seen(*trees: ast.AST) -> dict[Slot, dict[str, int]]:
    """Kind of place -> expression's text -> how often it occurs there."""
    found: dict[Slot, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for tree in trees:
        for slot, expression in slots(tree):
            found[slot][ast.unparse(expression)] += 1
    return found
