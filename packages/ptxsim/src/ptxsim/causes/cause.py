"""`Cause`: a possible cause of a finding. The catalogue lists all causes; findings refer to theirs by id."""

from __future__ import annotations

from dataclasses import dataclass

ERRORS = frozenset({"race", "deadlock", "mbarrier", "uninitialized", "tx-count"})  # may follow from others


@dataclass(frozen=True)
class Cause:
    """One entry of the catalogue."""

    id: str  # the name that findings and tables of hints use
    rank: int  # findings of one severity are sorted by rank, the lowest first (ranking.py)
    hint: str  # what to do, in the terms of PTX and CUDA C++; for other languages see `Hints`
    text: str = ""  # its wording, with {fields} for the facts; "": the check words it
    explains: frozenset[str] = frozenset()  # kinds of finding that may be its consequences

    def tell(self, **facts) -> str:
        """The text, filled in with these facts."""
        return self.text.format(**facts)
