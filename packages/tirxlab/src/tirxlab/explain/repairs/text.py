"""A builder's text with its syntax tree: the spans of nodes and statements, and the steps before it."""

from __future__ import annotations

import ast
import difflib
import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from tirxlab.steps import read_skeleton, sections

Block = list[ast.stmt]
NAME = re.compile(r"[A-Za-z_]\w*")


Splice = tuple[int, int, str]  # start and end offset, and the text that replaces what is between them


@dataclass(frozen=True)
class Edit:
    """One splice or several, in the order of the text; two if something moves."""

    family: str
    splices: tuple[Splice, ...]

    def applied(self, text: str) -> str:
        for start, end, new in reversed(self.splices):
            text = text[:start] + new + text[end:]
        return text


class Builder:
    """hgemm_vN in a file's text. Offsets are those of the file."""

    def __init__(self, text: str, step: int):
        self.text, self.step = text, step
        parts = sections(text)
        self.begin = text.index(parts[step])
        self.before = text.count("\n", 0, self.begin)  # lines of the file before it
        self.tree = ast.parse(parts[step])
        self.own, self.header = parts[step], parts.get(0, "")
        self.earlier = [parts[number] for number in sorted(parts) if 0 < number < step]
        self.handout = sections(read_skeleton()).get(step, "")  # the step's text in the handout
        self.lines = self.own.splitlines(keepends=True)
        self.starts = [self.begin]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The offset of a place as ast counts: lines of the step from 1, columns in bytes."""
        text = self.lines[line - 1]
        return self.starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
        )

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def rows(self, first: ast.stmt, last: ast.stmt) -> tuple[int, int]:
        """The span of the whole lines from `first` to `last`, with comments at the end of these lines."""
        return self.starts[first.lineno - 1], self.starts[last.end_lineno or last.lineno]

    def line(self, offset: int) -> int:
        """The file's line (from 1) of an offset."""
        return bisect_right(self.starts, offset) + self.before

    @cached_property
    def given(self) -> list[bool]:
        """For each line, whether it is as in the handout."""
        mine, theirs = ([code(line) for line in lines] for lines in (self.lines, self.handout.splitlines()))
        given = [False] * len(mine)
        for a, _, size in difflib.SequenceMatcher(None, mine, theirs, False).get_matching_blocks():
            given[a : a + size] = [True] * size
        return given

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def defined_once(self) -> set[str]:
        """Names that one statement sets and others use; without it, or if it comes later, the build fails."""
        names = [node for node in self.nodes if isinstance(node, ast.Name)]
        stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        return {node.id for node in names if isinstance(node.ctx, ast.Load) and stored[node.id] == 1}

    def defines(self, statement: ast.stmt) -> bool:
        """Whether an assignment sets a name of `defined_once`."""
        nodes = ast.walk(statement) if isinstance(statement, ast.Assign) else ()
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return bool(stored & self.defined_once)

    @cached_property
    def strange(self) -> set[str]:
        """Names of the steps before that neither this step nor the header has."""
        trees = [ast.parse(text) for text in self.earlier]
        theirs = {n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return theirs - set(NAME.findall(self.own)) - set(NAME.findall(self.header))

    @cached_property
    def blocks(self) -> list[tuple[ast.AST, Block]]:
        """(owner, statements) of every block except the module's."""
        found = []
        for node in self.nodes[1:]:
            for name in ("body", "orelse"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block:
                    found.append((node, block))
        return found


def alone(text: str, step: int) -> str:
    """A file's text with empty lines for the builders that hgemm_v`step` does not call; quicker to parse."""
    lines, parts = text.splitlines(keepends=True), sections(text)
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("hgemm_v"):
            continue
        if node.name != f"hgemm_v{step}" and f"{node.name}(" not in parts[step]:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            for n in range(first - 1, node.end_lineno or node.lineno):
                lines[n] = "\n"
    return "".join(lines)


def code(line: str) -> str:
    """A line without its comment and indentation."""
    return line.split("#")[0].strip()
