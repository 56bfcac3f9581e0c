"""Behaviour that the ISA leaves open and a run must choose: `program` favours the kernel, `adverse` does not.

An int seed chooses at random. docs/choices.md lists every such choice of the simulator.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ptxsim.machine.launch_view import Launch
from ptxsim.machine.occupancy import ctas_per_sm
from ptxsim.machine.split import first_lane

LAST_LANE = 31


@dataclass(frozen=True)
class Choices:
    """The choices that hold for a whole launch."""

    elected: int  # elect.sync elects the highest member up to this lane, else the lowest (9.7.13.14)
    neighbours: bool  # another CTA of the grid runs on the same SM, and allocates tensor memory first
    absent: bool  # shfl.sync from a lane that does not take part yields a marker, not its value (9.7.9.6)
    impatient: (
        bool  # a try_wait that no loop repeats times out at once, and waits the second time (9.7.13.15.16)
    )


def choices(launch: Launch, order: object) -> Choices:
    """The choices of an order, for the CTAs of a launch."""
    shared = ctas_per_sm(launch) > 1
    most = 0 if launch.elects_lowest else LAST_LANE
    if isinstance(order, int):
        draw = random.Random(order)
        elected, neighbours = min(draw.randrange(LAST_LANE + 1), most), draw.random() < 0.5
        return Choices(elected, shared and neighbours, draw.random() < 0.5, draw.random() < 0.5)
    return Choices(most, shared, True, True) if order == "adverse" else Choices(0, False, False, False)


def elected_lane(members: int, limit: int) -> int:
    """The lane that elect.sync elects; always the same for the same members (9.7.13.14)."""
    below = members & ((2 << limit) - 1)
    return below.bit_length() - 1 if below else first_lane(members)
