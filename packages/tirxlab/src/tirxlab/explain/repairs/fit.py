"""How well an edit fits the rest of the file: how usual its words are in the student's own steps.

A slip differs from similar code: one copy of two, one step of ten. So runs of one to four words around an
edit are looked up in the step and in the steps before it; an edit fits if it leaves fewer runs that occur
nowhere else.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from tirxlab.explain.repairs.text import Builder, Edit

RUN = 4  # words
BACK = 1.3  # bits for each word by which a run must be shortened until it is found
MOST = 60.0  # most bits that count
USUAL = 1.5  # bits of a word that do not count
_WORD = re.compile(r"[A-Za-z_]\w*|\d+|\"[^\"\n]*\"|[-+*/%<>=!^&|@]+|[^\w\s]|\n[ ]*")
_DROPPED = re.compile(r"[ ]*#[^\n]*|\n(?=\s*\n)|(?<=[\[(,])\s*\n\s*|,?\s*\n\s*(?=[\])])")


def words(text: str) -> list[str]:
    """The words of some lines; a line end is a word that says if the next line is indented more, less or
    equally.
    """
    found, depth = [], 0
    for word in _WORD.findall(_DROPPED.sub("", text)):
        if word[0] == "\n":
            deeper = len(word) - 1
            found.append("\n" + ("=" if deeper == depth else "<" if deeper > depth else ">"))
            depth = deeper
        else:
            found.append(word)
    return found


class Fit:
    """Counts of the runs of words in a builder and in the steps before it."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.runs: Counter[tuple[str, ...]] = Counter()
        self.there: dict[tuple[int, int], list[str]] = {}
        self.total = 0
        for text in (*builder.earlier, builder.own):
            self._count(words(text))

    def _count(self, words: list[str]) -> None:
        self.total += len(words)
        for n in range(1, RUN + 1):
            self.runs.update(zip(*(words[i:] for i in range(n)), strict=False))

    def features(self, edit: Edit) -> dict[str, float]:
        """How unusual the words around the edit are before and after it, in tens of bits."""
        pairs = [self._weighed(*splice) for splice in edit.splices]
        was, now = (min(MOST, sum(one)) / 10 for one in zip(*pairs, strict=True))
        return {
            "was odd": was,
            "is odd": now,
            "fits better": was - now,
            f"fits better, {edit.family}": was - now,
        }

    def _weighed(self, start: int, end: int, new: str) -> tuple[float, float]:
        old, new_words = self._windows(start, end, new)
        same = _common(old, new_words)
        rest = _common(old[same:][::-1], new_words[same:][::-1])
        first = max(0, same - RUN + 1)
        last = min(rest, RUN - 1)
        was, now = (one[first : len(one) - rest + last] for one in (old, new_words))
        return self._bits(was, same - first, True), self._bits(now, same - first, False)

    def _windows(self, start: int, end: int, new: str) -> tuple[list[str], list[str]]:
        """The words of a splice's lines and of two more lines on each side, without and with the edit."""
        text = self.builder.text
        first, last = _lines_up(text, start, 2), _lines_down(text, end, 2)
        if (first, last) not in self.there:
            self.there[first, last] = words(text[first:last])
        return self.there[first, last], words(text[first:start] + new + text[end:last])

    def _bits(self, words: list[str], first: int, own: bool) -> float:
        """How unusual the words from `first` on are, in bits. `own`: the runs' counts include these words."""
        total = 0.0
        for i in range(first, len(words)):
            total += max(0.0, self._surprise(words[max(0, i - RUN + 1) : i + 1], own) - USUAL)
        return total

    def _surprise(self, run: list[str], own: bool) -> float:
        less = 1 if own else 0
        for n in range(len(run), 0, -1):
            tail = tuple(run[-n:])
            count = self.runs[tail] - less
            if count > 0:
                before = (self.runs[tail[:-1]] if n > 1 else self.total) - less
                return math.log2(max(1, before) / count) + BACK * (len(run) - n)
        return 12 + BACK * len(run)


def _common(one: list[str], other: list[str]) -> int:
    n = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        n += 1
    return n


def _lines_up(text: str, at: int, count: int) -> int:
    for _ in range(count + 1):
        at = text.rfind("\n", 0, at) if at > 0 else 0
    return max(at, 0)


def _lines_down(text: str, at: int, count: int) -> int:
    for _ in range(count + 1):
        found = text.find("\n", at + 1)
        at = len(text) if found < 0 else found
    return at
