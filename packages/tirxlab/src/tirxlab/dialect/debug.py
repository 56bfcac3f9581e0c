"""`Tx.cuda.printf` that prints from the kernel itself; TVM's sits in a function that is not inlined."""

import hashlib
import json
import re

from tvm import tirx
from tvm.ir import is_prim_expr
from tvm.script import tirx as T

_C_TYPES = {"bool": "bool", "int32": "int", "uint32": "unsigned", "int64": "long long", "float32": "float"}
_C_TYPES |= {"uint64": "unsigned long long", "float64": "double", "float16": "half"}


def printf(fmt: str, *args):
    """C's printf, by every thread that executes it: `Tx.cuda.printf("tile %d\\n", tile_scheduler.m_idx)`."""
    if not isinstance(fmt, str):
        raise TypeError(f"Tx.cuda.printf(format, ...): format is a string, not {fmt!r}")
    values = [tirx.const(a) if isinstance(a, bool | int | float) else a for a in args]
    dtypes = [str(v.ty.dtype) if is_prim_expr(v) else type(v).__name__ for v in values]
    for position, dtype in enumerate(dtypes, start=1):
        if dtype not in _C_TYPES:
            raise TypeError(
                f"Tx.cuda.printf: argument {position} is {dtype}; print one of {', '.join(_C_TYPES)}"
            )
    places = fmt.replace("%%", "").count("%")
    kinds = re.findall(r"%[-+ #0-9.]*[hlz]*([a-zA-Z])", fmt.replace("%%", ""))
    for kind, dtype in zip(kinds, dtypes, strict=False) if "*" not in fmt else ():
        if kind not in ("aefgAEFG" if "float" in dtype else "cdiopuxX"):
            right = "%f" if "float" in dtype else "%lld" if "64" in dtype else "%d"
            raise TypeError(f"Tx.cuda.printf: %{kind} does not print {dtype}: write {right}")
    if places != len(values) and "*" not in fmt:
        raise TypeError(
            f"Tx.cuda.printf: {fmt!r} has {places} places for values, and {len(values)} are given"
        )
    types = [_C_TYPES[d] for d in dtypes]
    name = "lab_printf_" + hashlib.sha256("\0".join([fmt, *types]).encode()).hexdigest()[:12]
    taken = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    shown = [f"__half2float(a{i})" if t == "half" else f"a{i}" for i, t in enumerate(types)]
    body = f"printf({', '.join([json.dumps(fmt), *shown])});"
    source = f"__forceinline__ __device__ void {name}({taken}) {{\n    {body}\n}}\n"
    return T.cuda.func_call(name, *values, source_code=source)
