"""Conditions take numbers, true unless 0, as in Python: `if wg:`, `if wg == 0 and Tx.ptx.elect_sync():`."""

import functools
from collections.abc import Callable

from tvm import tirx
from tvm.ir import Call
from tvm.script.ir_builder import IRBuilder
from tvm.script.parser._core import doc
from tvm.script.parser.core import dispatch
from tvm.tirx.script.parser import parser as _parser

_tvm = {op: dispatch.get_op(tirx.Expr, op, 0, None) for op in (doc.And, doc.Or)}


def condition(value):
    """The condition that a number is not 0; a condition unchanged."""
    dtype = str(getattr(getattr(value, "ty", None), "dtype", ""))
    return value != 0 if dtype.startswith(("int", "uint")) else value


def _taking_numbers(op: type):
    return lambda a, b: _tvm[op](condition(a), condition(b))


for _op in _tvm:
    for _position in (0, 1):
        dispatch.register_op(tirx.Expr, _op, _position)(_taking_numbers(_op))


def joined(name: str, op: type) -> Callable:
    """`Tx.And` or `Tx.Or`, of two conditions or more."""

    def join(*conditions):
        if len(conditions) < 2:
            raise TypeError(f"Tx.{name} joins two conditions or more: Tx.{name}(a, b)")
        for given in conditions:
            if not isinstance(given, bool | int | tirx.Expr) and not hasattr(given, "expr_ty"):
                raise TypeError(
                    f"Tx.{name}: a condition is a comparison such as warp_id == 0, not {given!r:.60}"
                )
        return functools.reduce(op, map(condition, conditions))

    join.__name__ = join.__qualname__ = name
    return join


def decides(value):
    """A condition as TVM takes it in an `if`: the elected thread's stays the number that it is."""
    return value if _elects(value) else condition(value)


def _elects(value) -> bool:
    return isinstance(value, Call) and getattr(value.op, "name", "") == "tirx.ptx.elect_sync"


def _taking_a_number(frame: Callable) -> Callable:
    return lambda given: frame(decides(given))


def _otherwise():
    if any(_elects(getattr(frame, "condition", None)) for frame in IRBuilder.current().frames[-1:]):
        raise ValueError("an `if` with an `else` needs a comparison: `if Tx.ptx.elect_sync() != 0:`")
    return _else()


def _counted(*args, **options):
    if any(arg is None for arg in args):
        raise TypeError(
            "range() takes whole numbers, and this is None: what gives it its value returns nothing"
        )
    return _serial(*args, **options)


_serial = _parser.T.serial
_parser.T.serial = _counted
_else = _parser.T.Else
_parser.T.Else = _otherwise
for _name in ("If", "While"):  # of the statements of a kernel
    setattr(_parser.T, _name, _taking_a_number(getattr(_parser.T, _name)))
