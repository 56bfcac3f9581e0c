"""Finds submissions that are alike: they share runs of tokens (prints.py), or build the same CUDA.

Only text of the handout is ignored: copies of each other are listed however many there are. What a file
builds does not depend on how its text is disguised. The list tells a person where to look; it is never a
verdict.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Collection, Iterable
from itertools import combinations

from instructor.autograder import prints
from instructor.autograder.reader import Reader, ReadError

LEAST = 0.5  # a pair is listed if it shares this part of the runs of the smaller one
EASY = 3  # the last step for which independent work may well build the same
Pair = tuple[str, str, float]  # one, other, shared part


def fingerprints(
    texts: dict[str, str], level: str | None = None
) -> tuple[dict[str, set[int]], dict[str, str]]:
    """(the fingerprints of the texts that can be read, why each of the others cannot)."""
    found, left = {}, {}
    with Reader(prints, level) as reader:
        for key, text in texts.items():
            try:
                found[key] = set(array("Q", reader.call("fingerprint", text.encode())))
            except ReadError as error:
                left[key] = str(error)
    return found, left


def hiding(texts: dict[str, str], level: str | None = None) -> set[str]:
    """The keys of texts that can run code which is not in sight (see prints.hides), or cannot be read."""
    found = set()
    with Reader(prints, level) as reader:
        for key, text in texts.items():
            try:
                found |= {key} if reader.call("hides", text.encode()) else set()
            except ReadError:
                found.add(key)
    return found


def builds(
    bundles: Iterable[tuple[str, bytes]], level: str | None = None
) -> tuple[dict[str, set[str]], dict[str, str]]:
    """(hashes of the CUDA of each bundle that can be read, why each of the others cannot)."""
    found, left = {}, {}
    with Reader(prints, level) as reader:
        for key, bundle in bundles:
            try:
                found[key] = set(json.loads(reader.call("built", bundle)))
            except ReadError as error:
                left[key] = str(error)
    return found, left


def similar(texts: dict[str, str]) -> list[Pair]:
    """Pairs of texts that are alike."""
    return alike(fingerprints(texts)[0])


def alike(found: dict[str, set]) -> list[Pair]:
    """Pairs that share at least LEAST, most alike first."""
    kinds = {key: _kinds(prints) for key, prints in sorted(found.items())}
    pairs = [(a, b, max(map(_shared, kinds[a], kinds[b]))) for a, b in combinations(kinds, 2)]
    return sorted((pair for pair in pairs if pair[2] >= LEAST), key=lambda pair: -pair[2])


def _kinds(found: set) -> tuple[set, set]:
    """(runs of the text as it is, runs of its bare text); hashes of CUDA are in the first set."""
    bare = {run for run in found if isinstance(run, int) and run & 1}
    return found - bare, bare


def _shared(ours: set, theirs: set) -> float:
    """The shared part of the smaller set. Of a text with too many runs only the lowest hashes are kept
    (prints.MANY); the higher ones of the other text are then left out, too.
    """
    if full := [max(one) for one in (ours, theirs) if len(one) >= prints.MANY]:
        ours, theirs = ({run for run in one if run <= min(full)} for one in (ours, theirs))
    return len(ours & theirs) / max(1, min(len(ours), len(theirs)))


def built_alike(made: dict[str, set[str]], hidden: set[str], listed: Collection[Pair] = ()) -> list[Pair]:
    """Pairs that build the same CUDA: in any step if one of the texts hides what it does, else after EASY.

    Pairs that are already `listed` by their text are left out.
    """
    known = {pair[:2] for pair in listed}
    later = {key: {one for one in mine if _step(one) > EASY} for key, mine in made.items()}
    pairs = [pair for pair in alike(made) if hidden & set(pair[:2])]
    pairs += [pair for pair in alike(later) if not hidden & set(pair[:2])]
    return sorted((pair for pair in pairs if pair[:2] not in known), key=lambda pair: -pair[2])


def of_two_students(pairs: list[Pair], roster: dict[str, dict[str, str]]) -> list[Pair]:
    """The pairs without those of two attempts of one student of the roster, whatever the files claim."""
    who = {key: row.get("student", "") for key, row in roster.items()}
    return [pair for pair in pairs if not who.get(pair[0]) or who[pair[0]] != who.get(pair[1])]


def _step(artifact: str) -> int:
    """The step in an artifact's name, with which its line from `prints.built` begins."""
    found = re.match(r"artifacts/step(\d+)-", artifact)
    return int(found[1]) if found else 0
