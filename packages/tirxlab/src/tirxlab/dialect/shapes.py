"""Shapes and types of buffers, checked where they are declared."""

from numbers import Integral
from typing import Any

from tvm import DataType
from tvm.script import tirx as T
from tvm.tirx import IntImm

_BITS = (1, 2, 4, 6, 8, 16, 32, 64)  # of an element that CUDA C++ has a type for
_OTHER_NAMES = {
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "float": "float32",
}


def checked(where: str, shape: Any, dtype: Any) -> None:
    """TypeError unless shape is a list of positive numbers known to Python, and dtype the name of a type."""
    for extent in shape if isinstance(shape, list | tuple) else [shape]:
        if isinstance(extent, float):
            raise TypeError(f"{where}: this is {extent}, a fraction: `/` always gives one, write `//`")
        if not isinstance(extent, Integral | IntImm) or isinstance(extent, bool) or int(extent) < 1:
            raise TypeError(
                f"{where}: a shape is a list of positive numbers that Python knows when it builds the "
                f"kernel, and this one has {extent!s:.60}"
            )
    if not isinstance(dtype, str):
        raise TypeError(f'{where}: the type is a name such as "float16", not {dtype!r:.60}')
    try:
        known = DataType(dtype).bits in _BITS
    except ValueError:
        known = False
    if not known:
        meant = f"; write {_OTHER_NAMES[dtype]!r}" if dtype in _OTHER_NAMES else ""
        raise TypeError(f"{where}: there is no type {dtype!r}{meant}")


def buffer(shape, dtype="float32", *more, **options):
    if isinstance(dtype, list | tuple):
        raise TypeError("Tx.Buffer(shape, dtype): the shape comes first, then the type")
    if more or not isinstance(shape, list | tuple):
        raise TypeError('Tx.Buffer(shape, dtype): the shape is one list: Tx.Buffer((M, K), "float16")')
    checked("Tx.Buffer", shape, dtype)
    return T.Buffer(shape, dtype, **options)
