"""Hints use the handout's names. For a kernel without such a name, they say what it stands for instead."""

from __future__ import annotations

import re

STANDS_FOR = {  # name in the handout -> what it is
    "m_st": "the first row of the tile",
    "n_st": "the first column of the tile",
    "d_st": "the first column of the store",
    "k_st": "the first column of the K tile",
    "cbx": "the CTA's rank in its cluster",
    "bx": "the number of the CTA",
    "Dsmem": "the output's buffer in shared memory",
    "tma_load": "the load",
}
_CODE = re.compile(r"(`[^`]*`)")


def in_own_words(hint: str, text: str, output: str) -> str:
    """A hint adapted to a kernel with the source `text` and the name `output` of its output."""
    if not text:
        return hint
    parts = _CODE.split(hint)
    return "".join(part if part.startswith("`") else _said(part, text, output) for part in parts)


def _said(part: str, text: str, output: str) -> str:
    for name, words in STANDS_FOR.items():
        if name in part and not re.search(rf"\b{name}\b", text):
            part = re.sub(rf" \({name}(, \w+)*\)", "", part)
            part = re.sub(rf"\b{name}\b", words, part)
    return re.sub(r"\bD\b", output, part)
