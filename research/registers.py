"""PTX text with the register numbers taken out and stored separately, which packs to half the size.

The numbers in `%rd1234` compress badly, because compilers number registers consecutively: the same lines have
other numbers in every kernel. The text has `MARK rd` instead, and the number becomes a byte: the position of
the register among the last RECENT of its kind, its distance from the last one, or FAR. After FAR, a second
list holds its distance from the last far register of its kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

MARK = "\x01"
RECENT = 16
FAR = RECENT
CLOSE = 119  # distances from -CLOSE to CLOSE - 1 are bytes
_SAME = FAR + 1 + CLOSE  # the byte of distance 0
_NAMED = re.compile(r"%([a-z]+)(\d+)")
_MARKED = re.compile(MARK + "([a-z]+)")
_LOST = re.compile(MARK + r"|%[a-z]+(?:0\d|\d+[a-z])")  # what `plain` could not restore


class Numbers:
    """The register numbers of consecutive kernels, and how far they have been read."""

    def __init__(self, near: bytes = b"", far: np.ndarray | None = None) -> None:
        self._near = near
        self._far = np.zeros(0, np.int32) if far is None else far
        self._read = [0, 0]

    def of(self, text: str) -> tuple[bytes, list[int]]:
        """The numbers of the next kernel, whose text is given."""
        first, first_far = self._read
        near = self._near[first : first + text.count(MARK)]
        far = self._far[first_far : first_far + near.count(FAR)]
        self._read = [first + len(near), first_far + len(far)]
        return near, far.tolist()


def coded(ptx: str) -> tuple[str, bytes, list[int]]:
    """(text, bytes, far distances) of PTX; raises ValueError if `plain` could not restore it."""
    if lost := _LOST.search(ptx):
        raise ValueError(f"PTX with {lost[0]!r} cannot be packed by register")
    near, far = bytearray(), []
    recent: dict[str, list[int]] = {}
    distant: dict[str, int] = {}

    def code(found: re.Match) -> str:
        kind, number = found[1], int(found[2])
        last = recent.setdefault(kind, [0])
        distance = number - last[0]
        if number in last:
            near.append(last.index(number))
            last.remove(number)
        elif -CLOSE <= distance < CLOSE:
            near.append(_SAME + distance)
        else:
            near.append(FAR)
            far.append(number - distant.get(kind, 0))
            distant[kind] = number
        last.insert(0, number)
        del last[RECENT:]
        return MARK + kind

    return _NAMED.sub(code, ptx), bytes(near), far


def plain(text: str, near: bytes, far: Iterable[int]) -> str:
    """The PTX that `coded` was given."""
    recent: dict[str, list[int]] = {}
    distant: dict[str, int] = {}
    codes, distances = iter(near), iter(far)

    def name(found: re.Match) -> str:
        kind, code = found[1], next(codes)
        last = recent.setdefault(kind, [0])
        if code < RECENT:
            number = last.pop(code)
        elif code == FAR:
            distant[kind] = number = distant.get(kind, 0) + next(distances)
        else:
            number = last[0] + code - _SAME
        last.insert(0, number)
        del last[RECENT:]
        return f"%{kind}{number}"

    return _MARKED.sub(name, text)
