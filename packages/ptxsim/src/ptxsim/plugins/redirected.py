"""Temporarily redirects exported functions of a loaded library: overwrites the start of each with a jump."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import platform
import struct
from collections.abc import Iterator, Mapping
from typing import Any

_JUMP = struct.Struct("<6sQ")  # jmp *0(%rip), and the address
_READ, _WRITE, _RUN = 1, 2, 4


@contextlib.contextmanager
def redirected(library: ctypes.CDLL, functions: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block, calls of these names of the library, its own calls included, reach `functions`.

    Raises ImportError on a machine other than x86-64, and AttributeError for a name that the library does not
    export. Each overwritten function must have at least 14 bytes, which holds if functions start at multiples
    of 16.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ImportError(f"host code can be redirected on x86-64 only, not on {platform.machine()}")
    places = {_address(getattr(library, name)): _address(function) for name, function in functions.items()}
    before = {at: ctypes.string_at(at, _JUMP.size) for at in places}
    try:
        for at, target in places.items():
            _write(at, _JUMP.pack(b"\xff\x25\0\0\0\0", target))
        yield
    finally:
        for at, code in before.items():
            _write(at, code)


def _address(function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _write(at: int, code: bytes) -> None:
    start = at & -mmap.PAGESIZE
    span = ctypes.c_void_p(start), ctypes.c_size_t(at + len(code) - start)
    protect = ctypes.CDLL(None).mprotect
    if protect(*span, _READ | _WRITE | _RUN):
        raise ImportError("this system does not allow code to be changed: mprotect fails")
    ctypes.memmove(at, code, len(code))
    protect(*span, _READ | _RUN)
