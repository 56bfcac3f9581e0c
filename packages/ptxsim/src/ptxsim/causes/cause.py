"""`Cause`: what a finding may be due to. The catalogue lists them; findings name theirs by id."""

from __future__ import annotations

from dataclasses import dataclass

ERRORS = frozenset({"race", "deadlock", "mbarrier", "uninitialized", "tx-count"})  # that others bring about


@dataclass(frozen=True)
class Cause:
    """One entry of the catalogue."""

    id: str  # what findings, and tables of hints, name it by
    rank: int  # findings of one severity are told by rank, the lowest first (ranking.py)
    hint: str  # what to do about it, in the words of PTX and CUDA C++; other words: `Hints`
    text: str = ""  # how it is told, with {fields} for the facts; "": by the check that sees it
    explains: frozenset[str] = frozenset()  # kinds of finding that may follow from it

    def tell(self, **facts) -> str:
        """The text with these facts in it."""
        return self.text.format(**facts)
