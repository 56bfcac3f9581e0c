"""Arrays among barriers that share one buffer, as kernels lay them out in dynamic shared memory or in one
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ptxsim.checks.barrier_history import held_waits
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.phrases import spot


def nameless_arrays(case: Case) -> dict[int, str]:
    """Window offset -> name of the first barrier of its array, for barriers that are no variables of their
    own. Those that one line waits for and one line has initialised form an array; compilers merge the lines
    of unrolled inits, so neighbours need not share that one. A barrier that nobody waits for belongs to those
    that the same lines signal; if nobody signals it, to the first that its line initialised.
    """
    lines: dict[int, set[Hashable]] = {}  # offset -> the lines that wait for it
    for place, history in case.histories.items():
        if not case.reporter.is_one_word(place[1]) and "[" not in case.name(place):
            rows = {row for waits in history.waits.values() for row in waits.rows}
            lines.setdefault(place[1], set()).update(spot(case.program, row) for row in rows)
    for _, row, (_, offset) in held_waits(case.cluster):
        if offset in lines:
            lines[offset].add(spot(case.program, row))
    instrs = case.program.instrs
    # an unrolled loop has many waits
    if not any(instrs[history.row].src for history in case.histories.values()):
        lines = {offset: at for offset, at in lines.items() if not _only_barriers(case, offset)}
    nameless = {p: h for p, h in case.histories.items() if p[1] in lines}
    made = {p[1]: (h.count, instrs[h.row].src and spot(case.program, h.row)) for p, h in nameless.items()}
    signals: dict[int, set[Hashable]] = {}  # offset -> the lines that signal it
    for place, history in nameless.items():
        rows = {row for _, _, row in history.sources}
        signals.setdefault(place[1], set()).update(spot(case.program, row) for row in rows)
    before: dict[int, int] = {}  # offset -> a barrier of its array, nearer to the first
    for offset in lines:
        same = [o for o in lines if made[o] == made[offset]]
        own = [o for o in lines if lines[o] & lines[offset] and (o in same or abs(o - offset) == 8)]
        own = own or [o for o in lines if signals[o] & signals[offset]]
        before[offset] = min(own or [o for o in same if lines[o]] or same)
    for offset in lines:
        while before[before[offset]] != before[offset]:
            before[offset] = before[before[offset]]
    return {offset: case.reporter.shared_name(first) for offset, first in before.items()}


def array_names(case: Case) -> Callable[[int], str]:
    """Window offset -> name of its array: of those above, or else of the variable."""
    nameless = nameless_arrays(case)
    return lambda offset: nameless.get(offset) or case.reporter.shared_array(offset)


def _only_barriers(case: Case, offset: int) -> bool:
    """Whether a variable holds nothing but barriers."""
    offsets = {place[1] for place in case.histories}
    start, size = case.reporter.shared_extent(offset)
    return 0 < size == 8 * sum(start <= other < start + size for other in offsets)
