"""Edits by likeness: a statement made like its counterpart, and one change in all of its places.

Code for A, M and rows has a counterpart for B, N and columns, and a slip in one of the two shows by
comparison with the other.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator

from tirxlab.explain.repairs.slots import Slot, slots
from tirxlab.explain.repairs.text import Builder, Splice

PAIRS = (
    {"A": "B", "M": "N"},
    {"A": "B"},
    {"M": "N"},
)
CLOSE = 0.7  # least likeness of two counterparts
_NAME = re.compile(r"[A-Za-z_]\w*")


def mirrored(text: str, pair: dict[str, str]) -> str:
    """`text` with the pair exchanged in its names: n_st for m_st, Bsmem for Asmem, BLK_M for BLK_N."""
    both = pair | {other: one for one, other in pair.items()}
    both |= {one.lower(): other.lower() for one, other in both.items()}

    def other(match: re.Match[str]) -> str:
        name = match[0]
        parts = name.split("_")
        if any(part in both for part in parts):
            return "_".join(both.get(part, part) for part in parts)
        return both[name[0]] + name[1:] if name[0] in both and name[1:] in ("smem", "reg") else name

    return _NAME.sub(other, text)


def counterparts(builder: Builder) -> Iterator[Splice]:
    """A statement replaced by the mirror image of another that is like it."""
    simple = [node for node in builder.nodes if isinstance(node, ast.Expr | ast.Assign) and _short(node)]
    texts = [builder.of(node) for node in simple]
    for pair in PAIRS:
        mirrors = [mirrored(text, pair) for text in texts]
        matchers = {m: difflib.SequenceMatcher(None, "", m, autojunk=False) for m in mirrors}
        for node, text in zip(simple, texts, strict=True):
            for mirror, source in zip(mirrors, texts, strict=True):
                if source in (text, mirror) or mirror == text or mirror in texts:
                    continue
                matcher = matchers[mirror]
                matcher.set_seq1(text)
                if matcher.real_quick_ratio() >= CLOSE and matcher.quick_ratio() >= CLOSE <= matcher.ratio():
                    yield *builder.span(node), mirror


def _short(node: ast.stmt) -> bool:
    return (node.end_lineno or node.lineno) - node.lineno < 6


def everywhere(
    builder: Builder, siblings: dict[str, set[str]], places: dict[Slot, dict[str, int]]
) -> Iterator[tuple[Splice, ...]]:
    """One name replaced by another, or two names swapped, wherever they are used; one index of a buffer
    replaced in all its uses; `if` and `while` with the same test exchanged.
    """
    yield from _indices(builder, siblings, places)
    used: dict[str, list[tuple[int, int]]] = {}
    for node in builder.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.setdefault(node.id, []).append(builder.span(node))
    blocks = [builder.span(node) for node in builder.nodes if isinstance(node, ast.If | ast.With | ast.For)]
    for name, others in siblings.items():
        mine = sorted(used.get(name, ()))
        within = [[span for span in mine if a <= span[0] < b] for a, b in blocks]
        fewer = {tuple(spans) for spans in within if 1 < len(spans) < len(mine)}
        for other in sorted(others):
            theirs = used.get(other, [])
            for spans in sorted(fewer):
                yield tuple((*span, other) for span in spans)
            if 1 < len(mine) <= 6:
                yield tuple((*span, other) for span in mine)
            if name < other and mine and theirs and len(mine) + len(theirs) <= 16:
                swapped = [(*span, other) for span in mine] + [(*span, name) for span in theirs]
                yield tuple(sorted(swapped))
    yield from _loops(builder)


def _indices(
    builder: Builder, siblings: dict[str, set[str]], places: dict[Slot, dict[str, int]]
) -> Iterator[tuple[Splice, ...]]:
    uses: dict[tuple[str, Slot, str], list[tuple[int, int]]] = {}
    for node in builder.nodes:
        if isinstance(node, ast.Subscript):
            for slot, part in slots(ast.Module([ast.Expr(node)], [])):
                if slot[0] == "index":
                    text = ast.unparse(part)
                    for whose in (ast.unparse(node.value), ""):  # one buffer, or all of its kind
                        uses.setdefault((whose, slot, text), []).append(builder.span(part))
    loops = {n.target.id for n in builder.nodes if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}
    ids = {name for names in siblings.values() for name in names if name.endswith("_id")}
    for (_, slot, text), spans in uses.items():
        if len(spans) > 1:
            for other in sorted({*places[slot], *ids, "0"} - {text} - loops):
                yield tuple((*span, other) for span in sorted(set(spans)))


def _moves_on(node: ast.If | ast.While) -> bool:
    """Whether a loop advances the object that its test asks, as `while scheduler.valid(): .. next_tile()`."""

    def called(parts: list) -> set[str]:
        calls = (n for part in parts for n in ast.walk(part) if isinstance(n, ast.Call))
        return {ast.unparse(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)}

    return isinstance(node, ast.While) and bool(called([node.test]) & called(node.body))


def _loops(builder: Builder) -> Iterator[tuple[Splice, ...]]:
    """Blocks with the same test turned from `if` into `while` or back: all of them, or each alone."""
    tests: dict[tuple[str, type], list[int]] = {}
    for node in builder.nodes:
        if isinstance(node, ast.If | ast.While) and not node.orelse and not _moves_on(node):
            start = builder.span(node)[0]
            tests.setdefault((ast.unparse(node.test), type(node)), []).append(start)
    for (_, kind), starts in tests.items():
        old, new = ("if", "while") if kind is ast.If else ("while", "if")
        yield tuple((start, start + len(old), new) for start in sorted(starts))
        if len(starts) > 1:
            for start in starts:
                yield ((start, start + len(old), new),)
