"""Attributes the time on the critical path, walking from the last step of an instance back to its start.

A warp's time since its last wait is its own. A wait leads to the event that ended it, an event to the unit
that did the work and to the step that issued it, and so on back to the start. The parts add up to the
instance's time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Any

from ptxsim.timing.execution import Execution
from ptxsim.timing.instance import Path
from ptxsim.trace.schedule import BARRIERS, COPIES, LOADS, STORES, TENSOR

TENSOR_CORE, LATENCY, MEMORY = "tensor core", "load latency", "L2 / HBM"
EPILOGUE, BARRIER, ISSUE = "epilogue", "barriers", "instructions"
KINDS = (TENSOR_CORE, LATENCY, MEMORY, EPILOGUE, BARRIER, ISSUE)


def critical(execution: Execution, path: Path, start: float, slow: float) -> Counter:
    """Cycles on the critical path by kind. slow: a load that takes more cycles did not just hit L2."""
    walk = _Walk(execution, path, start, slow)
    walk.back(*path.last)
    return walk.spent


class _Walk:
    def __init__(self, execution: Execution, path: Path, start: float, slow: float):
        self.execution, self.path, self.start, self.slow = execution, path, start, slow
        self.spent: Any = Counter()
        self.ends = [[wait[1] for wait in waits] for waits in path.waits]
        self.first_result = [self._first_result(w) for w in range(len(path.waits))]

    def _first_result(self, warp: int) -> float:
        """When a warp first waits for TMEM, with results to write back: everything later is epilogue."""
        kinds = [w[0] for w in self.path.waits[warp] if w[2] == "TMEM"]
        return kinds[0] if kinds else float("inf")

    def take(self, kind: str, cycles: float) -> None:
        if cycles > 0:
            self.spent[kind] += cycles

    def back(self, warp: int, at: float) -> None:
        """Follows the path from a cycle of a warp to the start."""
        for _ in range(10_000_000):
            number = bisect_right(self.ends[warp], at + 1e-9) - 1
            own = EPILOGUE if at > self.first_result[warp] else ISSUE
            if number < 0:
                self.take(own, at - self.start)
                return
            begin, end, kind, event = self.path.waits[warp][number]
            self.take(own, at - end)
            if kind != "event":
                self.take(_KIND.get(kind, own), end - begin)
                at = begin - 1e-6
                continue
            found = self._through(event, end)
            if found is None or found[1] >= end:
                self.take(BARRIER, end - begin)
                at = begin - 1e-6
                continue
            warp, at = found

    def _through(self, event: int, at: float) -> tuple[int, float] | None:
        """The (warp, cycle) that issued an event, or None; adds the time between to the event's kind."""
        path, execution = self.path, self.execution
        while True:
            noted = execution.events[event]
            ended = min(path.ended.get(event, at), at)
            if noted.lane == BARRIERS:
                event = path.cause[event]
                self.take(BARRIER, ended - min(path.ended[event], ended))
            elif noted.kind == "commit":
                before = [n for n in noted.after[1:] if n in path.ended]
                if not before:
                    return path.issued.get(event)
                event = max(before, key=path.ended.__getitem__)
                self.take(BARRIER, ended - min(path.ended[event], ended))
            else:
                break
        if event not in path.issued:
            return None
        warp, issued = path.issued[event]
        self._served(event, noted.lane, issued, ended)
        return warp, min(issued, ended)

    def _served(self, event: int, lane: str, issued: float, ended: float) -> None:
        took = ended - issued
        copied = MEMORY if took > self.slow else LATENCY
        kinds = {TENSOR: TENSOR_CORE, LOADS: copied, COPIES: copied, STORES: EPILOGUE}
        self.take(kinds.get(lane, BARRIER), took)


_KIND = {"TMEM": EPILOGUE, "tensor core": TENSOR_CORE, "operands": LATENCY, "memory": MEMORY}
