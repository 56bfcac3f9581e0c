"""Single edits of a builder, by family: expressions here, statements in moves.py. Many make no sense.

An expression is replaced by something near it in value or in use: one more or less, an expression from the
same kind of place elsewhere, another name with the same use.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property

from tirxlab.explain.repairs.likeness import counterparts, everywhere
from tirxlab.explain.repairs.moves import MOVES, moved
from tirxlab.explain.repairs.riddles import Riddles
from tirxlab.explain.repairs.scope import NAME, Scope, whole
from tirxlab.explain.repairs.slots import Slot, seen, slots, tail
from tirxlab.explain.repairs.terms import Terms
from tirxlab.explain.repairs.text import Builder, Edit, Splice

_STEP = ("+ 1", "- 1", "^ 1")
COMPARED = {
    ast.Eq: ("!=", ">", "<"),
    ast.NotEq: ("==",),
    ast.Lt: ("<=", ">", "=="),
    ast.LtE: ("<", "=="),
    ast.Gt: (">=", "<", "!="),
    ast.GtE: (">", "=="),
}


class Edits:
    """All edits of one builder."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.trees = [builder.tree, *(_tree(text) for text in builder.earlier)]
        self.places = seen(*self.trees)
        self.scope, self.riddles = Scope(builder), Riddles(builder)

    def __iter__(self) -> Iterator[Edit]:
        """Yields each edit once."""
        known: set[Splice] = set()
        of_statements = [(name, make(self.builder)) for name, make in MOVES.items()]
        of_expressions = [(name, make(self)) for name, make in FAMILIES.items()]
        for family, splices in (*of_statements, *of_expressions):
            for splice in splices:
                least = trimmed(self.builder.text, *splice)
                changes = least not in known and least[1] - least[0] + len(least[2])
                if changes and self.scope.allows(splice, family in MOVES) and not self.riddles.holds(splice):
                    known.add(least)
                    yield Edit(family, (least,))
        for one, other in moved(self.builder):
            yield Edit("moved", (one, other))
        for several in everywhere(self.builder, self.siblings, self.places):
            yield Edit("everywhere", several)

    @cached_property
    def numbers(self) -> set[str]:
        """Names of numbers in the builder: PIPE_DEPTH, CTA_GROUP."""
        own = NAME.findall(re.sub(r"#[^\n]*", "", self.builder.own))
        return {name for name in own if name.isupper()} - LETTERS

    @cached_property
    def constants(self) -> set[str]:
        """`numbers`, and those that the file's header defines: F16_BYTES."""
        header = [node for node in ast.walk(_tree(self.builder.header)) if isinstance(node, ast.Assign)]
        values = [(node, list(ast.walk(node.value))) for node in header]
        made = [node for node, parts in values if any(whole(one) for one in parts) and _plain(parts)]
        names = {one.id for node in made for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)}
        return self.numbers | {name for name in names if name.isupper()}

    @cached_property
    def siblings(self) -> dict[str, set[str]]:
        """Name -> names with the same use: made by the same call, or found between the same two words."""
        here = set(NAME.findall(re.sub(r"#[^\n]*", "", self.builder.own)))
        groups = [self.numbers, *self._made(), *self._between()]
        found: dict[str, set[str]] = defaultdict(set)
        for names in groups:
            for name in sorted(names):
                found[name] |= (names & here) - {name}
        return found

    def _made(self) -> list[set[str]]:
        """Groups of names assigned from calls of the same function; ids are one group, barriers another."""
        groups: dict[str, set[str]] = defaultdict(set)
        for node in self.builder.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                made = tail(node.value.func)
                groups[re.sub(r".*_id$", "id", re.sub(r".*Bar.*", "bar", made))] |= {
                    one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)
                }
        return list(groups.values())

    def _between(self) -> list[set[str]]:
        between: dict[tuple[str, str], set[str]] = defaultdict(set)
        for text in (*self.builder.earlier, self.builder.own):
            plain = re.sub(r"#[^\n]*|\"[^\"\n]*\"", "", text)
            for match in re.finditer(r"(\w+|\S)[ \n]*(?<![\w])([A-Za-z_]\w*)[ ]*(?=(\S|\n))", plain):
                between[match[1], match[3]].add(match[2])
        return [names for names in between.values() if len(names) <= MANY]

    @cached_property
    def indices(self) -> set[str]:
        """Names that are used alone as an index, loop variables, and ids: stage, warp_id."""
        found = {
            part.id
            for slot, part in slots(self.builder.tree)
            if slot[0] == "index" and isinstance(part, ast.Name)
        }
        for node in self.builder.nodes:
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
        return found | {name for group in self._made() if "warp_id" in group for name in group}


LETTERS = {"A", "B", "D", "S"}  # buffers, and S of the layouts
FEW = 10  # a number below this may be replaced by a named constant
MANY = 12  # if more names than this occur between two words, these say nothing about their use


def _tree(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _plain(nodes: list[ast.AST]) -> bool:
    return not any(isinstance(node, ast.Call) for node in nodes)


def trimmed(text: str, start: int, end: int, new: str) -> Splice:
    """The smallest splice with the same effect."""
    same = _shared(text[start:end], new)
    start, new = start + same, new[same:]
    same = _shared(text[start:end][::-1], new[::-1])
    return start, end - same, new[: len(new) - same]


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike; hundreds of thousands of splices ask for it."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[:middle] == other[:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def constants(edits: Edits) -> Iterator[Splice]:
    """Another number near by, or a named one. A constant above 1 is never set below 2: a ring of one stage
    would hide many mistakes without repairing them.
    """
    named = {id(node.value) for node in edits.builder.nodes if isinstance(node, ast.Assign)}
    for node in edits.builder.nodes:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            n, span = node.value, edits.builder.span(node)
            least = 2 if n > 1 and id(node) in named else 0
            for near in dict.fromkeys((n + 1, n - 1, 1 - n, n * 2, n // 2, 0, 1)):
                if near >= least and near != n:
                    yield *span, str(near)
            names = edits.constants | (edits.indices if n < 2 else set())
            for name in sorted(names) if n < FEW else ():
                yield *span, name
        elif isinstance(node, ast.Name) and node.id in edits.numbers and isinstance(node.ctx, ast.Load):
            for other in ("1", *sorted(edits.numbers - {node.id})):
                yield *edits.builder.span(node), str(other)


def names(edits: Edits) -> Iterator[Splice]:
    """Another name with the same use, in one place or in all places of a slice or of a simple statement."""
    for node, (start, end) in _pieces(edits.builder):
        text = edits.builder.text[start:end]
        for name in dict.fromkeys(NAME.findall(text)):
            between = re.split(rf"(?<![\w\"]){name}(?!\w)", text)
            if len(between) > 2 and not isinstance(node, ast.stmt | ast.Slice):
                continue  # each occurrence is a piece of its own
            for other in sorted(edits.siblings.get(name, ())):
                yield start, end, other.join(between)


def _pieces(builder: Builder) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
    """Names, last parts of attributes, slices, and simple statements, with their spans."""
    for node in builder.nodes:
        if isinstance(node, ast.Name):
            yield node, builder.span(node)
        elif isinstance(node, ast.Attribute):
            end = builder.span(node)[1]
            yield node, (end - len(node.attr), end)
        elif isinstance(node, ast.Slice | ast.Expr | ast.Assign):
            yield node, builder.span(node)


def expressions(edits: Edits) -> Iterator[Splice]:
    """An expression from the same kind of place elsewhere."""
    for slot, node in slots(edits.builder.tree):
        mine = ast.unparse(node)
        for other in edits.places[slot]:
            if other != mine:
                yield *edits.builder.span(node), other


def steps(edits: Edits) -> Iterator[Splice]:
    """One more, one less, or the other parity."""
    for slot, node in slots(edits.builder.tree):
        if isinstance(node, ast.Constant | ast.Slice | ast.Compare | ast.Tuple | ast.List | ast.Dict):
            continue
        start, end = edits.builder.span(node)
        text = edits.builder.text[start:end]
        called = slot[1] in ("wait", "try_wait", "ptr_to", "arrive", "range", "unroll")
        if called or slot[0] == "index" or slot[0] == "call" and "load" in slot[1] or "mma" in slot[1]:
            for change in _STEP:
                yield start, end, f"{text} {change}"


def operands(edits: Edits) -> Iterator[Splice]:
    """One operand alone, other brackets, or another operator."""
    builder = edits.builder
    for node in builder.nodes:
        if not isinstance(node, ast.BinOp):
            continue
        start, end = builder.span(node)
        left, right = builder.of(node.left), builder.of(node.right)
        yield start, end, left
        yield start, end, right
        sign = _sign(builder, node)
        for other in SIGNS.get(sign, ()):
            yield start, end, f"{_bracketed(builder, node.left)} {other} {_bracketed(builder, node.right)}"
        inner = node.left
        if isinstance(inner, ast.BinOp):
            a, b, s = builder.of(inner.left), builder.of(inner.right), _sign(builder, inner)
            yield start, end, f"{a} {s} {b} {sign} {right}"
            yield start, end, f"({a} {s} {b}) {sign} {right}"
            yield start, end, f"{a} {s} ({b} {sign} {right})"
            yield start, end, f"{a} {sign} {right}"


SIGNS = {"+": ("-", "*"), "-": ("+",), "*": ("+", "//"), "//": ("%", "*"), "%": ("//",)}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitXor: "^"}


def _sign(builder: Builder, node: ast.BinOp) -> str:
    return _SIGNS.get(type(node.op), "+")


def _bracketed(builder: Builder, node: ast.AST) -> str:
    return f"({builder.of(node)})" if isinstance(node, ast.BinOp) else builder.of(node)


def factors(edits: Edits) -> Iterator[Splice]:
    """A name scaled as it, or one in the same kind of place, is scaled elsewhere: `i` to `i * EPI_N`."""
    builder = edits.builder
    for node in builder.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            start, end = builder.span(node.value)
            for name in sorted(edits.numbers):
                yield start, end, f"{name} * ({builder.text[start:end]})"
    scaled: dict[str, set[str]] = defaultdict(set)
    placed: dict[Slot, set[str]] = defaultdict(set)
    for tree in edits.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name | ast.Attribute):
                scaled[ast.unparse(node.left)].add(_more(node))
        for slot, part in slots(tree):
            for one in ast.walk(part) if slot[0] in ("value", "call", "index") else ():
                if isinstance(one, ast.BinOp):
                    placed[slot].add(_more(one))
    for slot, part in slots(builder.tree):
        start, end = builder.span(part)
        for more in sorted(placed[slot] - {""}):
            text = builder.text[start:end]
            yield (
                start,
                end,
                f"({text}) {more}" if isinstance(part, ast.BinOp) and more[0] in "*/%" else f"{text} {more}",
            )
    inside = {id(node.left) for node in builder.nodes if isinstance(node, ast.BinOp)}
    for node in builder.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            for more in sorted(scaled.get(ast.unparse(node), set()) - {""}):
                start, end = builder.span(node)
                text = f"{builder.of(node)} {more}"
                yield start, end, f"({text})" if id(node) in inside and more[0] in "+-" else text


def _more(node: ast.BinOp) -> str:
    """`* EPI_N` of `i * EPI_N`; "" for other operations."""
    sign = _SIGNS.get(type(node.op))
    return f"{sign} {ast.unparse(node.right)}" if sign else ""


def comparisons(edits: Edits) -> Iterator[Splice]:
    builder = edits.builder
    for node in builder.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            start, end = builder.span(node)
            left, right = builder.of(node.left), builder.of(node.comparators[0])
            for sign in COMPARED.get(type(node.ops[0]), ()):
                yield start, end, f"{left} {sign} {right}"
            for sign in ("!=", ">", "=="):
                yield start, end, f"{left} {sign} 0"
            for bound in ("0", "1", *sorted(edits.numbers), *(f"{one} - 1" for one in sorted(edits.numbers))):
                yield *builder.span(node.comparators[0]), bound
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield *builder.span(node), str(not node.value)


def exchanges(edits: Edits) -> Iterator[Splice]:
    """Two arguments, two indices or two operands swapped."""
    builder = edits.builder
    for node in builder.nodes:
        if isinstance(node, ast.Call):
            parts: list[ast.expr] = [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.Tuple | ast.List):
            parts = node.elts
        elif isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        else:
            continue
        for i, one in enumerate(parts):
            for other in parts[i + 1 :]:
                (a, b), (c, d) = sorted((builder.span(one), builder.span(other)))
                text = builder.text
                if b <= c:
                    yield a, d, text[c:d] + text[b:c] + text[a:b]


def ends(edits: Edits) -> Iterator[Splice]:
    """A keyword added that other calls of the same function have."""
    builder = edits.builder
    words: dict[str, set[str]] = defaultdict(set)
    for tree in edits.trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                words[name] |= {f"{w.arg}={ast.unparse(w.value)}" for w in node.keywords if w.arg}
    for node in builder.nodes:
        if isinstance(node, ast.Call) and node.args:
            has = {word.arg for word in node.keywords}
            end = builder.span(node)[1]
            for word in sorted(words[ast.unparse(node.func).rpartition(".")[2]]):
                if word.partition("=")[0] not in has:
                    yield end - 1, end - 1, f", {word}"


def terms(edits: Edits) -> Iterator[Splice]:
    return iter(Terms(edits.builder, edits.trees, edits.numbers, edits.indices))


def mirrors(edits: Edits) -> Iterator[Splice]:
    return counterparts(edits.builder)


FAMILIES: dict[str, Callable[[Edits], Iterator[Splice]]] = {
    "constant": constants,
    "name": names,
    "expression": expressions,
    "step": steps,
    "operand": operands,
    "factor": factors,
    "comparison": comparisons,
    "exchange": exchanges,
    "keyword": ends,
    "term": terms,
    "mirror": mirrors,
}
