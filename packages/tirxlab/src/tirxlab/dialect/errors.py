"""One-screen errors: what is wrong, on which line of the student's own file.

TVM reports the innermost line it was parsing, which is often inside TVM or inside this package.
Its traceback still holds all outer lines, too; the innermost one in the student's file is reported.
"""

import ast
import difflib
import linecache
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.script.parser.core.parser import Parser
from tvm.tirx.script.parser.entry import TIRInline

from .docs import documented
from .wording import short

_OUR_ROOTS = tuple(os.path.dirname(os.path.abspath(str(path))) + os.sep for path in (tvm.__file__, __file__))
_MAX_ERRORS = 5  # how many of one kernel are shown


class KernelError(ValueError):
    """A kernel that cannot be built. `file`, `line` (1-based) name the student's line; `reason` says why.

    others: further errors of the same kernel; the message shows the first few of them. caller: the line that
    calls the function in which `line` is; 0 if that is the kernel.
    """

    def __init__(
        self, reason: str, file: str = "<unknown>", line: int = 0, text: str = "", others: list | None = None
    ):
        self.reason, self.file, self.line, self.text = reason, file, line, text
        self.caller = 0
        self.others: list[KernelError] = list(others or [])
        shown = f"{os.path.basename(file)}:{line}: {reason}"
        shown += f"\n    {text.strip()}" if text.strip() else ""
        more = [str(other) for other in self.others[: _MAX_ERRORS - 1]]
        left = len(self.others) - len(more)
        super().__init__("\n".join([shown, *more, *([f"and {left} more"] if left else [])]))


@dataclass(frozen=True)
class _Place:
    file: str
    line: int
    text: str


def is_students(file: str | None) -> bool:
    """Whether a source file is neither TVM's nor this package's."""
    return bool(file and not os.path.abspath(file).startswith(_OUR_ROOTS))


def _places(error: BaseException) -> Iterator[_Place]:
    """The source lines the parser was visiting when `error` was raised, outermost first."""
    source: Any = None
    trace = error.__traceback__
    while trace is not None:
        code, local = trace.tb_frame.f_code, trace.tb_frame.f_locals
        owner: Any = local.get("self")
        if code is TIRInline.__call__.__code__:
            source = owner.source
        elif code is Parser.visit.__code__ and getattr(local.get("node"), "lineno", None) is not None:
            source = source or owner.diag.source
            yield place_of(source, local["node"])
        trace = trace.tb_next


def place_of(source, node) -> _Place:
    """The place of a node of the syntax tree: TVM counts lines from the kernel's first or (for functions
    inside a kernel) from the file's.
    """
    file, line = source.source_name, source.location(node)[0]
    if node.lineno > len(source.source.splitlines()):
        line = node.lineno
    return _Place(file, line, linecache.getline(file, line))


_CUDA = {  # CUDA C++'s name -> the language's
    "__syncthreads": "Tx.cuda.cta_sync()",
    "printf": "Tx.cuda.printf(...)",
    "threadIdx": "Tx.thread_id, Tx.warp_id or Tx.warpgroup_id, which the skeleton calls at the top",
    "blockIdx": "Tx.cta_id, which the skeleton calls at the top",
}


def _known_as(name: str, place: _Place) -> str:
    """`; write Tx.ptx.fence.proxy_async` for the last parts of an instruction's name, or for CUDA's name."""
    if name in _CUDA:
        return f"; write {_CUDA[name]}"
    written = re.search(rf"\b{name}(\.\w+)*", place.text)
    tail = written[0] if written else name
    whole = [path for path in documented() if path.startswith("Tx.") and path.endswith(f".{tail}")]
    return f"; write {min(whole, key=len)}" if whole else ""


def _defined_later(name: str, place: _Place) -> str:
    """`; line 40 defines it, below this one` for a name that only later lines of the builder define."""
    lines = [node.lineno for node in _around(place) if isinstance(node, ast.Name) and name in _bound(node)]
    return f"; line {min(lines)} defines it, below this one" if lines and min(lines) > place.line else ""


def _spelt_like(name: str, place: _Place) -> str:
    """`; did you mean BLK_N?` if the file's top level or the builder around the place has a similar name."""
    known = {found for node in _around(place) for found in _bound(node)}
    close = difflib.get_close_matches(name, sorted(known - {name}), 1, 0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _around(place: _Place) -> Iterator[ast.AST]:
    """The nodes of the file's syntax tree that a place can see: the top level's, and its own function's."""
    try:
        tree = ast.parse("".join(linecache.getlines(place.file)))
    except SyntaxError:  # no such file
        return
    for node in tree.body:
        inside = isinstance(node, ast.FunctionDef) and node.lineno <= place.line <= (node.end_lineno or 0)
        yield from ast.walk(node) if inside or not isinstance(node, ast.FunctionDef) else [node]


def _bound(node: ast.AST) -> list[str]:
    """Names that a node of a syntax tree defines."""
    if isinstance(node, ast.FunctionDef | ast.alias):
        return [getattr(node, "asname", None) or node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def kernel_error(error: BaseException, file: str, line: int) -> KernelError:
    """Turn an exception raised while parsing a kernel that starts at `file`:`line` into a KernelError."""
    place = _Place(file, line, "")
    for candidate in _places(error):
        if is_students(candidate.file):
            place = candidate
    reason = short(error)
    unknown = re.fullmatch(r"Undefined variable: (\w+)", reason)
    if unknown:
        named = (_defined_later, _known_as, _spelt_like)
        reason += next((said for ask in named if (said := ask(unknown[1], place))), "")
    return KernelError(reason, place.file, place.line, place.text)
