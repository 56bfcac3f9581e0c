"""Edits that would pass but repair nothing: they put the faulty code out of use, and explain nothing."""

from __future__ import annotations

import re
from functools import cached_property

from tirxlab.explain.repairs.text import Builder, Splice

_RING_STEP = re.compile(r"\b(\w+) = \(\1 \+ 1\) % \w+|\b(\w+)\.move_to_next_stage\(\)")
_TEST = re.compile(r"\bif (\w+) == (\w+):")
_LOOP = re.compile(r"\bfor (\w+) in range\((\w+)\):")


class Riddles:
    """Recognises such edits of one builder."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.end = builder.begin + len(builder.own)

    def holds(self, splice: Splice) -> bool:
        return self._stops_a_ring(splice) or self._never_comes_true(splice)

    @cached_property
    def _only_steps(self) -> list[re.Match[str]]:
        """The statements that advance a ring's stage, if no other in the builder advances it."""
        found = [*_RING_STEP.finditer(self.builder.text, self.builder.begin, self.end)]
        moved = [match.groups() for match in found]
        return [match for match in found if moved.count(match.groups()) == 1]

    def _stops_a_ring(self, splice: Splice) -> bool:
        """Whether a ring's stage would no longer advance, so that only one stage is used."""
        start, end, _ = splice
        for step in self._only_steps:
            if start < step.end() and end > step.start():
                text = self._after(splice, *step.span())
                return all(other.groups() != step.groups() for other in _RING_STEP.finditer(text))
        return False

    @cached_property
    def _loops(self) -> set[tuple[str, ...]]:
        """(name, bound) of `for name in range(bound):`."""
        return {match.groups() for match in _LOOP.finditer(self.builder.text, self.builder.begin, self.end)}

    def _never_comes_true(self, splice: Splice) -> bool:
        """Whether a test would compare a loop's variable with the bound that it never reaches."""
        start, end, _ = splice
        first = self.builder.text.rfind("\n", 0, start) + 1
        last = self.builder.text.find("\n", end)
        text = self._after(splice, first, last if last >= 0 else end)
        return " == " in text and any(test.groups() in self._loops for test in _TEST.finditer(text))

    def _after(self, splice: Splice, first: int, last: int) -> str:
        """The text from one offset to another, and what the splice touches, with the splice applied."""
        start, end, new = splice
        text = self.builder.text
        return text[min(first, start) : start] + new + text[end : max(last, end)]
