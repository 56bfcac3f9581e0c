"""Indices of a buffer: as many as it has dimensions, each a whole number or a slice without a step.

TVM reports others in words of its own, or crashes on them.
"""

import tvm.ir
from tvm.ir import is_prim_expr
from tvm.tirx import IntImm, is_buffer_var
from tvm.tirx.script.parser import parser as _tvm

from .reach import ever_comes_here
from .state import state_or_none

_get, _store = tvm.ir.Var.__getitem__, _tvm.T.buffer_store


def _checked(buffer, indices, stored: bool = False) -> None:
    """TypeError or ValueError for indices that do not fit the buffer; a load may leave the last ones out."""
    given = list(indices) if isinstance(indices, list | tuple) else [indices]
    size, name = len(buffer.shape), buffer.name
    if len(given) > size or stored and len(given) < size:
        example = ", ".join(("row", "column") if size == 2 else [f"i{n}" for n in range(size)])
        raise ValueError(
            f"{name} has {size} dimension{'s' * (size != 1)}, and this names {len(given)}: {name}[{example}]"
        )
    for dim, index in enumerate(given):
        _inside(name, dim, buffer.shape[dim], index)
        for part in (index.start, index.stop) if isinstance(index, slice) else (index,):
            if wrong := _not_whole(part, isinstance(index, slice)):
                raise TypeError(f"an index of {name} is a whole number or a slice, not {wrong}")
        if isinstance(index, slice) and index.step not in (None, 1):
            raise ValueError(f"a slice of {name} takes every element: a step ({index.step}) is not possible")


def _inside(name: str, dim: int, extent, index) -> None:
    """ValueError for a number outside of the buffer, where the kernel can come at all."""
    known = all(isinstance(n, int | IntImm) for n in (index, extent)) and ever_comes_here()
    if known and not 0 <= int(index) < int(extent):
        raise ValueError(
            f"{name} has {int(extent)} in dimension {dim}, 0 to {int(extent) - 1}: there is no {int(index)}"
        )


def _not_whole(value, may_miss: bool) -> str:
    """What an index is instead of a whole number; "" if it is one."""
    if value is None:
        return "" if may_miss else "None"
    if isinstance(value, int):
        return ""
    if is_buffer_var(value):
        return f"the buffer {value.name}"
    if is_prim_expr(value):
        dtype = str(value.ty.dtype)
        return dtype if dtype.startswith(("float", "bfloat")) and not may_miss else ""
    if isinstance(value, float):
        return f"{value}, a fraction: `/` always gives one, write `//`"
    if hasattr(value, "expr_ty") or hasattr(value, "ty"):
        return ""
    return f"{value!r}"


def _getitem(self, indices):
    if state_or_none() is not None and is_buffer_var(self):
        _checked(self, indices)
    return _get(self, indices)


def _buffer_store(buffer, value, indices, *more, **options):
    sliced = any(isinstance(index, slice) for index in (indices if isinstance(indices, list) else [indices]))
    if state_or_none() is not None and is_buffer_var(buffer) and not sliced:
        _checked(buffer, indices, stored=True)
    return _store(buffer, value, indices, *more, **options)


tvm.ir.Var.__getitem__ = _getitem
_tvm.T.buffer_store = _buffer_store
