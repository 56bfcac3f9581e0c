"""`Hints`: the advice for each cause, in the terms of the language that a kernel was written in.

The catalogue's own hints use PTX and CUDA C++. A front end with its own language passes in a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause
from ptxsim.causes.rivals import with_rivals


@dataclass(frozen=True)
class Hints:
    """Hints by cause id, and the language's words for some of the machine's terms in messages.

    A cause without an entry keeps the catalogue's hint. Raises ValueError for an id that no cause has.
    """

    of: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        unknown = sorted(set(self.of) - set(CAUSES)) if self.of else []
        if unknown:
            raise ValueError(f"no cause has the id {', '.join(unknown)}; ptxsim.CAUSES lists them")

    def hint(self, cause: Cause, kind: str) -> str:
        """The advice for a finding of this kind with this cause, and what else to check (rivals.py)."""
        return with_rivals(cause.id, kind, self.of.get(cause.id, cause.hint))

    def told(self, message: str) -> str:
        """A message in the language's words."""
        for ours, theirs in self.words.items():
            message = message.replace(ours, theirs)
        return message


CUDA = Hints(words={"bar.sync 0": "__syncthreads()", "barrier.cluster": "cluster.sync()"})
