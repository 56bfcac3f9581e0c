"""Which submissions are alike: those that share runs of tokens (prints.py), or that build the same CUDA.

Only what the handout gave is common: copies of each other are listed however many there are. Text that runs
text of its own is compared by what it builds, too. A hint for a person to look, never a verdict.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from array import array
from collections.abc import Iterable
from itertools import combinations

from instructor.autograder import prints
from instructor.autograder.reader import Reader, ReadError
from tirxlab.artifact import Artifact, ArtifactError

LEAST = 0.5  # part of the smaller one's runs that is shared, to be listed
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*|\S")
Pair = tuple[str, str, float]  # one, other, shared part


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


def hiding(texts: dict[str, str], level: str | None = None) -> set[str]:
    """The texts that run or look up text of their own, or cannot be read."""
    found = set()
    with Reader(prints, level) as reader:
        for key, text in texts.items():
            try:
                found |= {key} if reader.call("hides", text.encode()) else set()
            except ReadError:
                found.add(key)
    return found


def built(bundle: bytes) -> set[str]:
    """What a submission's artifacts are made of: a hash of each step's CUDA, in which names say nothing."""
    found = set()
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        for name in archive.namelist():
            if not name.startswith("artifacts/"):
                continue
            try:
                cuda = Artifact.from_bytes(archive.read(name)).cuda
            except ArtifactError:
                continue
            found.add(f"{name} {hashlib.sha256(' '.join(_renamed(cuda)).encode()).hexdigest()}")
    return found


def _renamed(cuda: str) -> Iterable[str]:
    """Its words, every name replaced by the number of its first use."""
    numbers: dict[str, str] = {}
    for word in _WORD.findall(_COMMENT.sub(" ", cuda)):
        yield numbers.setdefault(word, f"n{len(numbers)}") if word[0].isalpha() or word[0] == "_" else word


def similar(texts: dict[str, str]) -> list[Pair]:
    """`alike` of texts."""
    return alike(fingerprints(texts)[0])


def alike(found: dict[str, set]) -> list[Pair]:
    """Pairs that share at least LEAST, most alike first."""
    pairs = []
    for (a, ours), (b, theirs) in combinations(sorted((k, v) for k, v in found.items() if v), 2):
        pairs.append((a, b, len(ours & theirs) / min(len(ours), len(theirs))))
    return sorted((pair for pair in pairs if pair[2] >= LEAST), key=lambda pair: -pair[2])


def built_alike(made: dict[str, set[str]], hidden: set[str]) -> list[Pair]:
    """Pairs that build the same, where the text of one of them hides what it does."""
    return [pair for pair in alike(made) if hidden & set(pair[:2])]
