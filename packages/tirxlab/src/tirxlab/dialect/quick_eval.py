"""Kernels are parsed in three quarters of the time: TVM's parser does less for each expression.

For every node of an expression TVM builds Python's tree, compiles it and runs it once. Most are a name, a
number or a call of names: a name is looked up, and what is compiled is kept by its text. Names, numbers and
operators make nothing, so nobody notes their place in the source; a value goes to a name without a program
that assigns it. Its own trees are copied from Python's without asking a registry for each node, a macro finds
the parser without reading the source of every frame above, and where a function ends in its file is looked
for once. Importing this file changes TVM and `inspect`; what they give is the same.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable

from tvm.script.parser._core import doc
from tvm.script.parser.core import evaluator
from tvm.script.parser.core.parser import ScriptMacro

_KEPT = 4096  # compiled expressions
_FUNCTIONS = 64  # whose source is known
_LEAVES = frozenset((int, str, bytes, float, complex, bool, type(None), type(...)))  # of Python's trees
_PLAIN = (int, str, bytes, type(None))  # constants whose text gives the same again

_of_tvm = evaluator._eval_expr
_visit_of_tvm = evaluator.ExprEvaluator._visit
_assign_of_tvm = evaluator._eval_assign
_block_of_inspect = inspect.getblock

_GIVEN_BACK = (
    doc.Constant,
    doc.expr_context,
    doc.operator,
    doc.boolop,
    doc.unaryop,
    doc.cmpop,
)  # by TVM's visit
_AS_THEY_ARE = frozenset(
    kind for kind in vars(doc).values() if isinstance(kind, type) and issubclass(kind, _GIVEN_BACK)
)


def _several(nodes: list) -> str:
    return "".join(f"{text_of(node)}," for node in nodes)


def _constant(node: doc.Constant) -> str:
    if not isinstance(node.value, _PLAIN):
        raise KeyError
    return repr(node.value)


def _keyword(node: doc.keyword) -> str:
    return f"{node.arg}={text_of(node.value)}" if node.arg else f"**{text_of(node.value)}"


_TEXT: dict[type, Callable] = {
    doc.Name: lambda node: node.id,
    doc.Constant: _constant,
    doc.Attribute: lambda node: f"({text_of(node.value)}).{node.attr}",
    doc.Subscript: lambda node: f"({text_of(node.value)})[{text_of(node.slice)}]",
    doc.Tuple: lambda node: f"({_several(node.elts)})",
    doc.List: lambda node: f"[{_several(node.elts)}]",
    doc.Starred: lambda node: f"*{text_of(node.value)}",
    doc.keyword: _keyword,
    doc.Call: lambda node: f"({text_of(node.func)})({_several([*node.args, *node.keywords])})",
}


def text_of(node) -> str:
    """An expression as Python text; KeyError for those of other kinds."""
    return _TEXT[type(node)](node)


@functools.lru_cache(_KEPT)
def _compiled(text: str):
    return compile(text, "<ast>", "eval")


def evaluated(node, names: dict | None):
    """What TVM's `_eval_expr` gives: the value of an expression whose names stand for `names`."""
    if names is None:
        return _of_tvm(node, names)
    if type(node) is doc.Name and node.id in names:
        return names[node.id]
    try:
        code = _compiled(text_of(node))
    except (KeyError, SyntaxError):
        return _of_tvm(node, names)
    return eval(code, names)


def visited(self, node):
    """What TVM's `_visit` gives, of a part of an expression."""
    kind = type(node)
    if kind in _AS_THEY_ARE or (kind is doc.Name and node.id in self.value_table):
        return node
    return _visit_of_tvm(self, node)


def assigned(target, source) -> dict:
    """What TVM's `_eval_assign` gives: the names that get a value, and theirs."""
    if type(target) is doc.Name and not target.id.startswith("__tvm"):
        return {target.id: source}
    return _assign_of_tvm(target, source)


@functools.lru_cache(_FUNCTIONS)
def _block(lines: tuple[str, ...]) -> list[str]:
    return _block_of_inspect(list(lines))


@functools.lru_cache(None)
def _fields_of(kind: type) -> tuple:
    """(TVM's class for a kind of node, its fields); (None, ()) of what is no node."""
    made = getattr(doc, kind.__name__) if issubclass(kind, ast.AST) else None
    return made, getattr(made, "_FIELDS", ())


def copied(node):
    """What TVM's `to_doc` gives: its own tree of a Python tree."""
    kind = type(node)
    if kind is list or kind is tuple:
        return kind([copied(one) for one in node])
    if kind in _LEAVES:
        return node
    made, fields = _fields_of(kind)
    if made is None:
        return node
    one = made.__new__(made)
    one.__dict__ = {field: copied(getattr(node, field, None)) for field in fields}
    return one


def parser_above(_):
    """The parser that calls a macro: the nearest frame that names it."""
    frame = sys._getframe(1)
    while frame is not None:
        parser = frame.f_globals.get(ScriptMacro.parser_object_name)
        if parser is not None:
            return parser
        frame = frame.f_back
    raise RuntimeError("a macro is called where no kernel is parsed")


evaluator._eval_expr = evaluated
evaluator.ExprEvaluator._visit = visited
evaluator._eval_assign = assigned
inspect.getblock = lambda lines: _block(tuple(lines)).copy()  # type: ignore[assignment]
doc.to_doc = copied
ScriptMacro._find_parser_def = parser_above
