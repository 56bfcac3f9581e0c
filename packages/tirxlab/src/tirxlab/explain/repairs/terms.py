"""Edits of numbers made of terms and factors: one is put in or left out, or the sum is written anew.

A row, a column, a count or a slot is a sum of products of the names in scope. So any product of two names of
the file may be missing in any sum, and any number may be missing as a factor or a divisor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from tirxlab.explain.repairs.slots import slots
from tirxlab.explain.repairs.text import Builder, Splice

MOST = 60  # most terms of a builder that are tried as missing


class Terms:
    """The terms and factors of a builder and of the steps before it, and the edits made of them."""

    def __init__(self, builder: Builder, trees: list[ast.AST], numbers: set[str], indices: set[str]):
        self.builder, self.trees, self.numbers, self.indices = builder, trees, sorted(numbers), indices
        self.loaded = {node.id for node in builder.nodes if isinstance(node, ast.Name)}

    def __iter__(self) -> Iterator[Splice]:
        for start, end, node in self.places:
            text = self.builder.text[start:end]
            whole = text if isinstance(node, ast.Name | ast.Attribute | ast.Constant) else f"({text})"
            for number in self.numbers:
                yield start, end, f"{whole} * {number}"
                yield start, end, f"{whole} // {number}"
            yield from self._sums(start, end, node)

    @cached_property
    def places(self) -> list[tuple[int, int, ast.expr]]:
        """(start, end, expression) of whole numbers: values, indices, bounds, arguments."""
        found: dict[tuple[int, int], ast.expr] = {}
        for slot, part in slots(self.builder.tree):
            for one in (part.lower, part.upper) if isinstance(part, ast.Slice) else (part,):
                if isinstance(one, ast.Name | ast.Attribute | ast.BinOp) and slot[0] != "test":
                    found[self.builder.span(one)] = one
        for node in self.builder.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.FloorDiv):
                found[self.builder.span(node.left)] = node.left
        return [(*span, node) for span, node in found.items()]

    @cached_property
    def terms(self) -> list[str]:
        """Terms of sums in the file, then the products of an index and a factor that the file has."""
        found: dict[str, None] = {}
        factors: dict[str, None] = {}
        for tree in self.trees:
            for node in ast.walk(tree):
                if not isinstance(node, ast.BinOp):
                    continue
                for part in (node.left, node.right):
                    names = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
                    if not names or not names <= self.loaded:
                        continue
                    if isinstance(node.op, ast.Mult) and isinstance(part, ast.Name):
                        factors[part.id] = None
                    elif isinstance(node.op, ast.Add | ast.Sub) and _is_term(part):
                        found[ast.unparse(part)] = None
        numbers = [one for one in factors if one in self.numbers]
        found |= {f"{one} * {n}": None for one in sorted(self.indices - set(self.numbers)) for n in numbers}
        return list(found)[:MOST]

    @cached_property
    def bases(self) -> set[str]:
        """Names that are the left side of a sum."""
        sums = [n for n in self.builder.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add)]
        return {node.left.id for node in sums if isinstance(node.left, ast.Name)}

    @cached_property
    def values(self) -> set[tuple[int, int]]:
        """Spans of assigned values (of a call, its first argument)."""
        found = set()
        for node in self.builder.nodes:
            if isinstance(node, ast.Assign):
                value = node.value
                if isinstance(value, ast.Call) and value.args:
                    value = value.args[0]
                found.add(self.builder.span(value))
        return found

    def _sums(self, start: int, end: int, node: ast.expr) -> Iterator[Splice]:
        """One more term, or a sum of one name used here and one term."""
        text = self.builder.text[start:end]
        here = dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        if (start, end) in self.values:
            here |= dict.fromkeys(sorted(self.bases))
        for term in self.terms:
            if term not in text:
                yield start, end, f"{text} + {term}"
            if isinstance(node, ast.BinOp):
                for name in here:
                    if name not in term:
                        yield start, end, f"{name} + {term}"


def _is_term(node: ast.AST) -> bool:
    return not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Mult)
