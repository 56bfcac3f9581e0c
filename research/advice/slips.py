"""Slips of a student in the ten steps that take more than one exchanged name or number; lists.py has them.

A slip is one misconception: several edits of a builder's text, the first at one of its places (`everywhere`:
at all of them), the others at all of theirs. A seed chooses step, depth of the ring and place.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from research.advice.lists import texts
from research.advice.mistakes import Mistake, first_difference
from research.mutation.sources import SOURCES, Source
from tirxlab.rubric import tomllib

DEPTHS = (2, 3, 4)
PIPELINED = 5  # the first step with a ring
NAMES = (
    "stage",
    "PIPE_DEPTH",
    "mma_phase",
    "phase_mma",
    "ld_phase",
    "phase_tma",
    "CTA_GROUP",
    "NUM_CONSUMER",
    "EPI_N",
    "MMA_N",
    "tma_bar",
    "WG_NUMBER",
    "cbx",
)
_BLOCK = re.compile(r"def \w+\(.*?(?=\ndef |\Z)", re.S)
_pattern = functools.cache(re.compile)  # more patterns than `re` caches


@dataclass(frozen=True)
class Slip:
    """`edits` are (pattern, replacement); "a <-> b" exchanges two names in the
    text that the pattern matches.
    """

    family: str
    what: str
    edits: tuple[tuple[str, str], ...]
    everywhere: bool = False
    list: int = 1  # of the table: each list was written after the fixes for the one before
    of: str = "step"  # what it applies to: the steps, or a track


SLIPS = [Slip(**entry) for text in texts().values() for entry in tomllib.loads(text).get("slip", [])]
LISTS = {slip.what: slip.list for slip in SLIPS}


def edited(match: re.Match, new: str) -> str:
    one, arrow, other = new.partition(" <-> ")
    if not arrow:
        return match.expand(new)
    both = {one: other, other: one}
    either = _pattern(rf"(?<!\w)(?:{re.escape(one)}|{re.escape(other)})(?!\w)")
    return either.sub(lambda m: both[m[0]], match[0])


def slips(source: Source, wanted: tuple[str, ...] = ("",)) -> Iterator[Mistake]:
    """Every slip at every place of the source's builder. wanted: how their words begin."""
    text = source.text()
    start = text.index(f"def {source.builder}(")
    body = _BLOCK.match(text, start)[0]
    around = text[:start], text[start + len(body) :]
    code, line = _code(body), text.count("\n", 0, start) + 1
    missing = [name for name in NAMES if name not in body]
    for slip in SLIPS:
        if not source.name.startswith(slip.of) or not slip.what.startswith(wanted):
            continue
        (pattern, new), *others = slip.edits
        places = list(_pattern(pattern).finditer(body))
        if not all(_pattern(p).search(body) for p, _ in others):
            continue
        for place in places[:1] if slip.everywhere else places:
            made = _everywhere(body, pattern, new) if slip.everywhere else _there(body, place, new)
            for p, other in others:
                made = _everywhere(made, p, other)
            unknown = any(name in made and _pattern(rf"\b{name}\b").search(made) for name in missing)
            if _code(made) != code and not unknown:  # a step without a ring has no stage
                n, old, now = first_difference(body, made)
                parts = around[0], made, around[1]
                yield Mistake(source, slip.family, line + n, old, now, parts, slip.what)


def _code(text: str) -> str:
    """The text without its comments, since a match inside a comment does not count. (`#` starts nothing else
    here.)
    """
    return re.sub(r"#.*", "", text)


def _there(body: str, place: re.Match, new: str) -> str:
    return body[: place.start()] + edited(place, new) + body[place.end() :]


def _everywhere(body: str, pattern: str, new: str) -> str:
    return _pattern(pattern).sub(lambda match: edited(match, new), body)


@functools.cache
def _every_slip() -> tuple[Mistake, ...]:
    """Every slip at every place of every source, at every depth of its pipeline."""
    found: list[Mistake] = []
    for source in SOURCES:
        number = int(source.name.removeprefix("step ")) if source.name.startswith("step ") else 0
        for depth in DEPTHS if number >= PIPELINED else (0,):
            found += slips(replace(source, depth=depth))
    return tuple(found)


def draw_slips(seed: int, lists: Collection[int] = frozenset(LISTS.values())) -> Iterator[Mistake]:
    """A practically endless sequence of distinct slips of the lists in turn, at a random step, depth and
    place.
    """
    pools: dict[str, list[Mistake]] = {}
    for mistake in _every_slip():
        if LISTS[mistake.what] in lists:
            pools.setdefault(mistake.what, []).append(mistake)
    rng = random.Random(seed)
    for pool in pools.values():
        rng.shuffle(pool)
    while any(pools.values()):
        names = sorted(name for name, pool in pools.items() if pool)
        rng.shuffle(names)
        for name in names:
            yield pools[name].pop()
