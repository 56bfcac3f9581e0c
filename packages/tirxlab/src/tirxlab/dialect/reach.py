"""The largest value of an expression at the point being parsed, over the ids and the enclosing loops."""

from tvm import arith
from tvm.ir import Range
from tvm.script.ir_builder import IRBuilder
from tvm.tirx import BufferLoad, IntImm, Var
from tvm.tirx.stmt_functor import post_order_visit

from .state import state

_UNBOUNDED = 2**62  # of what TVM says about an expression that it cannot bound


def furthest(value, ids: bool = True) -> tuple[int, list[str]] | None:
    """(the largest value of an expression, the names in it); None if it is not known.

    It is not known if an enclosing condition depends on one of these names, because that may keep it smaller,
    nor, without `ids`, if it depends on an id.
    """
    names, loads = _parts(value)
    guarded = named_in_guards()
    ranges = _ranges(ids)
    if loads or not names or any(among(name, guarded) or not among(name, list(ranges)) for name in names):
        return None
    analyzer = arith.Analyzer()
    for name, extent in ranges.items():
        analyzer.bind(name, Range.from_min_extent(extent.min, extent.extent))
    most = int(analyzer.const_int_bound(value).max_value)
    return None if most >= _UNBOUNDED else (most, sorted({name.name for name in names}))


def named_in_guards() -> list[Var]:
    """The variables in the enclosing conditions."""
    return [name for guard in _guards() for name in variables(guard)]


def variables(value) -> list[Var]:
    """The variables in an expression."""
    return _parts(value)[0]


def ever_comes_here() -> bool:
    """Whether no enclosing condition is a constant that is false."""
    return not any(isinstance(guard, bool | int | IntImm) and not int(guard) for guard in _guards())


def _guards() -> list:
    return [frame.condition for frame in IRBuilder.current().frames if hasattr(frame, "condition")]


def _ranges(ids: bool) -> dict[Var, Range]:
    """Variable -> range, for the enclosing loops and, with `ids`, for ids."""
    loops = [frame for frame in IRBuilder.current().frames if hasattr(frame, "doms")]
    pairs = [pair for frame in loops for pair in zip(frame.vars, frame.doms, strict=True)]
    known = state().variables if ids else ()
    return {name: Range.from_min_extent(0, extent) for _, name, extent in known} | dict(pairs)


def _parts(value) -> tuple[list[Var], list[BufferLoad]]:
    """Variables and loads in an expression."""
    found: list = []
    if not isinstance(value, bool | int | float):
        post_order_visit(value, found.append)
    return [n for n in found if isinstance(n, Var)], [n for n in found if isinstance(n, BufferLoad)]


def among(name: Var, others: list) -> bool:
    """Whether this variable, not one of its name, is in the list."""
    return any(name.same_as(other) for other in others)
