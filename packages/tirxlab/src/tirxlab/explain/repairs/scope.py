"""Where an edit may put in a name: only where it is defined, and not known to be a constant."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache, cached_property

from tirxlab.explain.repairs.text import Builder, Splice

NAME = re.compile(r"(?<![\w\"])[A-Za-z_]\w*")


@cache
def _names(text: str) -> frozenset[str]:
    return frozenset(NAME.findall(text))


class Scope:
    """The names of one builder."""

    def __init__(self, builder: Builder):
        self.builder = builder

    def allows(self, splice: Splice, lines: bool) -> bool:
        """Whether no name is put in that is local to a loop or function elsewhere, of another step, or
        has one constant value in this branch.
        """
        start, end, new = splice
        names = _names(new)
        if lines or names & self.builder.strange:
            return not names & self.builder.strange
        new_here = names - _names(self.builder.text[start:end])
        own = all(_among(start, self.local[name]) for name in new_here if name in self.local)
        return own and not any(_among(start, self.settled[name]) for name in new_here)

    @cached_property
    def local(self) -> dict[str, list[tuple[int, int]]]:
        """Loop variables and arguments of inner functions -> the spans in which they are defined."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for node in self.builder.nodes[1:]:
            names: list[str] = []
            if isinstance(node, ast.For):
                names = [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]
            elif isinstance(node, ast.FunctionDef) and node.col_offset:
                names = [one.arg for one in node.args.args]
            for name in names:
                found[name].append(self.builder.span(node))
        return found

    @cached_property
    def settled(self) -> dict[str, list[tuple[int, int]]]:
        """Names -> the branches in which they have one value, as in `if warp_id == 0:`."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for node in self.builder.nodes:
            if isinstance(node, ast.If):
                body = self.builder.span(node.body[0])[0], self.builder.span(node.body[-1])[1]
                tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
                every = not isinstance(node.test, ast.BoolOp) or isinstance(node.test.op, ast.And)
                for name in filter(None, map(_is_one, tests if every else ())):
                    found[name].append(body)
        return found


def _among(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(first <= place < end for first, end in spans)


def _is_one(test: ast.AST) -> str:
    """The name that a test compares for equality with a number; "" for other tests."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1:
        return test.left.id if isinstance(test.ops[0], ast.Eq) and whole(test.comparators[0]) else ""
    return ""


def whole(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
