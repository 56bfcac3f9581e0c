"""Edits of whole statements: left out, moved, put in, or written as in an earlier step."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Callable, Iterator

from tirxlab.explain.repairs.text import Builder, Splice, code

SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign)
# Calls that order or publish the effects of others, and are easily forgotten.
SYNCHRONISING = (
    "Tx.cuda.cta_sync()",
    "Tx.cuda.cluster_sync()",
    "Tx.cuda.warpgroup_sync(1)",
    'Tx.ptx.fence.proxy_async("shared::cta")',
    "Tx.ptx.fence.mbarrier_init()",
    "Tx.ptx.tcgen05.fence.after_thread_sync()",
    "Tx.ptx.tcgen05.fence.before_thread_sync()",
    "Tx.ptx.cp_async.bulk.commit_group()",
    "Tx.ptx.cp_async.bulk.wait_group(0)",
)
LONG = 12  # statements of more lines are not moved
RUN = 3  # most statements that are moved together
FAR = 5  # most statements that one is moved past; to those that match ORDERS, any number
ORDERS = re.compile(r"sync|fence|\.wait\(|\.arrive\(|commit|\.init\(")
HUNK = 6  # most lines of one difference from another text
CLOSE = 0.6  # least likeness of two versions of a line


def left_out(builder: Builder) -> Iterator[Splice]:
    """A statement or a short branch or loop left out, or only the guard or loop around its block."""
    for _, block in builder.blocks:
        for statement in block:
            if builder.defines(statement):
                continue
            if isinstance(statement, SIMPLE):
                yield *builder.rows(statement, statement), _passed(builder, block, statement)
            elif isinstance(statement, ast.If | ast.While | ast.With) and not getattr(
                statement, "orelse", ()
            ):
                inner, (start, end) = _text(builder, statement.body), builder.rows(statement, statement)
                yield start, end, _at(builder, statement, inner)
                if builder.text.count("\n", start, end) <= LONG:
                    yield start, end, _passed(builder, block, statement)


def moved(builder: Builder) -> Iterator[tuple[Splice, Splice]]:
    """One to three statements moved to another place in the block, out of it, or into an adjacent block."""
    for owner, block in builder.blocks:
        for i, statement in enumerate(block):
            for j in range(i, min(i + RUN, len(block))):
                start, end = builder.rows(statement, block[j])
                run = block[i : j + 1]
                fixed = any(isinstance(one, ast.FunctionDef | ast.Return) for one in run)
                fixed |= all(builder.defines(one) for one in run)
                if fixed or j - i + 1 == len(block) or builder.text.count("\n", start, end) > LONG:
                    break
                for at, beside in _places(builder, owner, block, (i, j)):
                    new = _at(builder, beside, builder.text[start:end])
                    if at <= start:
                        yield (at, at, new), (start, end, "")
                    elif at >= end:
                        yield (start, end, ""), (at, at, new)


def _places(
    builder: Builder, owner: ast.AST, block: list[ast.stmt], run: tuple[int, int]
) -> Iterator[tuple[int, ast.stmt]]:
    """Where the run of statements of a block may go: (offset, a statement with the indentation there)."""
    i, last = run
    for j in range(len(block)) if i == last else ():
        near = abs(j - i) <= FAR or ORDERS.search(builder.of(block[j]).partition("\n")[0])
        if near and j != i and j != i - 1:  # j == i - 1 comes below
            yield (builder.rows(block[j], block[j])[j > i]), block[j]
    if i > 0:
        yield builder.rows(block[i - 1], block[i - 1])[0], block[i - 1]
    if isinstance(owner, ast.If | ast.While | ast.With | ast.For):
        start, end = builder.rows(owner, owner)
        yield start, owner
        yield end, owner
    for other in block[max(0, i - 1) : i] + block[last + 1 : last + 2]:
        while isinstance(other, ast.If | ast.While | ast.With | ast.For):
            if any(_excludes(other, one) for one in block[i : last + 1]):
                break  # there it would never be executed
            inner = other.body
            yield builder.rows(inner[0], inner[0])[0], inner[0]
            yield builder.rows(inner[-1], inner[-1])[1], inner[-1]
            other = inner[-1] if other.lineno < block[i].lineno else inner[0]


def _excludes(outer: ast.stmt, inner: ast.stmt) -> bool:
    """Whether the inner statement could never run inside the outer: `if name == 2:` in `if name == 3:`."""
    around, own = _equal_to(outer), _equal_to(inner)
    return around is not None and own is not None and around[0] == own[0] and around[1] != own[1]


def _equal_to(statement: ast.stmt) -> tuple[str, object] | None:
    """(name, number) of `if name == number:`; None for other statements."""
    if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.Compare):
        return None
    test = statement.test
    if not isinstance(test.ops[0], ast.Eq) or not isinstance(test.comparators[0], ast.Constant):
        return None
    return ast.unparse(test.left), test.comparators[0].value


def put_in(builder: Builder) -> Iterator[Splice]:
    """A synchronising call put in, or another call or step that the builder or the step before has."""
    before = [ast.parse(text) for text in builder.earlier[-1:]]
    others = [
        ast.unparse(node)
        for tree in (builder.tree, *before)
        for node in ast.walk(tree)
        if isinstance(node, SIMPLE) and node.lineno == node.end_lineno and _may_be_missing(node)
    ]
    calls = tuple(dict.fromkeys((*SYNCHRONISING, *others)))
    for _, block in builder.blocks:
        for statement in block:
            start, end = builder.rows(statement, statement)
            for call in calls:
                line = _at(builder, statement, call + "\n")
                yield start, start, line
                if statement is block[-1]:
                    yield end, end, line


def _may_be_missing(node: ast.stmt) -> bool:
    """Whether the statement is a call, or a step of a variable: `phase = phase ^ 1`."""
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.BinOp) and ast.unparse(node.targets[0]) in ast.unparse(node.value)
    return not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call)


def guarded(builder: Builder) -> Iterator[Splice]:
    """A statement put under a guard that is used elsewhere: one warp, one lane, one CTA of a pair."""
    trees = [builder.tree, *(ast.parse(text) for text in builder.earlier[-1:])]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    guards = {f"if {ast.unparse(node.test)}:" for node in nodes if isinstance(node, ast.If)}
    guards |= {f"with {ast.unparse(node.items[0])}:" for node in nodes if isinstance(node, ast.With)}
    for _, block in builder.blocks:
        for statement in block:
            start, end = builder.rows(statement, statement)
            if builder.text.count("\n", start, end) > LONG or isinstance(statement, ast.FunctionDef):
                continue
            inner = textwrap.indent(textwrap.dedent(builder.text[start:end]), "    ")
            for guard in sorted(guards):
                yield start, end, _at(builder, statement, f"{guard}\n{inner}")


def as_given(builder: Builder) -> Iterator[Splice]:
    """A line, or a run of lines, restored as in the handout."""
    return _as_in(builder, [builder.handout], least=1)


def as_before(builder: Builder) -> Iterator[Splice]:
    """A line, or a run of lines, replaced by that of one of the three steps before."""
    return _as_in(builder, builder.earlier[:-4:-1], least=0)


def _as_in(builder: Builder, others: list[str], least: int) -> Iterator[Splice]:
    """Differences of the text from `others` undone, if those have at least `least` lines there."""
    (first, *_) = builder.blocks[0][1]
    rows = [i for i in range(first.lineno - 1, len(builder.lines)) if code(builder.lines[i])]
    mine = [code(builder.lines[i]) for i in rows]
    for text in others:
        theirs = [line.rstrip() for line in text.splitlines() if code(line)]
        bare = [code(line) for line in theirs]
        matcher = difflib.SequenceMatcher(None, mine, bare, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag != "equal" and a < len(rows) and b - a <= HUNK and least <= d - c <= HUNK:
                yield from _hunk(builder, rows, (a, b), theirs[c:d])


def _hunk(builder: Builder, rows: list[int], mine: tuple[int, int], theirs: list[str]) -> Iterator[Splice]:
    a, b = mine
    first = rows[a]
    last = rows[b - 1] + 1 if a < b else first
    lines = textwrap.dedent("\n".join(theirs)).splitlines()
    yield builder.starts[first], builder.starts[last], _indented(builder.lines[first], lines)
    for line in lines:
        for i in rows[a:b]:
            likeness = difflib.SequenceMatcher(
                None, code(builder.lines[i]), code(line), autojunk=False
            ).ratio()
            if CLOSE <= likeness < 1:
                yield builder.starts[i], builder.starts[i + 1], _indented(builder.lines[i], [line.strip()])


def _indented(beside: str, lines: list[str]) -> str:
    return textwrap.indent(
        "".join(f"{line}\n" for line in lines), beside[: len(beside) - len(beside.lstrip())]
    )


# ---- lines ----


def _text(builder: Builder, block: list[ast.stmt]) -> str:
    start, end = builder.rows(block[0], block[-1])
    return builder.text[start:end]


def _at(builder: Builder, beside: ast.stmt, text: str) -> str:
    """`text` with the indentation of the statement `beside`."""
    return textwrap.indent(textwrap.dedent(text), " " * beside.col_offset)


def _passed(builder: Builder, block: list[ast.stmt], statement: ast.stmt) -> str:
    return "" if len(block) > 1 else " " * statement.col_offset + "pass\n"


MOVES: dict[str, Callable[[Builder], Iterator[Splice]]] = {
    "as given": as_given,
    "as before": as_before,
    "left out": left_out,
    "put in": put_in,
    "guarded": guarded,
}
