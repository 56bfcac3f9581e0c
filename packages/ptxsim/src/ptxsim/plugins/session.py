"""What runs on the simulator inside a `with` block of this process, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ptxsim.driver.chips import CHIPS, Chip
from ptxsim.driver.device import Record
from ptxsim.driver.telling import Teller, worst


@dataclass
class Session:
    """What runs inside the block, and what came of it."""

    chip: Chip
    order: str | int
    checks: bool
    teller: Teller
    launches: list[Record] = field(default_factory=list)
    dry: bool = False  # kernels are compiled and loaded, but not run

    @property
    def verdict(self) -> str:
        """The worst of all launches."""
        return worst(record.verdict for record in self.launches)

    def told(self, record: Record) -> None:
        """A launch has ended."""
        self.launches.append(record)
        self.teller.told(record)


@contextlib.contextmanager
def inside(session: Session, changes: Iterable[contextlib.AbstractContextManager]) -> Iterator[None]:
    """The changes hold while the block lasts; then the session tells what came of it."""
    with contextlib.ExitStack() as stack:
        for change in changes:
            stack.enter_context(change)
        try:
            yield
        finally:
            session.teller.summary(session.launches, session.chip.name)


def chip_named(name: str) -> Chip:
    """ValueError for one that there is not."""
    if name not in CHIPS:
        raise ValueError(f"chip is one of {', '.join(CHIPS)} (got {name!r})")
    return CHIPS[name]
