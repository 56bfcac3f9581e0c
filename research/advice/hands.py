"""Mistakes in kernels by other authors: mistakes.toml.xz holds right kernels, and the edits that break them.

Slips are planted in the reference, whose names and structure the advice may be fitted to. These kernels have
other names, barriers without the classes of the lab, other roles, rings and loops.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import Path

from research import packed
from research.advice.mistakes import Mistake, first_difference
from research.mutation.sources import Source
from tirxlab.rubric import tomllib

FOLDER = Path(__file__).with_name("other_hands")
HANDS = ("one", "three", "two")


def kernels(hand: str) -> str:
    """The kernels file of one author."""
    return _table()["hands"][hand]


@functools.cache
def _table() -> dict:
    return tomllib.loads(packed.read(FOLDER / "mistakes.toml.xz"))


def planted(hands: Collection[str] = ()) -> list[Mistake]:
    """Each entry of mistakes.toml.xz, in its file; only those of the given hands, if any are given."""
    return [_mistake(**entry) for entry in _table()["slip"] if not hands or entry["hand"] in hands]


def _mistake(hand: str, step: int, family: str, what: str, edits: list[list[str]]) -> Mistake:
    """A mistake; its line is the first that differs. Raises ValueError if an
    edit's text does not occur once.
    """
    text = right = kernels(hand)
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"mistakes.toml.xz: {hand}.py has this text {text.count(old)} times: {old}")
        text = text.replace(old, new)
    n, before, after = first_difference(right, text)
    source = Source(f"step {step}", f"{hand}.py", f"hgemm_v{step}", ())
    return Mistake(source, family, n + 1, before, after, (text,), what)
