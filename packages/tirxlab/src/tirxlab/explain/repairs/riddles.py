"""Edits that would pass and mend nothing: they take what is wrong out of use, and leave a riddle."""

from __future__ import annotations

import re
from functools import cached_property

from tirxlab.explain.repairs.text import Builder, Splice

_RING_STEP = re.compile(r"\b(\w+) = \(\1 \+ 1\) % \w+|\b(\w+)\.move_to_next_stage\(\)")
_TEST = re.compile(r"\bif (\w+) == (\w+):")
_LOOP = re.compile(r"\bfor (\w+) in range\((\w+)\):")


class Riddles:
    """Those of one builder."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self.end = builder.begin + len(builder.own)

    def holds(self, splice: Splice) -> bool:
        return self._stops_a_ring(splice) or self._never_comes_true(splice)

    @cached_property
    def _only_steps(self) -> list[re.Match[str]]:
        """Where a ring's stage moves on, if nothing else in the builder moves it."""
        found = [*_RING_STEP.finditer(self.builder.text, self.builder.begin, self.end)]
        moved = [match.groups() for match in found]
        return [match for match in found if moved.count(match.groups()) == 1]

    def _stops_a_ring(self, splice: Splice) -> bool:
        """Whether its stage would stay: a ring of which one stage is used is none."""
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
        """Whether a test would ask whether a loop's number is the one that it ends before."""
        start, end, _ = splice
        first = self.builder.text.rfind("\n", 0, start) + 1
        last = self.builder.text.find("\n", end)
        tests = _TEST.finditer(self._after(splice, first, last if last >= 0 else end))
        return any(test.groups() in self._loops for test in tests)

    def _after(self, splice: Splice, first: int, last: int) -> str:
        """The text from one offset to another, and what the splice touches, with the splice."""
        start, end, new = splice
        text = self.builder.text
        return text[min(first, start) : start] + new + text[end : max(last, end)]
