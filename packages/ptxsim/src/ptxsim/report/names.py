"""C++ names and instructions in readable form, and names of places in local memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re

MOST = 160  # characters of a name in one line of text
_OPEN = "<("
_ADDED = re.compile(r"\b(?:_INTERNAL_\w+|__\d+)::")  # that of a file's static functions; std::__4::
_LIST = re.compile(r"\{([^,{}]+,[^,{}]+),(?:[^,{}]+,){6,}([^,{}]+)\}")  # nine registers or more
_BRACKET = re.compile(r"operator(?:\(\)|->\*?|<=>|<<=?|>>=?|[<>]=?)|->|[<>()]")  # operators hold brackets


@functools.cache
def readable(name: str) -> str:
    """`kernel<128>(float*)` for a mangled name; the name itself if it cannot be demangled."""
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
    """`tile` for _ZZ4gemmPfE4tile, a variable inside a function; for other names, the readable name."""
    return readable(name).rpartition("::")[2] if name.startswith("_ZZ") else readable(name)


def local_place(variables: dict[str, int], offset: int) -> str:
    """`frame + 4 B` for a byte of local memory; the bare offset where no variable starts before it.

    variables: name -> offset of its first byte.
    """
    before = [(at, name) for name, at in variables.items() if at <= offset]
    start, name = max(before, default=(0, "local memory"))
    return f"{name} + {offset - start} B"


@functools.cache
def brief(name: str, most: int = MOST) -> str:
    """The readable name without namespaces that the compiler or a library's version added; if it is too long,
    without the text in brackets (`gemm<..>(..)`).
    """
    text = whole = _ADDED.sub("", readable(name))
    tokens = [(found.start(), found.end()) for found in _BRACKET.finditer(text)]
    brackets = [(start, text[start]) for start, end in tokens if end == start + 1]
    for depth in range(max(_depths(brackets), default=0), 0, -1):
        if len(text) <= most:
            break
        text = _without(whole, brackets, depth)
    return text if len(text) <= most else text[: most - 2] + ".."


def brief_text(instruction: str) -> str:
    """An instruction as written, of long lists of registers only the ends: `{%f1, %f2, .. %f128}`."""
    return _LIST.sub(r"{\1, ..\2}", instruction)


def _depths(brackets: list[tuple[int, str]]) -> list[int]:
    """How many brackets are open after each one."""
    return list(itertools.accumulate(1 if bracket in _OPEN else -1 for _, bracket in brackets))


def _without(text: str, brackets: list[tuple[int, str]], depth: int) -> str:
    """The text with `..` in place of what is nested in `depth` brackets or more."""
    parts, at, now = [], 0, 0
    for place, bracket in brackets:
        opens = bracket in _OPEN
        if opens and now == depth - 1:
            parts += [text[at : place + 1], ".."]
        elif not opens and now == depth:
            if text[place - 1] in _OPEN:  # the brackets were empty
                parts.pop()
            at = place
        now += 1 if opens else -1
    return "".join([*parts, text[at:]])
