"""Names of C++ as people write them."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re

MOST = 160  # characters of a name in a line of text
_OPEN = "<("
_BRACKET = re.compile(r"operator(?:\(\)|->\*?|<=>|<<=?|>>=?|[<>]=?)|->|[<>()]")  # or a name that holds one


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


@functools.cache
def brief(name: str, most: int = MOST) -> str:
    """The readable name, without what stands in brackets where it is too long (`gemm<..>(..)`)."""
    text = readable(name)
    tokens = [(found.start(), found.end()) for found in _BRACKET.finditer(text)]
    brackets = [(start, text[start]) for start, end in tokens if end == start + 1]
    for depth in range(max(_depths(brackets), default=0), 0, -1):
        if len(text) <= most:
            break
        text = _without(readable(name), brackets, depth)
    return text if len(text) <= most else text[: most - 2] + ".."


def _depths(brackets: list[tuple[int, str]]) -> list[int]:
    """How many brackets are open after each."""
    return list(itertools.accumulate(1 if bracket in _OPEN else -1 for _, bracket in brackets))


def _without(text: str, brackets: list[tuple[int, str]], depth: int) -> str:
    """The text with `..` for what stands in `depth` brackets or more."""
    parts, at, now = [], 0, 0
    for place, bracket in brackets:
        opens = bracket in _OPEN
        if opens and now == depth - 1:
            parts += [text[at : place + 1], ".."]
        elif not opens and now == depth:
            if text[place - 1] in _OPEN:  # nothing stood there
                parts.pop()
            at = place
        now += 1 if opens else -1
    return "".join([*parts, text[at:]])
