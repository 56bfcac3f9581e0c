"""Two writes to one output by one line: rows, columns, tiles or parts of a buffer that coincide."""

from __future__ import annotations

import functools
from collections import Counter
from itertools import pairwise

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks import phrases
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.phrases import SourceLine
from ptxsim.checks.race.carried_values import EXCHANGES, changed
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.checks.race.shadow_order import READ_WRITE, SAME_VALUE
from ptxsim.checks.race.wording import line_of, thread_of, threads_of
from ptxsim.checks.static_flow import reachable, waits_for_phase
from ptxsim.lowering.emit import Program

_WARPGROUP = 128  # threads
_WORD = 16  # at most so many bytes in a variable that is no array


def same_output(races: RaceDetector, pair: AccessPair) -> Reason | None:
    shared = _one_shared_word(races, pair)
    if _one_word(races, pair) or not shared and changed_by_many(races, pair):
        both = sorted({pair.first.by, pair.second.by} - {None})
        who = threads_of(races, both) if len(both) == 2 else "threads of several CTAs"
        return reason("one-word", threads=who)
    if shared:
        if line_of(races, pair.first.row) == line_of(races, pair.second.row):
            return reason("shared-word", threads=threads_of(races, sorted({pair.first.by, pair.second.by})))
        if pair.first.verb != pair.second.verb:
            return reason("word-moves-on")
    apart = _parts_apart(races, pair) or _boxes_overlap(races, pair)
    if apart is not None:
        return apart
    text = _overlap(races, pair)
    return Reason(CAUSES[_cause(races, pair)], text) if text else None


def _one_word(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether threads write (or read and write), at one line, a module variable that is no array."""
    variables = races.launch.variables
    first, second = pair.first, pair.second
    if pair.space != "memory" or {first.kind, second.kind} - {"thread", "other"} or first.by == second.by:
        return False
    word = pair.buffer in variables and variables.size(pair.buffer) <= _WORD
    return word and line_of(races, first.row) == line_of(races, second.row)


def changed_by_many(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether threads read a place, change what they read, and write it back there, at one line, without
    having met between: a sum of a warp or CTA that several of its threads store loses nothing.
    """
    sides, program = (pair.first, pair.second), races.launch.program
    line = line_of(races, sides[0].row)
    alike = line == line_of(races, sides[1].row) and {a.kind for a in sides} <= {"thread", "other"}
    if not alike or pair.code not in range(READ_WRITE + 1) and pair.code != SAME_VALUE:
        return False
    stores = _stores_at(program, line)
    loads = frozenset().union(*stores.values())
    return all(access.row in loads or stores.get(access.row) for access in sides)


@functools.lru_cache(maxsize=64)
def _stores_at(program: Program, line: SourceLine) -> dict[int, frozenset[int]]:
    """Row at this line -> the loads from the place that it changes, if it is such a store."""
    return {row: read_before(program, row) for row in program.by_row if phrases.line_of(program, row) == line}


def read_before(program: Program, store: int) -> frozenset[int]:
    """Rows of loads from the place that row `store` changes, if threads need not meet on the way."""
    ways = ((load, reachable(program, load + 1, stops=_meets)) for load in changed(program, store))
    return frozenset(load for load, way in ways if store in way)


def _meets(instr) -> bool:
    return instr is not None and (instr.op in (*EXCHANGES, "bar", "barrier") or waits_for_phase(instr))


def _one_shared_word(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether two threads of a CTA conflict on a shared-memory variable that is no array."""
    first, second = pair.first, pair.second
    if pair.space != "shared" or not first.kind == second.kind == "thread" or first.by == second.by:
        return False
    return races.reporter.is_one_word(pair.position % races.history.window)


def _cause(races: RaceDetector, pair: AccessPair) -> str:
    first, second = pair.first, pair.second
    memory = pair.space == "memory"
    if between_ctas(races, pair):
        return "variable-of-all"
    if memory and first.kind == "result" and first.by == second.by:
        return "same-tile-again" if _tile_step(races, pair) is None else "tiles-overlap"
    if first.kind != "other" and _of_two_groups(races, first.by, second.by):
        return "same-part"
    if memory and first.kind == second.kind == "result" and _between_threads(races, pair):
        return "same-tile-of-warps"
    return "same-tile" if memory else "same-row"


def _between_threads(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether the two accesses are by different threads of one CTA."""
    by, per_cta = (pair.first.by, pair.second.by), races.clocks.per_cta
    return None not in by and by[0] != by[1] and by[0] // per_cta == by[1] // per_cta


def between_ctas(races: RaceDetector, pair: AccessPair) -> bool:
    """Whether two CTAs conflict on a variable of the module."""
    return pair.first.kind == "other" and pair.buffer in races.launch.variables


def _of_two_groups(races: RaceDetector, one: int | None, other: int | None) -> bool:
    """Whether the two are the corresponding thread (or warp) of two warpgroups of one CTA."""
    if one is None or other is None:
        return False
    group = _WARPGROUP // races.clocks.threads_per_agent
    return (
        one != other
        and one // races.clocks.per_cta == other // races.clocks.per_cta
        and not (one - other) % group
    )


def _overlap(races: RaceDetector, pair: AccessPair) -> str:
    """Two writes by one line whose rows, columns or tiles coincide; "" if that is not the case."""
    first, second = pair.first, pair.second
    if pair.space == "tmem" or (first.verb, second.verb) != ("write", "write"):
        return ""
    if first.kind == "other":
        ids = [races.launch.cluster_cta_ids(a.cluster - 1)[0] for a in (first, second)]
        unit = "CTAs" if races.cluster.ctas == 1 else "the clusters of CTAs"
        return f"{unit} {ids[0]} and {ids[1]} of the grid (cta_id) both store it"
    if line_of(races, first.row) != line_of(races, second.row) or None in (first.by, second.by):
        return ""
    if pair.space == "shared" and not (first.kind == second.kind and first.kind in ("thread", "cp.async")):
        return ""
    one, two = (a.by // races.clocks.per_cta for a in (first, second))
    if one != two:
        same = "their tiles overlap" if _apart(pair) else "their tile coordinates are the same"
        return f"CTA {one} and CTA {two} of the cluster both store it: {same}"
    if first.kind == second.kind and first.kind in ("thread", "cp.async") and first.by != second.by:
        names = threads_of(races, sorted({first.by, second.by}))
        return f"{names} both store it: their rows or columns overlap"
    if first.kind == "result" == second.kind and first.by != second.by:
        names = threads_of(races, sorted({first.by, second.by}))
        return f"{names} both store it: their tile coordinates do not tell them apart"
    if first.kind == "result" and first.by == second.by and first.detail == second.detail:
        who = thread_of(races, first.by)
        if _tile_step(races, pair) is not None:
            return f"{who} stores this part of one tile, and begins its next tile with it: its tiles overlap"
        return f"{who} stores the same tile again: its coordinates did not change"
    return ""


def _apart(pair: AccessPair) -> bool:
    """Whether two boxes begin at different elements."""
    starts = [tuple(op.copy.start) for op in pair.issued if op is not None and op.copy is not None]
    return len(set(starts)) > 1


def _parts_apart(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """One thread's stores of a tile leave gaps, so that its tile reaches into the next one."""
    by, issued = pair.first.by, pair.issued[0]
    own = pair.space == "memory" and pair.first.kind == pair.second.kind == "result"
    if not own or by is None or by != pair.second.by or issued is None or issued.copy is None:
        return None
    box, steps = issued.copy.tensor.box, _tile_step(races, pair) or ()
    moved = [(axis, step) for axis, step in enumerate(steps) if step]
    if len(moved) != 1 or moved[0][1] <= box[moved[0][0]]:
        return None
    axis, step = moved[0]
    facts = {"step": step, "size": box[axis], "unit": _unit(axis, box)}
    return reason("parts-apart", who=thread_of(races, by), **facts)


def _boxes_overlap(races: RaceDetector, pair: AccessPair) -> Reason | None:
    """At one line, the boxes of two threads, or of two stores of one thread, begin less than a box apart."""
    first, second = pair.first, pair.second
    own = pair.space == "memory" and first.kind == second.kind == "result"
    copies = [op.copy for op in pair.issued if op is not None and op.copy is not None]
    if not own or None in (first.by, second.by) or len(copies) != 2:
        return None
    if line_of(races, first.row) != line_of(races, second.row):
        return None
    box = copies[0].tensor.box
    moved = [(axis, abs(step)) for axis, step in enumerate(_step(*copies)) if step]
    if len(moved) != 1 or moved[0][1] >= box[moved[0][0]]:
        return None
    (axis, step), one = moved[0], first.by == second.by
    names = thread_of(races, first.by) if one else threads_of(races, sorted({first.by, second.by}))
    return reason(
        "boxes-overlap",
        who=names,
        stores="stores" if one else "store",
        size=box[axis],
        unit=_unit(axis, box),
        step=step,
    )


def _unit(axis: int, box) -> str:
    return ("columns", "rows")[axis] if axis < 2 == len(box) else f"elements of axis {axis}"


def _tile_step(races: RaceDetector, pair: AccessPair) -> tuple[int, ...] | None:
    """The usual step from one store of a tile to the next, if the first of the two stores is in the middle of
    a tile and the second begins one; else None.
    """
    one, other = pair.issued
    if one is None or other is None or one.copy is None:
        return None
    line = line_of(races, one.row)
    ops = (op for _, op in races.transfers.works_of(one.queue) if line_of(races, op.row) == line)
    boxes = [op.copy for op in ops if op.copy is not None and op.copy.kind == "store"]
    places = [next((n for n, copy in enumerate(boxes) if copy is op.copy), 0) for op in (one, other)]
    steps = [_step(one, other) for one, other in pairwise(boxes)]
    (usual, often), *_ = Counter(steps).most_common(1) or [((), 0)]
    goes_on, begins = (n > 0 and steps[n - 1] == usual for n in sorted(places))
    inside = often > 1 and goes_on and not begins and abs(places[0] - places[1]) > 1
    return usual if inside else None


def _step(one, other) -> tuple[int, ...]:
    """The offset from the first box to the second, on each axis."""
    return tuple(b - a for a, b in zip(one.start, other.start, strict=True))
