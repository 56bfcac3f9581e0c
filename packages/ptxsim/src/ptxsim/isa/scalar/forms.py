"""How the table of scalar instructions is written: patterns in the notation of the PTX ISA's syntax boxes.

A `Form` such as `add{.rnd}{.ftz}{.sat}.f32` with `rnd="rn rz rm rp"` stands for every spelling it expands
to. Types, value and key of the operation are templates filled with the modifiers of that spelling.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Mods = dict[str, str]  # part of the pattern -> modifier as written, "" where an optional one is absent
Template = str | Callable[[Mods], str]  # of `str.format`, or a function


@dataclass(frozen=True)
class ScalarOp:
    """One register-to-register operation.

    `expr` is numba text over the sources `a, b, c, d, e` (and `cc`, the carry in). Sources arrive as: u*
    and b* uint64 (zero-extended), s* int64 (sign-extended), f32 float32, f64 float64, f16 / bf16 and all
    packed types uint64 raw bits, pred boolean. Its value is of the same kind for the type in `dst`, not
    yet cut to that width; it is a tuple where there are two destinations or a carry out (the carry, a
    uint64, comes last).
    """

    key: str  # spellings that mean the same share one key
    dst: tuple[str, ...]  # types of the destinations, in operand order
    src: tuple[str, ...]  # types of the sources, in operand order; a vector operand counts once per item
    expr: str
    hot: bool = False  # compiled into the main interpreter; others on demand
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
    sets: dict[str, str] = field(default_factory=dict)  # word of the pattern -> the modifiers it stands for

    def expand(self) -> Iterator[tuple[tuple[str, ...], Mods]]:
        """Every legal spelling: its modifiers in the order of the syntax box, and what each part became."""
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
    """For templates: {w} bits of {type}, its letter {sign}, and {u}, {s}, {b}: other types of that width."""
    match = re.fullmatch(r"([a-z]+)(\d+)", mods.get("type", ""))
    if match is None:
        return {}
    kind, w = match.groups()
    return {"w": w, "u": "u" + w, "s": "s" + w, "b": "b" + w, "sign": kind}
