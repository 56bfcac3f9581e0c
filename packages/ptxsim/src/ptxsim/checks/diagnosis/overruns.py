"""Lines that use a whole barrier array and the memory after it: a stage that does not wrap at its end."""

from __future__ import annotations

from ptxsim.checks.barrier_history import held_waits, history_of
from ptxsim.checks.phrases import spot
from ptxsim.events.records import Place
from ptxsim.events.views import Cluster

_SIZE = 8  # bytes per mbarrier


def overruns(cluster: Cluster, names: list) -> dict[int, tuple[str, int, Place]]:
    """Row -> (array, size, place): a line that uses all of an array, or its end, and the barrier behind. The
    row is one of that line.
    """
    found, rows = {}, _by_row(cluster)
    used: dict[tuple, dict[int, Place]] = {}  # line of the source file, and calls -> window offset -> barrier
    row_of: dict[tuple, int] = {}
    for row, places in rows.items():
        if cluster.program.instrs[row].src is not None:
            at = spot(cluster.program, row)
            used.setdefault(at, {}).update(places)
            row_of.setdefault(at, row)
    arrays = [(name, start, size // _SIZE) for name, kind, start, size in names if kind == "uint64"]
    for line, places in used.items():
        for array, start, size in arrays:
            inside = [offset for offset in places if start <= offset < start + _SIZE * size]
            past = places.get(start + _SIZE * size)
            whole = len(inside) == size and start - _SIZE not in places
            one_more = size > 1 and start + _SIZE * size + _SIZE not in places
            last = size > 1 and set(places) == {start + _SIZE * size - _SIZE, start + _SIZE * size}
            if past and (last or whole and (one_more or _alike(used, places) > 1)):
                found[row_of[line]] = array, size, past
    return found or _walks(cluster, rows, arrays)


def _walks(cluster: Cluster, rows: dict[int, dict], arrays: list) -> dict[int, tuple[str, int, Place]]:
    """One instruction steps through a barrier array from its first element on, and into the next array."""
    found, first = {}, {start: (name, size) for name, start, size in arrays}
    for row, places in rows.items():
        line, start = cluster.program.instrs[row].src, min(places)
        array, size = first.get(start, ("", len(places)))
        end = start + _SIZE * size
        in_turn = sorted(places) == list(range(start, start + _SIZE * len(places), _SIZE))
        _, behind = first.get(end, ("", 0))
        if line is not None and in_turn and len(places) > size and max(size, behind) > 1:
            found[row] = array, size, places[end]
    return found


def _alike(used: dict[tuple, dict], places: dict) -> int:
    """How many lines use exactly these barriers: those of a ring are both signalled and waited for."""
    return sum(places.keys() == others.keys() for others in used.values())


def _by_row(cluster: Cluster) -> dict[int, dict[int, Place]]:
    """Row -> the mbarriers that it has signalled or waited for, by window offset."""
    used: dict[int, dict[int, Place]] = {}
    for place, history in history_of(cluster).items():
        rows = {row for _, _, row in history.sources} | {r for w in history.waits.values() for r in w.rows}
        for row in rows:
            used.setdefault(row, {})[place[1]] = place
    for _, row, place in held_waits(cluster):
        used.setdefault(row, {})[place[1]] = place
    return used
