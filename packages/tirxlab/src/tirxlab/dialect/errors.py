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

_OUR_ROOTS = tuple(os.path.dirname(os.path.abspath(str(path))) + os.sep for path in (tvm.__file__, __file__))
_MAX_MESSAGE = 600
_MAX_ERRORS = 5  # how many of one kernel are shown
# Part of a message of TVM, often the name of an internal check -> what it means for the student.
_EXPLAINED = {
    "MatchesCode(DLDataTypeCode::kDLBool)": "`not` takes a condition, and this is a number: "
    "write `Tx.ptx.elect_sync() == 0`; a phase flips with `phase = phase ^ 1`",
    "MatchesCode(DLDataTypeCode::kDLFloat,": "this compares or computes with a fraction where a whole "
    "number is meant: `/` always gives one, write `//`",
    "'float' object cannot be interpreted as an integer": "a whole number is needed, and this is a fraction: "
    "`/` always gives one, write `//`",
    "Cannot use and / or / not operator to Expr": "a Python function decides here (`if`, `and`, `or`, `not`, "
    "min, max) by a value that only the GPU knows: write Tx.if_then_else, Tx.And, Tx.Or or Tx.min",
    "For nodes require a scalar": "range() takes whole numbers, and this is a fraction: "
    "`/` always gives one, write `//`",
    "Cannot automatically inference the type": "this value has no type on the GPU: a variable of a kernel "
    "holds a number or an expression of numbers; wrap what only the builder needs in Tx.meta_var(...)",
    "object has no attribute 'expr_ty'": "this compares or computes with something that is not a number",
    "Mismatched type on argument": "an argument is not a number or an expression of numbers (a list, "
    "a string or None?)",
    "Function must be decorated": "a function inside a kernel needs a decorator: write @Tx.inline above it",
    "Invalid context expression in the with-statement": "this is not a scope: write it with parentheses, "
    "`with Tx.cta():` or `with Tx.thread():`",
    "unsupported operand type(s) for -: 'NoneType' and 'NoneType'": "a whole slice cannot be assigned or "
    "computed with: Tx.copy(dst, src) copies it, Tx.cast(dst, src) converts it",
    "'Var' object has no attribute 'wait'": "a buffer of barriers has no wait: "
    "write Tx.ptx.mbarrier.try_wait(bar.ptr_to([i]), phase); TMABar, TCGen05Bar and MBarrier have bar.wait",
    "'Var' object has no attribute 'arrive'": "a buffer of barriers has no arrive: "
    "write Tx.ptx.mbarrier.arrive(bar.ptr_to([i])); TMABar, TCGen05Bar and MBarrier have bar.arrive",
    "'Var' object has no attribute 'T'": "a buffer has no .T: Tx.gemm_async(C, A, B) takes B as stored and "
    "multiplies by its transpose",
    "Expect the for loop to be one of": "a loop goes over range(n), or Tx.unroll(n), not over a number",
    "gemm() missing 1 required positional argument: 'C'": "the tensor core's product is "
    'Tx.gemm_async(C, A, B, accum=.., dispatch="tcgen05", cta_group=..), not Tx.gemm',
    "A primitive-valued expression cannot be indexed": "this is one number, with nothing to unpack or index: "
    "Tx.cta_id([m, n], parent=..) gives as many numbers as its list has extents",
    "object of type 'int' has no len()": "a list is needed here, not a number: for example ptr_to([0])",
}
# The same as regular expressions, for messages of which a part is kept.
_REWORDED = {
    r"(?:invalid syntax|unexpected indent) \(<unknown>, line \d+\)": "a line of this kernel begins "
    "further left than its def (a comment?): indent it",
    r"Visitor of AST node is not implemented: Import(From)?": "a kernel cannot import: "
    "put the import at the top of the file",
    r"data must be int or Expr, but got (\d+\.\d*)$": r"a whole number is needed, and this is \1, a "
    "fraction: `/` always gives one, write `//`",
    r"Visitor of AST node is not implemented: (\w+)": r"a kernel cannot contain this Python statement (\1)",
    r"\w+\.wait\(\) ((?:missing|takes|got) .*)": r"bar.wait(stage, phase): \1",
    r"\w+\.ptr_to\(\) ((?:missing|takes|got) .*)": r"bar.ptr_to([stage]): \1; a peer's is "
    "bar.remote_view(cta).ptr_to([stage])",
    r"\w+\.arrive\(\) (missing .* argument: 'stage')": r"bar.arrive(stage, ..): \1",
    r"'(?:TMABar|TCGen05Bar|MBarrier)' object is not subscriptable": "an array of barriers takes no [stage]: "
    "write bar.wait(stage, phase), bar.arrive(stage, ..) or bar.ptr_to([stage]); a peer's is "
    "bar.remote_view(cta).ptr_to([stage])",
    r"Parsing resulted in unexpected type <class '(?:[\w.]+\.)?(\w+)'>": r"this statement does nothing (it "
    r"gives a \1): a call needs parentheses",
    r"^(\w+_id)\(\) (missing .*)": r"Tx.\1(shape, parent=..): \2; the skeleton calls it once, at the top, "
    "and names the result",
    r"Variable (\w+) already defined in current scope": r"`\1` is already defined with another meaning: "
    "rename one of the two",
}


class KernelError(ValueError):
    """A kernel that cannot be built. `file`, `line` (1-based) name the student's line; `reason` says why.

    others: further errors of the same kernel; the message shows the first few of them.
    """

    def __init__(
        self, reason: str, file: str = "<unknown>", line: int = 0, text: str = "", others: list | None = None
    ):
        self.reason, self.file, self.line, self.text = reason, file, line, text
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
            yield _place(source, local["node"])
        trace = trace.tb_next


def _place(source, node) -> _Place:
    """The place of a node of the syntax tree: TVM counts lines from the kernel's first or (for functions
    inside a kernel) from the file's.
    """
    file, line = source.source_name, source.location(node)[0]
    if line > len(linecache.getlines(file)):
        line = node.lineno
    return _Place(file, line, linecache.getline(file, line))


def short(error: BaseException) -> str:
    """TVM's message without its own location block, reworded where possible and cut to fit a screen."""
    text = str(error)
    if text.startswith("error: "):
        text = text[len("error: ") :].split("\n --> ")[0]
    text = text.split("\nStack trace")[0].strip() or type(error).__name__
    text = next((plain for check, plain in _EXPLAINED.items() if check in text), text)
    text = next((found.expand(plain) for found, plain in _matches(text)), text)
    return text if len(text) <= _MAX_MESSAGE else text[:_MAX_MESSAGE].rstrip() + " ..."


def _matches(text: str) -> Iterator[tuple[re.Match, str]]:
    return ((found, plain) for form, plain in _REWORDED.items() for found in [re.search(form, text)] if found)


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
