"""A wait or a signal that names the wrong barrier: nobody waits for one barrier (or signals it), while two
lines wait for another (or signal it).

A thread that signals the neglected barrier is not the one that should wait for it, and a thread that waits
for its own signal waits for nothing, unless that is a commit. So the record often shows which of the two
lines is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.checks.barrier_history import held_at, held_waits, times_signalled, times_waited
from ptxsim.checks.diagnosis.case import Case
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.number_agreement import agree, of_first_cta
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.static_flow import reachable, signal_rows, waits_for_phase
from ptxsim.events.records import Place
from ptxsim.lowering.emit import Program
from ptxsim.machine.register_files import WHOLE_WARP


@dataclass
class BarrierLine:
    """A line that waits for elements of one barrier array, or signals them, and the warps that reach it."""

    row: int  # one of its rows
    warps: set[int]
    announces: bool = False  # for a signal: whether it announces bytes


def misnamed(case: Case) -> Reason | None:
    """The wait that only a wrong name can explain; both waits, if the record cannot tell them apart."""
    names = array_names(case)
    ignored = _array_of(case.never_waited(names))
    if not ignored:
        return None
    signals = _signals(case, ignored)
    arrays = {case.array(place) for place in case.histories} - {ignored}
    for array in sorted(arrays):
        lines = _lines(case, array)
        if len(lines) == 2:
            own = set(_signals(case, array, ("load", "commit")))
            wrong = _wrong(lines, own, set(signals))
            places = [p for p in case.histories if names(p[1]).partition("[")[0] == ignored]
            wrong = [one for one in wrong if _as_often(case, array, places, one)]
            return _told(case, array, ignored, signals, wrong) if wrong else None
    return None


def _as_often(case: Case, array: str, ignored: list[Place], line: BarrierLine) -> bool:
    """Whether those who wait for this array at a line do so about as often as the ignored barriers are
    signalled, as far as they have come.
    """
    mine = [p for p in case.histories if case.array(p) == array]
    if held_at(case.cluster, mine):
        return True
    by = {warp for p in ignored for _, warp, _ in case.histories[p].sources}
    signals = max((times_signalled(case.histories, ignored, warp) for warp in by), default=0)
    return 2 * max(times_waited(case.histories, mine, warp) for warp in line.warps) >= signals


def unwaited(case: Case) -> Reason | None:
    """Barriers that are signalled and that nobody waits for; perhaps a wait names another instead."""
    ignored = case.never_waited(array_names(case))
    if not ignored:
        return None
    return misnamed(case) or reason("ahead-unwaited", names=" or ".join(ignored))


def missent(case: Case) -> Reason | None:
    """The signal that names another barrier instead of one that is waited for and that nobody signals."""
    arrays = sorted({case.array(place) for place in case.histories})
    signals = {array: _signal_lines(case, array) for array in arrays}
    doubly = [a for a in arrays if len(signals[a]) == 2 and not _counts_all(case, a)]
    doubly = [a for a in doubly if not _by_turns(case.cluster.program, *signals[a])]
    waits = {array: _lines(case, array) for array in arrays if not signals[array]}
    if not doubly or not any(waits.values()):
        return None
    to_come = _by_text(case)
    silent = [array for array, lines in waits.items() if lines and array not in to_come]
    if len(silent) != 1:
        return None
    array, waiter = doubly[0], waits[silent[0]][0]
    listeners = {warp for line in _lines(case, array) for warp in line.warps}
    loaded = any(history.loaders for history in case.of_array(array))
    wrong = _wrong_signals(signals[array], waits[silent[0]], listeners, loaded)
    verb = agree(_who(case, waiter.warps), "waits")
    facts = {"silent": silent[0], "waiter": _at(case, waiter), "waits": verb, "name": array}
    if len(wrong) > 1:
        return reason("one-missent", both=" and ".join(_at(case, line) for line in wrong), **facts)
    who = _who(case, wrong[0].warps)
    facts |= {"who": who, "signals": agree(who, "signals"), "line": case.line(wrong[0].row)}
    return reason("missent", wrong[0].row, **facts)


def _array_of(names: list[str]) -> str:
    """The one array that is signalled and never waited for; "" if there are none or several."""
    return names[0].partition("[")[0] if len(names) == 1 else ""


def _signals(case: Case, array: str, but: tuple[str, ...] = ("load",)) -> dict[int, int]:
    """Warp -> a row at which it signals an element of this array, by other means than these."""
    return {warp: row for h in case.of_array(array) for how, warp, row in h.sources if how not in but}


def _lines(case: Case, array: str) -> list[BarrierLine]:
    """The waits for elements of this array, past and present, grouped by line."""
    rows: list[tuple[int, int]] = []  # (row, warp)
    for history in case.of_array(array):
        rows += [(row, warp) for warp, waits in history.waits.items() for row in waits.rows]
    for warp, row, place in held_waits(case.cluster):
        if case.array(place) == array:
            rows.append((row, warp))
    lines: dict[str, BarrierLine] = {}
    for row, warp in sorted(rows):
        lines.setdefault(case.line(row), BarrierLine(row, set())).warps.add(warp)
    return list(lines.values())


def _signal_lines(case: Case, array: str) -> list[BarrierLine]:
    """The arrivals on elements of this array and the commits to them, grouped by line."""
    lines: dict[str, BarrierLine] = {}
    for history in case.of_array(array):
        for (_, warp, row), signals in history.arrivals.items():
            line = lines.setdefault(case.line(row), BarrierLine(row, set()))
            line.warps.add(warp)
            line.announces |= signals.announces
    return list(lines.values())


def _counts_all(case: Case, array: str) -> bool:
    """Whether init counts every thread at every line that signals: none of them is one too many."""
    for history in case.of_array(array):
        lanes: dict[tuple[int, str], int] = {}
        for (_, warp, row), signals in history.arrivals.items():
            at = warp, case.line(row)
            lanes[at] = lanes.get(at, 0) | signals.lanes
        if lanes and history.count != sum(mask.bit_count() for mask in lanes.values()):
            return False
    return True


def _by_turns(program: Program, one: BarrierLine, other: BarrierLine) -> bool:
    """Whether a warp signals at one of these lines or the other, with a wait between any two signals: in both
    arms of a branch, or before a loop and in it.
    """
    ends = {line.row: reachable(program, line.row, stops=waits_for_phase) for line in (one, other)}
    return one.warps == other.warps and not (other.row in ends[one.row] or one.row in ends[other.row])


def _wrong(lines: list[BarrierLine], own: set[int], signals: set[int]) -> list[BarrierLine]:
    """Which of two lines should wait for the other barrier; both, if it may be either; none, if all that wait
    here signal the other one. A barrier that nobody has signalled may be unused: then only a line that waits
    for its own signals is certainly wrong.
    """
    by_itself = [one for one in lines if own and one.warps >= own]
    if len(by_itself) == 1 and not by_itself[0].warps & signals:
        return by_itself
    if not signals:
        return []
    return [one for one in lines if not one.warps & signals]


def _wrong_signals(
    lines: list[BarrierLine], waiters: list[BarrierLine], listeners: set[int], loaded: bool
) -> list[BarrierLine]:
    """The lines that may name the wrong barrier. A warp that waits for the silent barrier is not the one to
    signal it; a warp that waits for the other one (a listener) has it signalled by somebody else; and bytes
    are announced at the barrier where they arrive.
    """
    theirs = set().union(*(line.warps for line in waiters))
    lost = [line for line in lines if line.announces and not loaded]
    others = lost or [line for line in lines if not line.announces and not line.warps & theirs]
    to_itself = [line for line in others if line.warps & listeners]
    others = to_itself if len(others) > 1 and len(to_itself) == 1 else others
    return others if len(others) == 1 else lines


def _by_text(case: Case) -> set[str]:
    """Barrier arrays that some instruction of the program signals, even if it has not run yet."""
    array_of = case.reporter.shared_array
    return {array_of(at) for offsets in signal_rows(case.cluster.launch).values() for at in offsets}


def _told(case: Case, array: str, ignored: str, signals: dict[int, int], wrong: list[BarrierLine]) -> Reason:
    facts = {"ignored": ignored + _by(case, signals), "name": array}
    if len(wrong) == 1:
        who = _who(case, wrong[0].warps)
        facts |= {"who": who, "waits": agree(who, "waits")}
        return reason("misnamed", wrong[0].row, line=case.line(wrong[0].row), **facts)
    return reason("one-misnamed", both=" and ".join(_at(case, line) for line in wrong), **facts)


def _at(case: Case, line: BarrierLine) -> str:
    """A role and its line: `WG0 (line 12)`."""
    return f"{_who(case, line.warps)} ({case.line(line.row)})"


def _by(case: Case, signals: dict[int, int]) -> str:
    """`, which WG0 signals (line 12)`; "" if nobody has signalled it."""
    if not signals:
        return ""
    row = signals[min(signals)]
    who = _who(case, {warp for warp, other in signals.items() if other == row})
    return f", which {who} {agree(who, 'signals')} ({case.line(row)})"


def _who(case: Case, warps: set[int]) -> str:
    """The role of these warps within one CTA: the lowest CTA that has any of them."""
    return case.role(of_first_cta(case.cluster, dict.fromkeys(warps, WHOLE_WARP)))
