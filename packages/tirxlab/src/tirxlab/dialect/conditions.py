"""`and` and `or` take numbers, true unless 0, as in Python: `if warp_id == 0 and Tx.ptx.elect_sync():`."""

from tvm import tirx
from tvm.script.parser._core import doc
from tvm.script.parser.core import dispatch

_tvm = {op: dispatch.get_op(tirx.Expr, op, 0, None) for op in (doc.And, doc.Or)}


def _condition(value):
    """The condition that a number is not 0; a condition unchanged."""
    dtype = str(getattr(getattr(value, "ty", None), "dtype", ""))
    return value != 0 if dtype.startswith(("int", "uint")) else value


def _taking_numbers(op: type):
    return lambda a, b: _tvm[op](_condition(a), _condition(b))


for _op in _tvm:
    for _position in (0, 1):
        dispatch.register_op(tirx.Expr, _op, _position)(_taking_numbers(_op))
