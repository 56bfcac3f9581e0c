"""Merges loads of shared memory as ptxas does: loads of the same words, and neighbours into 8 or 16 bytes.

ptxas merges neighbours within straight-line code if it knows that the address is a multiple of the merged
size; before that, it unrolls an inner loop without barriers, mostly four times (CUDA 13.0: `plain/gemm.cu`).
Here the recorded addresses tell what ptxas can prove. Words that have been loaded before, with no store or
barrier since, are not loaded again (`plain/more.cu`, bytes: 64 loads in PTX, 16 LDS).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptxsim.timing.accesses import shared_passes
from ptxsim.timing.execution import MemoryAccess, Run
from ptxsim.timing.steps import Step
from ptxsim.timing.unrolling import UNROLLED

WIDE = 16  # bytes that a lane loads at most


@dataclass
class _Group:
    """Loads of one stretch of code in which each lane reads parts of the same 16 bytes."""

    lanes: bytes
    place: int  # index of its first load among the steps
    parts: set[int] = field(default_factory=set)  # addresses within the 16 bytes
    passes: list[int] = field(default_factory=list)


def merged(steps: list, out: list[Step], made) -> list[Step | None]:
    """The costs `out` of a warp's `steps`, after merging. A merged load replaces the first of its loads; the
    others become None.
    """
    result: list[Step | None] = list(out)
    groups: dict[tuple, _Group] = {}
    known: dict[tuple, _Group] = {}
    branches = 0
    for place, step in enumerate(steps):
        if type(step) is Run:
            branches += bool(out[place].does.branches)
        if type(step) is not Run and not _reads(step) or branches == UNROLLED:
            groups, known, branches = {}, {}, 0
        if type(step) is MemoryAccess and step.shared and _joins(step):
            words = step.lanes, step.at, step.width
            if words in known:
                _again(known[words], place, step, result, made)
            else:
                part, turning = made.execution.parts.get(step.row, ((), False))
                known[words] = _join(groups, (part, branches if turning else 0), place, step, result, made)
    return result


def _reads(step) -> bool:
    return type(step) is MemoryAccess and not step.write


def _joins(step: MemoryAccess) -> bool:
    return not step.write and step.width in (2, 4, 8) and bool(step.lanes)


def _again(group: _Group, place: int, step: MemoryAccess, result: list, made) -> None:
    """Drops a load: an earlier load of the same words provides its registers, too."""
    first = result[group.place]
    made.shared_bytes -= 128 * step.passes
    made.slots -= 1
    writes = dict.fromkeys((*first.writes, *result[place].writes))
    result[group.place] = first._replace(writes=tuple(writes))
    result[place] = None


def _join(groups: dict, part: tuple, place: int, step: MemoryAccess, result: list, made) -> _Group:
    """Adds a load to a group that it can join, or starts one; returns the group."""
    key = part, step.lanes, step.at // WIDE
    found = groups.get(key)
    if found is None or step.at % WIDE in found.parts or not _aligned(step.lanes):
        groups[key] = _Group(step.lanes, place, {step.at % WIDE}, [step.passes])
        return groups[key]
    found.parts.add(step.at % WIDE)
    does, reads, writes = result[found.place]
    _, more, others = result[place]
    half = len({part // 8 for part in found.parts}) == 1
    at = step.at // 8 * 8 if half else step.at // WIDE * WIDE
    passes = _passes(found.lanes, at, 8 if half else WIDE)
    made.shared_bytes += 128 * (passes - does.passes - step.passes)
    made.slots -= 1
    reads, writes = (tuple(dict.fromkeys((*a, *b))) for a, b in ((reads, more), (writes, others)))
    result[found.place] = Step(does._replace(passes=passes), reads, writes)
    result[place] = None
    return found


def _aligned(lanes: bytes) -> bool:
    return not (np.frombuffer(lanes, np.int64) % WIDE).any()


def _passes(lanes: bytes, at: int, width: int) -> int:
    places = np.frombuffer(lanes, np.int64) + at
    return shared_passes(places, np.full(len(places), width))
