"""Which submissions read alike: shared runs of tokens. Comments, names, layout and the skeleton do not count.

A hint for a person to look, never a verdict.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import Counter, defaultdict
from itertools import combinations

from tirxlab.steps import SKELETON, StepError, sections

RUN = 24  # tokens
LEAST = 0.5  # part of the smaller one's runs that is shared, to be listed
_LEFT_OUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}


def tokens(text: str) -> list[str]:
    """The text's tokens, names and strings without what they say; as far as it can be read."""
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                found.append(token.string if keyword.iskeyword(token.string) else "name")
            elif token.type == tokenize.STRING:
                found.append("text")
            elif token.type not in _LEFT_OUT:
                found.append(token.string)
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        pass
    return found


def runs(text: str) -> set[int]:
    """Hashes of all runs of tokens of the steps, those of the skeleton left out."""
    return _runs(text) - _runs(SKELETON.read_text(encoding="utf-8"))


def _runs(text: str) -> set[int]:
    try:
        parts = [part for step, part in sections(text).items() if step]
    except StepError:
        parts = [text]
    found = set()
    for part in parts:
        words = tokens(part)
        found |= {hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1)}
    return found


def similar(texts: dict[str, str], common: float = 0.5) -> list[tuple[str, str, float]]:
    """(one, other, shared part), most alike first. What more than `common` of all have does not count."""
    have = {key: runs(text) for key, text in texts.items()}
    counts = Counter(run for found in have.values() for run in found)
    most = max(2, common * len(have))
    where = defaultdict(list)
    for key, found in have.items():
        have[key] = {run for run in found if counts[run] <= most}
        for run in have[key]:
            where[run].append(key)
    shared = Counter(pair for keys in where.values() for pair in combinations(sorted(keys), 2))
    pairs = [(a, b, n / min(len(have[a]), len(have[b]))) for (a, b), n in shared.items()]
    return sorted((pair for pair in pairs if pair[2] >= LEAST), key=lambda pair: -pair[2])
