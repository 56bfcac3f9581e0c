"""The fingerprint of a kernels file: its runs of tokens.

Comments, names, numbers, brackets, layout and the skeleton do not count. Runs in a confined child, see
reader.py: some texts take Python's tokenizer minutes.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import io
import json
import keyword
import re
import sys
import tokenize
import zipfile
from array import array
from collections.abc import Iterable

from tirxlab.artifact import Artifact, ArtifactError
from tirxlab.porting import PACKAGES, split
from tirxlab.steps import StepError, read_skeleton, sections
from tirxlab.toolchain.nvrtc import SOURCE_MARK

RUN = 14  # tokens; `a.b.c` is one, so that names given to parts of it change nothing
MANY = 20_000  # runs of one submission that are compared: twice what the reference has
DEEPEST, ROUNDS = 50_000, 4  # recursion limit for walking a tree, most walks
_COMMENT = re.compile(rf"//[^\n]*|/\*.*?\*/|\b{SOURCE_MARK}\(\d+\);", re.DOTALL)  # and marks of lines
_WORD = re.compile(r"[A-Za-z_]\w*|\S")
_LEFT_OUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}
_SAYS_NOTHING = set("()[]{},;.") | {"pass"}
_CONSTANTS = {"None", "True", "False"}
_KINDS = {tokenize.STRING: "text", tokenize.NUMBER: "number"}
# Names that can hide code: by running text, looking up a name that is pieced together, or writing a file.
_HIDES = {
    *("exec", "eval", "compile", "getattr", "setattr", "globals", "locals", "vars", "open", "breakpoint"),
    *("from_source", "load_json", "runstring", "rundocs", "tofile", "savetxt", "save", "memmap"),
}
_HARMLESS = {
    *("__future__", "collections", "contextlib", "dataclasses", "enum", "functools", "itertools", "math"),
    *("numpy", "typing"),
}
_NEUTRAL = {  # operator -> the constants that change nothing: on its left, on its right
    **dict.fromkeys((ast.Add, ast.BitOr, ast.BitXor), ((0,), (0,))),
    **dict.fromkeys((ast.Sub, ast.LShift, ast.RShift), ((), (0,))),
    **dict.fromkeys((ast.Div, ast.FloorDiv, ast.Pow), ((), (1,))),
    ast.Mult: ((1,), (1,)),
}
_LITERALS = ast.Lambda, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp
_OPEN_NAMES = {"__name__", "__init__", "__call__", "__enter__", "__exit__", "__len__", "__getitem__"}


def tokens(text: str) -> list[str]:
    """The text's tokens as far as it can be read; names, numbers and strings without their content.

    Brackets, commas, `pass` and statements that do nothing are left out: they can be added anywhere.
    """
    lines = io.StringIO(text).readlines()
    found: list = []
    at = 0
    while at < len(lines):  # a text may break on purpose: the rest is read, too
        words, at = _words(lines, at)
        found += words
    return found


def _words(lines: list[str], at: int) -> tuple[list[str], int]:
    """(the tokens of the lines from `at` on, the line at which to continue after one that is not Python)."""
    rest = (lines[n] for n in range(at, len(lines)))
    found: list = []
    line: list = []
    begin, dotted = 1, False
    try:
        for token in tokenize.generate_tokens(rest.__next__):
            begin = token.end[0]
            if token.type == tokenize.NEWLINE:
                found += [] if set(line) <= {"name", "text", "number", "..."} and len(line) < 2 else line
                line = []
            elif not dotted and token.type not in _LEFT_OUT and token.string not in _SAYS_NOTHING:
                line.append(_plain(token))
            dotted = token.string == "."
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return found + line, at + begin
    return found + line, len(lines)


def _plain(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME and token.string in _CONSTANTS:
        return "number"
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    return _KINDS.get(token.type, token.string)


def plainer(text: str, gaps: bool = False, bare: bool = False) -> str:
    """The text without the statements that change nothing; "" if Python cannot parse it.

    `gaps`: the text has gaps to be filled in, so unread names and empty blocks stay. `bare`: calls of what
    the file itself or Python defines, and constants, are assumed to change nothing.
    """
    limit = sys.getrecursionlimit()
    try:
        tree: ast.AST = ast.parse(text)  # refuses text nested deeper than Python compiles
        sys.setrecursionlimit(DEEPEST)
        own = _own(tree) if bare else set()
        for _ in range(ROUNDS):  # what only an idle statement reads is idle, too
            loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            busy = _Busy(loaded, own, gaps, bare)
            busy.visit(tree)
            if not busy.changed:
                break
        return ast.unparse(tree) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    finally:
        sys.setrecursionlimit(limit)


def _own(tree: ast.AST) -> set[str]:
    """Names of the file's own functions, classes and lambdas, of values made with them, of harmless modules.

    A call of one does not show whether it does anything; its definition does, and is compared there.
    """
    nodes = list(ast.walk(tree))
    own = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _HARMLESS
        ):
            names = [one for one in node.names if isinstance(node, ast.ImportFrom) or one.name in _HARMLESS]
            own |= {one.asname or one.name for one in names}
    for _ in range(ROUNDS):
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and _made_with(node.value, own):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                own |= {one.id for one in targets if isinstance(one, ast.Name)}
    return own


def _made_with(value: ast.AST | None, own: set[str]) -> bool:
    """Whether it is a lambda, a literal, one of these names, a part of one, or a call of one or with one."""
    while isinstance(value, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(value, ast.Call) and any(_made_with(one, own) for one in value.args):
            return True
        value = value.func if isinstance(value, ast.Call) else value.value
    return isinstance(value, _LITERALS) or (isinstance(value, ast.Name) and value.id in own)


class _Busy(ast.NodeTransformer):
    """Removes what changes nothing: unread names, unused values, and blocks of nothing else.

    Calls of the file's `own` functions count as such; one with a single argument becomes that argument. If
    `bare`, a call of a Python builtin becomes its first argument, and a sum with a number its other operand.
    Where this removes too much, it does so in every text.
    """

    def __init__(self, loaded: set[str], own: set[str], gaps: bool, bare: bool):
        self.loaded, self.own, self.gaps, self.bare = loaded, own, gaps, bare
        self.changed = False

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        if not (node._fields or isinstance(node, ast.Pass)):
            return node  # Load, Add, ..: nearly half of a tree
        left = self._left(self.generic_visit(node))
        self.changed = self.changed or left is not node
        return left

    def _left(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """What replaces the node; None if nothing does."""
        if isinstance(node, ast.Call) and self._hands_back(node):
            return node.args[0]
        if (same := _same(node, self.bare)) is not None:
            return same
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        if isinstance(node, ast.stmt) and self._idle(node):
            return None
        if not isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare):
            return node
        parts = (one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))
        return ast.Constant(0) if all(isinstance(one, ast.Constant) for one in parts) else node

    def _hands_back(self, node: ast.Call) -> bool:
        """Whether the call may return its first argument: the file's own with one argument, or a builtin."""
        if self.bare and node.args and isinstance(node.func, ast.Name) and node.func.id in dir(builtins):
            return not isinstance(node.args[0], ast.Starred)
        one = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
        return one and _made_with(node.func, self.own)

    def _idle(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Pass | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Delete):
            return True
        if isinstance(node, ast.Expr | ast.Assert):
            return _quiet(node, self.own)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.expr)]
            if not all(isinstance(one, ast.Name | ast.Tuple | ast.List) for one in parts):
                return False
            if not _quiet(node, self.own):
                return False
            read = self.loaded & {one.id for one in parts if isinstance(one, ast.Name)}
            value = ast.walk(node.value) if node.value else ()
            return not (self.gaps or read) or not any(isinstance(one, ast.Name) for one in value)
        bodies = [getattr(node, name) for name in ("body", "orelse", "finalbody") if hasattr(node, name)]
        return bool(bodies) and not any(bodies) and not self.gaps and _quiet(node, self.own)


def _same(node: ast.AST, bare: bool) -> ast.expr | None:
    """The part with the value of the whole: x of `x + 0`, `(x,)[0]`, `x if True else y`, `(lambda: x)()`, ..

    `bare`: also x of a sum or product with any number, as in `x + 3 - 3`.
    """
    match node:
        case ast.IfExp(test=ast.Constant(value=value)):
            return node.body if value else node.orelse
        case ast.NamedExpr() | ast.UnaryOp(op=ast.UAdd()):
            return node.value if isinstance(node, ast.NamedExpr) else node.operand
        case ast.UnaryOp(op=one, operand=ast.UnaryOp(op=other, operand=inner)) if type(one) is type(other):
            return inner
        case ast.BinOp(left=ast.Constant(value=value), right=other) if not isinstance(other, ast.Constant):
            return other if bare or value in _NEUTRAL.get(type(node.op), ((), ()))[0] else None
        case ast.BinOp(left=other, right=ast.Constant(value=value)) if not isinstance(other, ast.Constant):
            return other if bare or value in _NEUTRAL.get(type(node.op), ((), ()))[1] else None
        case ast.BoolOp(values=values):
            left = [one for one in values if not isinstance(one, ast.Constant)]
            return left[0] if len(left) == 1 else None
        case ast.Subscript(value=ast.Tuple(elts=ones) | ast.List(elts=ones) | ast.Dict(values=ones)):
            at = getattr(node.slice, "value", 0)
            return ones[at] if at in range(len(ones)) else None
        case ast.Call(func=ast.Lambda(body=body), args=[], keywords=[]):
            return body
    return None


def _quiet(node: ast.AST, own: set[str]) -> bool:
    """Whether the node calls only what Python or the file itself defines, or what only names a value."""
    for one in ast.walk(node):
        if isinstance(one, ast.NamedExpr | ast.Yield | ast.Await):
            return False
        if isinstance(one, ast.Call) and not _harmless(one.func, own):
            return False
    return True


def _harmless(function: ast.expr, own: set[str]) -> bool:
    """Whether it is a builtin, a function of the file, a method of what either returns, or Tx.meta_var."""
    if _made_with(function, own):
        return True
    if isinstance(function, ast.Attribute):
        of = function.value
        made = isinstance(of, ast.Constant) or (isinstance(of, ast.Call) and _harmless(of.func, own))
        return made or function.attr == "meta_var"
    return isinstance(function, ast.Name) and function.id in dir(builtins)


def hides(data: bytes) -> bytes:
    """b"yes" if the text can run code that is not in sight, or is not Python: what it builds says more."""
    try:
        tree = ast.parse(data.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return b"yes"
    return b"yes" if any(map(_hides, ast.walk(tree))) else b""


def _hides(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] not in _HARMLESS for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        package = (node.module or "").split(".")[0]
        known = package in _HARMLESS or package in ("tirxlab", *PACKAGES) and not split(node.names)[1]
        return not known or any(alias.name in _HIDES for alias in node.names)
    name = getattr(node, "id", getattr(node, "attr", ""))  # normalised by Python, whatever letters it has
    return name in _HIDES or (name.startswith("__") and name.endswith("__") and name not in _OPEN_NAMES)


def fingerprint(data: bytes) -> bytes:
    """Hashes of the runs of tokens without those of the skeleton; at most MANY of each kind.

    Even ones are of the text as it is, odd ones of the bare text: in a string, or after an error, nobody can
    tell which calls are of the file's own functions.
    """
    text = data.decode()
    kinds = (sorted(_runs(text, bare=bare) - _given(bare))[:MANY] for bare in (False, True))
    return array("Q", sorted(run for kind in kinds for run in kind)).tobytes()


@functools.lru_cache
def _given(bare: bool) -> set[int]:
    return _runs(read_skeleton(), True, bare)


def _runs(text: str, gaps: bool = False, bare: bool = False) -> set[int]:
    busy = plainer(text, gaps, bare)
    try:
        parts = list(sections(busy or text).values())
    except StepError:
        parts = [busy or text]
    found = set()
    for part in parts:
        words = tokens(part if busy else plainer(part, gaps, bare) or part)
        for i in range(len(words) - RUN + 1):
            run = "\0".join(words[i : i + RUN]).encode()
            number = int.from_bytes(hashlib.blake2b(run, digest_size=8).digest(), "little")
            found.add(number | 1 if bare else number & ~1)
    return found


def built(data: bytes) -> bytes:
    """As JSON, a line for each artifact of a bundle: its name and a hash of its CUDA that ignores names."""
    found = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if not name.startswith("artifacts/"):
                continue
            try:
                cuda = Artifact.from_bytes(archive.read(name)).cuda
            except ArtifactError:
                continue
            found.append(f"{name} {hashlib.sha256(' '.join(_renamed(cuda)).encode()).hexdigest()}")
    return json.dumps(sorted(found)).encode()


def _renamed(cuda: str) -> Iterable[str]:
    """The words of the text, every name replaced by the number of its first use."""
    numbers: dict[str, str] = {}
    for word in _WORD.findall(_COMMENT.sub(" ", cuda)):
        yield numbers.setdefault(word, f"n{len(numbers)}") if word[0].isalpha() or word[0] == "_" else word
