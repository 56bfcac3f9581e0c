"""`Reason`: a cause, worded with the facts of a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxsim.causes.catalogue import CAUSES
from ptxsim.causes.cause import Cause


@dataclass(frozen=True)
class Reason:
    cause: Cause
    text: str
    row: int | None = None  # program row to show, if the reason has one of its own
    warp: int | None = None  # the warp that is at this row
    waiter: Any = None  # of a deadlock: the waiting group that it is about


def reason(cause: str, row: int | None = None, warp: int | None = None, /, **facts) -> Reason:
    """The cause of this name, worded with these facts."""
    return Reason(CAUSES[cause], CAUSES[cause].tell(**facts), row, warp)
