"""A replay as a timeline in nanoseconds: what the model's first cluster on an SM does when.

The timeline is the one that trace/ draws of a recorded run, with the times of the replay instead of ticks. A
warp's own accesses to shared and global memory take time in the replay but are no events, so they appear as
gaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ptxsim.timing.predict import Prediction
from ptxsim.trace.schedule import BARRIERS, WAITS, Costs, Event, Timeline, summarise

NOTE = "a warp's own work in registers, shared and global memory: it takes time here, but is not drawn"
_UNNAMED = re.compile(r"shared memory \+ (\d+) B")


def timeline(prediction: Prediction, name: Callable[[int], str] | None = None) -> Timeline:
    """The timeline of the first instance. name: offset in shared memory -> what is there, for labels."""
    execution, path = prediction.costed.execution, prediction.played.paths[0]
    start, scale = prediction.played.starts[0], 1.0 / prediction.ghz
    events = []
    for number, event in enumerate(execution.events):
        begin, end = _span(number, event, path, prediction.locality.chip)
        begin, end = ((moment - start) * scale for moment in (begin, end))
        events.append(replace(event, begin=begin, end=max(begin, end), name=_named(event.name, name)))
    last = max((event.end for event in events), default=0.0)
    lanes = [summarise(events, last, replace(lane)) for lane in execution.lanes]
    return Timeline(events, lanes, last, Costs(), True, 0, [NOTE], "ns")


def _span(number: int, event: Event, path, chip) -> tuple[float, float]:
    """(begin, end) of an event in cycles of the replay."""
    end = path.ended.get(number, 0.0)
    if event.lane == BARRIERS:
        return end, end
    if number in path.served:
        begin, _, end = path.served[number]
        return begin, end
    if number in path.issued and (event.kind == "issue" or event.kind in WAITS):
        return path.issued[number][1], end
    if event.kind.startswith("TMEM"):
        port, late = chip.tmem_costs(event.kind == "TMEM write")
        return end - event.amount / port - late, end
    return end, end


def _named(text: str, name: Callable[[int], str] | None) -> str:
    return _UNNAMED.sub(lambda found: name(int(found[1])), text) if name else text
