"""The values of variables that are assigned once: `no_st = no * 8` is `no * 8` wherever it is read.

TVM keeps every variable in a register and forgets where its value came from. A slice that starts at `no_st`
then has no known place, length or alignment, and tile operations refuse it. A variable in a bound becomes

    its expression          if that reads only ids, loop variables and constants, which never change;
    floordiv(x, c) * c      if it reads more, but is a multiple of c: the same number, now provably aligned.

A dimension of extent 1 has one index: with one stage, `Asmem[stage]` is `Asmem[0]`.
"""

import ast
import inspect
import textwrap
from collections import Counter

from tvm import arith, tirx
from tvm.ir import Call, PrimType, Range
from tvm.tirx import BufferLoad, BufferRegion, IntImm
from tvm.tirx.expr_functor import ExprMutator
from tvm.tirx.script.parser import parser as _tvm
from tvm.tirx.stmt_functor import post_order_visit

from .state import state, state_or_none
from .wording import NO_VALUE

_VOID = str(PrimType("void"))
_bind = _tvm.bind_assign_value


def assignments(function) -> Counter:
    """How often each name is assigned in a kernel's source, by loops and as a parameter included."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return Counter()
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return Counter(names + [n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)])


def _bind_and_remember(parser, node, name, value, **options):
    """TVM's binding of a name, of a value; also records that of a variable that is assigned only once."""
    if isinstance(value, Call) and str(value.ty) == _VOID:
        raise TypeError(NO_VALUE)
    bound = _bind(parser, node, name, value, **options)
    current = state_or_none()
    if (
        current
        and current.assigned[name] == 1
        and isinstance(bound, BufferLoad)
        and isinstance(value, tirx.Expr)
    ):
        current.values.append((bound.buffer, value))
    return bound


_tvm.bind_assign_value = _bind_and_remember


def settled(value, starts: bool = True):
    """A slice with its bounds rewritten as above; any other value unchanged.

    starts: rewrite also if only the start depends on a variable, not the length.
    """
    if not isinstance(value, BufferRegion) or not state().values and 1 not in map(_size, value.buffer.shape):
        return value
    ranges = []
    for part, extent in zip(value.region, value.buffer.shape, strict=True):
        if _size(extent) == 1:
            part = Range.from_min_extent(0, part.extent)
        elif starts or not isinstance(part.extent, IntImm):
            length = arith.Analyzer().simplify(_expanded(part.extent))
            part = Range.from_min_extent(_expanded(part.min, divisors=True), length)
        ranges.append(part)
    return BufferRegion(value.buffer, ranges)


def _size(extent) -> int | None:
    return int(extent) if isinstance(extent, int | IntImm) else None


def _expanded(value, divisors: bool = False):
    """The expression with its variables replaced by their known values."""
    return value if isinstance(value, int) else _Expand(divisors).visit_expr(value)


class _Expand(ExprMutator):
    def __init__(self, divisors: bool):
        super().__init__()
        self.divisors = divisors

    def visit_buffer_load_(self, op: BufferLoad):
        known = next((value for buffer, value in state().values if buffer.same_as(op.buffer)), None)
        if known is None:
            return op
        expression = _expanded(known)
        if _fixed(expression):
            return expression
        multiple = arith.Analyzer().modular_set(expression)
        if self.divisors and multiple.coeff > 1 and multiple.base == 0:
            return tirx.floordiv(op, multiple.coeff) * multiple.coeff
        return op


def _fixed(expression) -> bool:
    """Whether an expression reads no variable and calls nothing."""
    found: list = []
    post_order_visit(expression, lambda n: found.append(n) if isinstance(n, BufferLoad | Call) else None)
    return not found
