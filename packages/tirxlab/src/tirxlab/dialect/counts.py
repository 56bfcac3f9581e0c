"""Counts of arrivals at an mbarrier (PTX ISA 9.7.13.15.9)."""

from tvm.tirx import IntImm

WANTED = "count is a number of arrivals from 1 to 1048575"


def countable(where: str, count) -> None:
    """ValueError if a number known at parse time is not a valid arrival count; ptxas would crash on 0."""
    known = int(count) if isinstance(count, int | IntImm) else None
    if isinstance(count, bool) or known is not None and not 1 <= known < 1 << 20:
        raise ValueError(f"{where}: {WANTED}, not {count!r}")
