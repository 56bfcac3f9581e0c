"""What Python would decide while it parses a kernel, by values that only the GPU knows: `x in (0, 1)`, `is`,
any(..), bool(..). TVM compares the expressions themselves there, so that the answer is a silent False.
"""

import functools
import sys

from tvm import tirx
from tvm.ir import is_prim_expr
from tvm.script.parser._core import doc
from tvm.script.parser.core import evaluator
from tvm.tirx.expr import EqualOp, NotEqualOp

from .conditions import condition
from .errors import is_students
from .state import state_or_none
from .sync import BarrierArray, PipelineState

_IN = "`in` asks for values that only the GPU knows: write Tx.Or(x == 0, x == 1), or 0 <= x and x < 2"
_IS = "`is` compares Python's objects, not values of the GPU: write =="
_BY_PYTHON = (
    "a Python function decides here (any, all, bool, `if` in a list) by a value that only the GPU knows: "
    "write Tx.if_then_else, Tx.And or Tx.Or"
)
_NO_NUMBER = "this compares a number with barriers, a pipeline state or a function, which is always false"
_REFUSED = {doc.In: _IN, doc.NotIn: _IN, doc.Is: _IS, doc.IsNot: _IS}
_of_students = functools.lru_cache(None)(is_students)


def _on_the_gpu(value) -> bool:
    return is_prim_expr(value) or isinstance(value, EqualOp | NotEqualOp)


def _refusing(kind: type):
    usual = evaluator.DEFAULT_OP[kind]

    def decide(a, b):
        one = _on_the_gpu(a) or _on_the_gpu(b) and kind in (doc.Is, doc.IsNot)
        if one and a is not None and b is not None and state_or_none() is not None:
            raise TypeError(_REFUSED[kind])
        return usual(a, b)

    return decide


def _comparing(kind: type):
    usual = evaluator.DEFAULT_OP[kind]

    def compare(a, b):
        for one, other in ((a, b), (b, a)):
            odd = callable(other) or isinstance(other, BarrierArray | PipelineState)
            if isinstance(one, int | float) and odd and state_or_none() is not None:
                raise TypeError(_NO_NUMBER)
        return usual(a, b)

    return compare


def _deciding(usual):
    def decide(self) -> bool:
        if state_or_none() is not None and _of_students(sys._getframe(1).f_code.co_filename):
            raise TypeError(_BY_PYTHON)
        return usual(self)

    return decide


def _either(self, node: doc.IfExp):
    """Replaces TVM's `a if condition else b`, which takes no `==`."""
    test = self._eval_expr(self._visit(node.test))
    if isinstance(test, bool):
        return self._eval_expr(self._visit(node.body if test else node.orelse))
    test = condition(test)
    if not _on_the_gpu(test):
        raise TypeError(f"`if` in an expression takes a condition, not {test!r:.60}")
    then, otherwise = (self._eval_expr(self._visit(part)) for part in (node.body, node.orelse))
    return tirx.op.if_then_else(test, then, otherwise)


for _kind in _REFUSED:
    evaluator.DEFAULT_OP[_kind] = _refusing(_kind)
for _kind in (doc.Eq, doc.NotEq):
    evaluator.DEFAULT_OP[_kind] = _comparing(_kind)
for _op in (EqualOp, NotEqualOp):
    _op.__bool__ = _deciding(_op.__bool__)
evaluator.ExprEvaluator._eval_if_exp = _either
