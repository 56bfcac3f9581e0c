"""Names of C++ as people write them."""

from __future__ import annotations

import ctypes
import functools


@functools.cache
def readable(name: str) -> str:
    """`kernel<128>(float*)` of a mangled name; the name itself where that is not possible."""
    if not name.startswith("_Z"):
        return name
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except OSError:
        return name
    demangle.restype, status = ctypes.c_void_p, ctypes.c_int()
    text = demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(text).decode() if text and not status.value else name


def variable(name: str) -> str:
    """`tile` of _ZZ4gemmPfE4tile, a variable inside a function; the readable name of others."""
    return readable(name).rpartition("::")[2] if name.startswith("_ZZ") else readable(name)
