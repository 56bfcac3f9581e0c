"""Mutation operators: one small change of a kernel's source text each, with the lines that it touches.

`mutants(text, builder)` lists every mutant of one function of a file. Statements are found with `ast` and
changed as text, so everything else stays as written.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

BARRIERS = {"tma_bar", "mma_bar", "tma2mma", "mma2tma", "mma2ld", "ld2mma", "loaded"}
STATES = {"tma_phase", "mma_phase", "ld_phase", "wb_phase", "phase_tma", "phase_mma", "phase", "stage"}
BUFFERS = {
    "Asmem",
    "Bsmem",
    "Dsmem",
    "A",
    "B",
    "D",
    "Dreg",
    "Dreg_16b",
    "a_frag",
    "b_frag",
    "a_desc",
    "b_desc",
}
COORDINATES = {"m_st", "n_st", "k_st", "d_st", "d_n_st", "d_m_st", "a_st", "row", "col", "k", "i", "n", "g"}
IDS = {"warp_id", "lane_id", "wg_id", "cbx", "bx", "by", "tid", "m_tile", "n_tile", "group", "pair"}
SIZES = {"BLK_M", "BLK_N", "BLK_K", "MMA_N", "EPI_N", "K_TILES", "PIPE_DEPTH", "PRE_NUM", "CTA_GROUP"}
FAMILIES = {
    "exchange barrier": BARRIERS, "exchange state": STATES, "exchange buffer": BUFFERS,
    "exchange coordinate": COORDINATES, "exchange id": IDS, "exchange size": SIZES,
}  # fmt: skip
_COMPARE = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_BINARY = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*", ast.Mod: "//", ast.BitXor: "|"}


@dataclass(frozen=True)
class Mutant:
    operator: str
    text: str  # the whole file
    lines: tuple[int, ...]  # 1-based lines of the new text that were changed, or where a line was deleted
    old: str  # the text before the change
    new: str


class Editor:
    """The text of a file by (line, column), as `ast` counts them; sources are ASCII."""

    def __init__(self, text: str):
        self.text = text
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        begin = self.starts[node.lineno - 1] + node.col_offset
        return begin, self.starts[node.end_lineno - 1] + node.end_col_offset

    def get(self, node: ast.AST) -> str:
        begin, end = self.span(node)
        return self.text[begin:end]

    def block(self, node: ast.stmt) -> list[str]:
        """The lines of a statement."""
        return self.text.split("\n")[node.lineno - 1 : node.end_lineno]

    def replace(self, operator: str, node: ast.AST, new: str) -> Mutant:
        begin, end = self.span(node)
        text = self.text[:begin] + new + self.text[end:]
        return Mutant(operator, text, tuple(range(node.lineno, node.end_lineno + 1)), self.get(node), new)

    def rewrite(
        self, operator: str, first: int, last: int, new: list[str], touched: range, old: str
    ) -> Mutant:
        """Replaces lines first .. last; `touched`: which lines of `new` (from 0) count as changed."""
        lines = self.text.split("\n")
        text = "\n".join(lines[: first - 1] + new + lines[last:])
        shown = "\n".join(new[i] for i in touched if i < len(new))
        return Mutant(operator, text, tuple(first + i for i in touched), old, shown)


def mutants(text: str, builder: str) -> list[Mutant]:
    """Every mutant of the function `builder`; the same text only once."""
    tree, editor = ast.parse(text), Editor(text)
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == builder)
    found = [m for operator in OPERATORS for m in operator(editor, function)]
    return list({m.text: m for m in found if m.text != text}.values())


# ---- statements ----


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """Lists of sibling statements of the kernel and of the constants above it."""
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield [s for s in block if _is_code(s)]


def _is_code(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return | ast.Raise | ast.Pass):
        return False
    if isinstance(node, ast.FunctionDef):
        return False
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    guard = isinstance(node, ast.If | ast.For) and any(isinstance(s, ast.Raise) for s in ast.walk(node))
    checks = isinstance(node, ast.Expr) and ast.unparse(node).startswith("_check")
    return not guard and not checks


def _only(node: ast.stmt, editor: Editor) -> list[str]:
    """The replacement of a deleted statement: `pass`, so that its block is never empty."""
    return [" " * node.col_offset + "pass"]


def delete(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for block in _blocks(function):
        for node in block:
            old = "\n".join(editor.block(node))
            yield editor.rewrite("delete", node.lineno, node.end_lineno, _only(node, editor), range(1), old)


def double(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for block in _blocks(function):
        for node in block:
            lines = editor.block(node)
            touched = range(2 * len(lines))
            yield editor.rewrite("double", node.lineno, node.end_lineno, lines * 2, touched, "\n".join(lines))


def swap(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for block in _blocks(function):
        for first, second in zip(block, block[1:], strict=False):
            one, two = editor.block(first), editor.block(second)
            between = editor.text.split("\n")[first.end_lineno : second.lineno - 1]
            new = two + between + one
            yield editor.rewrite(
                "swap", first.lineno, second.end_lineno, new, range(len(new)), "\n".join(one + two)
            )


def _shift(lines: list[str], by: int) -> list[str]:
    return [" " * by + line if by > 0 else line[-by:] for line in lines]


def unguard(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Removes the head of an `if`, `with` or `while`; its body stays."""
    for block in _blocks(function):
        for node in block:
            if not isinstance(node, ast.If | ast.With | ast.While) or getattr(node, "orelse", []):
                continue
            if isinstance(node, ast.With) and "elect" not in editor.block(node)[0]:
                continue  # scopes without a condition
            head, body = editor.block(node)[0], node.body
            lines = editor.text.split("\n")[body[0].lineno - 1 : node.end_lineno]
            new = [" " * node.col_offset + "pass", *_shift(lines, node.col_offset - body[0].col_offset)]
            yield editor.rewrite("remove guard", node.lineno, node.end_lineno, new, range(len(new)), head)


def move_out(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Moves the first or last statement of a loop or guard to before or after it."""
    for block in _blocks(function):
        for node in block:
            if not isinstance(node, ast.If | ast.With | ast.While | ast.For) or len(node.body) < 2:
                continue
            lines = editor.text.split("\n")
            for which in (0, -1):
                inner = node.body[which]
                if not _is_code(inner):
                    continue
                moved = _shift(editor.block(inner), node.col_offset - inner.col_offset)
                head = lines[node.lineno - 1 : inner.lineno - 1]
                tail = lines[inner.end_lineno : node.end_lineno]
                new = moved + head + tail if which == 0 else head + moved
                start = 0 if which == 0 else len(head)
                touched = range(start, start + len(moved))
                old = "\n".join(editor.block(inner))
                yield editor.rewrite("move out", node.lineno, node.end_lineno, new, touched, old)


def move_in(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Moves the statement before or after a loop or guard into it."""
    for block in _blocks(function):
        for first, second in zip(block, block[1:], strict=False):
            if isinstance(first, ast.If | ast.While | ast.For) and not first.orelse:
                by = first.body[0].col_offset - second.col_offset
                moved = _shift(editor.block(second), by)
                new = editor.block(first) + moved
                touched = range(len(new) - len(moved), len(new))
                old = "\n".join(editor.block(second))
                yield editor.rewrite("move in", first.lineno, second.end_lineno, new, touched, old)
            if isinstance(second, ast.If | ast.While | ast.For):
                lines = editor.text.split("\n")
                inner = second.body[0]
                moved = _shift(editor.block(first), inner.col_offset - first.col_offset)
                head = lines[second.lineno - 1 : inner.lineno - 1]
                rest = lines[inner.lineno - 1 : second.end_lineno]
                touched = range(len(head), len(head) + len(moved))
                old = "\n".join(editor.block(first))
                yield editor.rewrite(
                    "move in", first.lineno, second.end_lineno, head + moved + rest, touched, old
                )


def guard(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Puts a simple statement under a condition that only some threads meet."""
    heads = ("if warp_id == 0:", "if lane_id == 0:")
    for block in _blocks(function):
        for node in block:
            text = editor.get(node)
            if not isinstance(node, ast.Expr) or "Tx." not in text and ".arrive" not in text:
                continue
            for head in heads:
                new = [" " * node.col_offset + head, *_shift(editor.block(node), 4)]
                yield editor.rewrite(
                    "add guard",
                    node.lineno,
                    node.end_lineno,
                    new,
                    range(len(new)),
                    "\n".join(editor.block(node)),
                )


# ---- expressions ----


def _expressions(function: ast.FunctionDef, kind) -> Iterator:
    """Nodes of a kind in the code, except in argument checks and annotations."""
    for block in _blocks(function):
        for statement in block:
            for part in _own(statement):
                yield from (n for n in ast.walk(part) if isinstance(n, kind))


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement without those of the statements inside it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr | ast.withitem):
            yield child


def number(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for node in _expressions(function, ast.Constant):
        if isinstance(node.value, bool):
            yield editor.replace("flip a flag", node, str(not node.value))
        elif isinstance(node.value, int):
            n = node.value
            for new in {n + 1, n - 1, 2 * n, n // 2} - {n}:
                if new >= 0:
                    yield editor.replace("change a number", node, str(new))


def exchange(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Replaces a name by another one of its family that the function uses."""
    known = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    known |= {a.arg for n in ast.walk(function) if isinstance(n, ast.arguments) for a in n.args}
    for node in _expressions(function, ast.Name):
        for operator, family in FAMILIES.items():
            if node.id in family and isinstance(node.ctx, ast.Load):
                for other in sorted(family & known - {node.id}):
                    yield editor.replace(operator, node, other)


def attribute(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    other = {"stage": "phase", "phase": "stage", "m_idx": "n_idx", "n_idx": "m_idx"}
    for node in _expressions(function, ast.Attribute):
        if node.attr in other:
            base = editor.get(node.value)
            yield editor.replace("exchange field", node, f"{base}.{other[node.attr]}")


def compare(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for node in _expressions(function, ast.Compare):
        sign = _COMPARE.get(type(node.ops[0]))
        if sign and len(node.ops) == 1:
            text = f"{editor.get(node.left)} {sign} {editor.get(node.comparators[0])}"
            yield editor.replace("exchange comparison", node, text)


def arithmetic(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    for node in _expressions(function, ast.BinOp):
        sign = _BINARY.get(type(node.op))
        if sign:
            text = f"{editor.get(node.left)} {sign} {editor.get(node.right)}"
            yield editor.replace("exchange arithmetic", node, text)
            yield editor.replace("drop a term", node, editor.get(node.left))


def bound(editor: Editor, function: ast.FunctionDef) -> Iterator[Mutant]:
    """Makes a loop run one iteration less or more."""
    for node in _expressions(function, ast.Call):
        if ast.unparse(node.func) in ("range", "Tx.unroll") and node.args:
            last = node.args[-1]
            for by in ("- 1", "+ 1"):
                yield editor.replace("loop bound", last, f"{editor.get(last)} {by}")


OPERATORS: tuple[Callable, ...] = (
    delete, double, swap, unguard, move_out, move_in, guard, number, exchange, attribute, compare, arithmetic,
    bound,
)  # fmt: skip
