"""Slips of a student of the ten steps that one exchanged name or number does not make: lists.py has them.

A slip is one thought gone wrong: some edits of a builder's text, the first at one of its places
(`everywhere`: at all of them), the others at all of theirs. A seed chooses step, depth of the ring and place.
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
_pattern = functools.cache(re.compile)  # there are more than `re` keeps


@dataclass(frozen=True)
class Slip:
    """`edits` are (pattern, what replaces it); "a <-> b" exchanges two names in what the pattern finds."""

    family: str
    what: str
    edits: tuple[tuple[str, str], ...]
    everywhere: bool = False
    list: int = 1  # of the table: the second was written when the first had been mended for
    of: str = "step"  # whose places: the steps', or those of a track


SLIPS = [Slip(**entry) for text in texts().values() for entry in tomllib.loads(text)["slip"]]
LISTS = {slip.what: slip.list for slip in SLIPS}


def edited(match: re.Match, new: str) -> str:
    one, arrow, other = new.partition(" <-> ")
    if not arrow:
        return match.expand(new)
    both = {one: other, other: one}
    either = _pattern(rf"(?<!\w)(?:{re.escape(one)}|{re.escape(other)})(?!\w)")
    return either.sub(lambda m: both[m[0]], match[0])


def slips(source: Source) -> Iterator[Mistake]:
    """Every slip at every place of the source's builder."""
    text = source.text()
    start = text.index(f"def {source.builder}(")
    body = _BLOCK.match(text, start)[0]
    missing = [name for name in NAMES if name not in body]
    for slip in SLIPS:
        if not source.name.startswith(slip.of):
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
            if _code(made) != _code(body) and not unknown:  # a step without a ring has no stage
                yield _mistake(source, slip, text, body, made, start)


def _code(text: str) -> str:
    """The text without its comments: a place that stands in one is none. (`#` begins nothing else here.)"""
    return re.sub(r"#.*", "", text)


def _there(body: str, place: re.Match, new: str) -> str:
    return body[: place.start()] + edited(place, new) + body[place.end() :]


def _everywhere(body: str, pattern: str, new: str) -> str:
    return _pattern(pattern).sub(lambda match: edited(match, new), body)


def _mistake(source: Source, slip: Slip, text: str, body: str, made: str, start: int) -> Mistake:
    """Its line is the first that differs; `made` takes the place of the body, which starts at `start`."""
    whole = text[:start] + made + text[start + len(body) :]
    n, old, now = first_difference(body, made)
    line = text.count("\n", 0, start) + n
    return Mistake(source, slip.family, line + 1, old, now, whole, slip.what)


def draw_slips(seed: int, lists: Collection[int] = frozenset(LISTS.values())) -> Iterator[Mistake]:
    """Slips without end to speak of, each once: those of the lists in turn, at some step, depth, place."""
    pools: dict[str, list[Mistake]] = {}
    for source in SOURCES:
        number = int(source.name.removeprefix("step ")) if source.name.startswith("step ") else 0
        depths = DEPTHS if number >= PIPELINED else (0,)
        for depth in depths:
            for mistake in slips(replace(source, depth=depth)):
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
