"""The notation of the table of scalar instructions: patterns like the syntax boxes of the PTX ISA.

A `Form` such as `add{.rnd}{.ftz}{.sat}.f32` with `rnd="rn rz rm rp"` means every spelling to which it
expands. Types, value and key of the operation are templates that are filled with the modifiers of that
spelling.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Mods = dict[str, str]  # part of the pattern -> modifier as written, "" if an optional one is absent
Template = str | Callable[[Mods], str]  # of `str.format`, or a function


@dataclass(frozen=True)
class ScalarOp:
    """One register-to-register operation.

    `expr` is numba text over the sources `a, b, c, d, e` (and `cc`, the carry in). Sources are: uint64
    (zero-extended) for u* and b*, int64 (sign-extended) for s*, float32 for f32, float64 for f64, raw bits in
    uint64 for f16, bf16 and all packed types, boolean for pred. Its value is of the same kind for the type in
    `dst`, not yet truncated to that width. With two destinations or a carry out it is a tuple (the carry, a
    uint64, is last).
    """

    key: str  # spellings with the same meaning share one key
    dst: tuple[str, ...]  # types of the destinations, in operand order
    src: tuple[str, ...]  # types of the sources, in operand order; a vector operand counts once per item
    expr: str
    hot: bool = False  # compiled into the main loop; others are compiled on demand
    carry: str = ""  # use of CC.CF (PTX ISA 9.7.2): "in", "out", "both" or ""


@dataclass(frozen=True)
class Form:
    """One line of a syntax box; `dst`, `src`, `expr`, `key`: `str.format` templates or functions of Mods."""

    pattern: str  # "add{.sat}.s32"; `{.x}`: optional; `|`: a second destination after a bar
    dst: Template  # types, space separated
    src: Template
    expr: Template
    key: Template = "{name}"
    carry: str = ""
    where: Callable[[Mods], bool] | None = None  # refuses combinations that the pattern alone would allow
    sets: dict[str, str] = field(default_factory=dict)  # word of the pattern -> modifiers that may replace it

    def expand(self) -> Iterator[tuple[tuple[str, ...], Mods]]:
        """Every legal spelling: its modifiers in the order of the syntax box, and the modifier
        of each part.
        """
        op, *parts = re.findall(r"\{?\.?[\w:]+|\{?\|", self.pattern)
        words: list[str] = [part.lstrip("{.") for part in parts]
        choices = [
            [""] * part.startswith("{") + self.sets.get(word, word).split()
            for part, word in zip(parts, words, strict=True)
        ]
        for picked in itertools.product(*choices):
            mods = dict(zip(words, picked, strict=True))
            if self.where is None or self.where(mods):
                spelling = tuple(".".join(filter(None, picked)).split("."))
                name = ".".join((op, *spelling)).replace(".|", "|")
                yield spelling, {**mods, "name": name, **_widths(mods)}

    def build(self, mods: Mods, hot: frozenset[str]) -> ScalarOp:
        """The operation of one spelling."""
        dst, src, expr, key = (
            template(mods) if callable(template) else template.format(**mods)
            for template in (self.dst, self.src, self.expr, self.key)
        )
        return ScalarOp(key, tuple(dst.split()), tuple(src.split()), expr, key in hot, self.carry)


@dataclass(frozen=True)
class Family:
    name: str  # opcode
    section: str  # of the PTX ISA
    forms: tuple[Form, ...]


def form(
    pattern: str,
    dst: Template,
    src: Template,
    expr: Template,
    key: Template = "{name}",
    carry="",
    where=None,
    **sets,
) -> Form:
    """A Form whose modifier sets are given as keywords."""
    return Form(pattern, dst, src, expr, key, carry, where, sets)


def families(section: str, forms: tuple[Form, ...]) -> tuple[Family, ...]:
    """The forms of one section, grouped by opcode."""
    by_name: dict[str, list[Form]] = {}
    for one in forms:
        by_name.setdefault(one.pattern.partition(".")[0].partition("{")[0], []).append(one)
    return tuple(Family(name, section, tuple(group)) for name, group in by_name.items())


def _widths(mods: Mods) -> Mods:
    """Further fields for templates: {w}, the bits of {type}; {sign}, its letter; {u}, {s}, {b}, the unsigned,
    signed and untyped types of that width.
    """
    match = re.fullmatch(r"([a-z]+)(\d+)", mods.get("type", ""))
    if match is None:
        return {}
    kind, w = match.groups()
    return {"w": w, "u": "u" + w, "s": "s" + w, "b": "b" + w, "sign": kind}
