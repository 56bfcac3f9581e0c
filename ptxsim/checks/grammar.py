"""Number agreement: sentences are written about one group ("it waits"), and may be about several warps."""

from __future__ import annotations

import re

_PLURALS = {
    "waits": "wait",
    "asks": "ask",
    "has": "have",
    "is": "are",
    "it": "they",
    "its": "their",
    "arrives": "arrive",
    "commits": "commit",
    "loads": "load",
    "comes": "come",
    "issues": "issue",
}


def is_plural(who: str) -> bool:
    """Does `warps 1-3`, `WG1 warp 0 lanes 4-7` or `WG0, WG1 warp 2` name more than one?"""
    return bool(re.search(r"\b(warps|lanes)\b|, ", who))


def agree(who: str, text: str) -> str:
    """`text`, written in the singular, in the number of `who`: `its loop` becomes `their loop`."""
    if not is_plural(who):
        return text
    return re.sub(r"\w+", lambda word: _PLURALS.get(word[0], word[0]), text)
