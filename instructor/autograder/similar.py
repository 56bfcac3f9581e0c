"""Which submissions read alike: those whose fingerprints share runs of tokens (prints.py).

A hint for a person to look, never a verdict.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import combinations

from instructor.autograder import prints
from instructor.autograder.reader import Reader, ReadError

LEAST = 0.5  # part of the smaller one's runs that is shared, to be listed


def fingerprints(
    texts: dict[str, str], level: str | None = None
) -> tuple[dict[str, set[int]], dict[str, str]]:
    """(those of the texts that can be read, why each of the others cannot)."""
    found, left = {}, {}
    with Reader(prints, level) as reader:
        for key, text in texts.items():
            try:
                found[key] = set(array("Q", reader.call("fingerprint", text.encode())))
            except ReadError as error:
                left[key] = str(error)
    return found, left


def similar(texts: dict[str, str], common: float = 0.5) -> list[tuple[str, str, float]]:
    """`alike` of texts."""
    return alike(fingerprints(texts)[0], common)


def alike(found: dict[str, set[int]], common: float = 0.5) -> list[tuple[str, str, float]]:
    """(one, other, shared part), most alike first. What more than `common` of all have does not count."""
    counts = Counter(run for some in found.values() for run in some)
    most = max(2, common * len(found))
    have = {key: {run for run in some if counts[run] <= most} for key, some in found.items()}
    pairs = []
    for (a, ours), (b, theirs) in combinations(sorted((k, v) for k, v in have.items() if v), 2):
        pairs.append((a, b, len(ours & theirs) / min(len(ours), len(theirs))))
    return sorted((pair for pair in pairs if pair[2] >= LEAST), key=lambda pair: -pair[2])
