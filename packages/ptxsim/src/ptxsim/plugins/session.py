"""A session: the launches inside a `with` block that run on the simulator, and their outcomes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ptxsim.driver.chips import CHIPS, ChipProperties
from ptxsim.driver.device import Record
from ptxsim.driver.telling import Teller, say, worst


@dataclass
class Session:
    """The settings of a block, and a Record for each launch inside it."""

    chip: ChipProperties
    order: str | int
    checks: bool
    teller: Teller
    launches: list[Record] = field(default_factory=list)
    dry: bool = False  # kernels are compiled and loaded, but not run

    @property
    def verdict(self) -> str:
        """The worst verdict of all launches."""
        return worst(record.verdict for record in self.launches)

    def told(self, record: Record) -> None:
        """Keeps and prints the record of a launch that has ended."""
        self.launches.append(record)
        self.teller.told(record)


@contextlib.contextmanager
def inside(session: Session, changes: Iterable[contextlib.AbstractContextManager]) -> Iterator[None]:
    """Makes the changes for the duration of the block; at its end, prints the summary of the session."""
    with contextlib.ExitStack() as stack:
        for change in changes:
            stack.enter_context(change)
        try:
            yield
        finally:
            session.teller.summary(session.launches, session.chip.name)


def not_run(what: str, *_, **__) -> float:
    """Takes the place of a function that would time kernels, and says so."""
    say(f"ptxsim: not run, as speed is not measured here: {what}")
    return math.nan


def chip_named(name: str) -> ChipProperties:
    """The chip with this name. Raises ValueError if there is none."""
    if name not in CHIPS:
        raise ValueError(f"chip must be one of {', '.join(CHIPS)} (got {name!r})")
    return CHIPS[name]
