"""A wait or a signal that names the wrong barrier: nobody waits for one barrier (or signals it), while two
lines wait for another (or signal it).

A thread that signals the neglected barrier is not the one that should wait for it, and a thread that waits
for its own signal waits for nothing, unless that is a commit. So the record often shows which of the two
lines is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import (
    held_at,
    held_waits,
    never_waited,
    of_array,
    times_signalled,
    times_waited,
)
from ptxsim.checks.diagnosis.deadlock.nameless import array_names
from ptxsim.checks.diagnosis.number_agreement import agree, of_first_cta, role
from ptxsim.checks.diagnosis.reason import Reason, reason
from ptxsim.checks.static_flow import signal_rows
from ptxsim.events.views import Cluster
from ptxsim.machine.register_files import WHOLE_WARP
from ptxsim.report.findings import Reporter


@dataclass
class BarrierLine:
    """A line that waits for elements of one barrier array, or signals them, and the warps that reach it."""

    row: int  # one of its rows
    warps: set[int]
    announces: bool = False  # for a signal: whether it announces bytes


def misnamed(cluster: Cluster, histories: dict, reporter: Reporter) -> Reason | None:
    """The wait that only a wrong name can explain; both waits, if the record cannot tell them apart."""
    names = array_names(cluster, histories, reporter)
    ignored = _array_of(never_waited(cluster, histories, reporter, names))
    if not ignored:
        return None
    signals = _signals(histories, ignored, reporter)
    arrays = {reporter.shared_array(place[1]) for place in histories} - {ignored}
    for array in sorted(arrays):
        lines = _lines(cluster, histories, array, reporter)
        if len(lines) == 2:
            own = set(_signals(histories, array, reporter, ("load", "commit")))
            wrong = _wrong(lines, own, set(signals))
            places = [p for p in histories if names(p[1]).partition("[")[0] == ignored]
            wrong = [one for one in wrong if _as_often(cluster, histories, array, places, one, reporter)]
            return _told(cluster, array, ignored, signals, wrong) if wrong else None
    return None


def _as_often(
    cluster: Cluster, histories: dict, array: str, ignored: list, line: BarrierLine, reporter
) -> bool:
    """Whether those who wait for this array at a line do so about as often as the ignored barriers are
    signalled, as far as they have come.
    """
    mine = [p for p in histories if reporter.shared_array(p[1]) == array]
    if held_at(cluster, mine):
        return True
    by = {warp for p in ignored for _, warp, _ in histories[p].sources}
    signals = max((times_signalled(histories, ignored, warp) for warp in by), default=0)
    return 2 * max(times_waited(histories, mine, warp) for warp in line.warps) >= signals


def missent(cluster: Cluster, histories: dict, reporter: Reporter) -> Reason | None:
    """The signal that names another barrier instead of one that is waited for and that nobody signals."""
    arrays = sorted({reporter.shared_array(place[1]) for place in histories})
    signals = {array: _signal_lines(cluster, histories, array, reporter) for array in arrays}
    doubly = [a for a in arrays if len(signals[a]) == 2 and not _counts_all(cluster, histories, a, reporter)]
    waits = {array: _lines(cluster, histories, array, reporter) for array in arrays if not signals[array]}
    if not doubly or not any(waits.values()):
        return None
    to_come = _by_text(cluster, reporter)
    silent = [array for array, lines in waits.items() if lines and array not in to_come]
    if len(silent) != 1:
        return None
    array, waiter = doubly[0], waits[silent[0]][0]
    listeners = {warp for line in _lines(cluster, histories, array, reporter) for warp in line.warps}
    loaded = _is_loaded_to(histories, array, reporter)
    wrong = _wrong_signals(signals[array], waits[silent[0]], listeners, loaded)
    verb = agree(_who(cluster, waiter.warps), "waits")
    facts = {"silent": silent[0], "waiter": _at(cluster, waiter), "waits": verb, "name": array}
    if len(wrong) > 1:
        return reason("one-missent", both=" and ".join(_at(cluster, line) for line in wrong), **facts)
    who = _who(cluster, wrong[0].warps)
    facts |= {"who": who, "signals": agree(who, "signals"), "line": _source(cluster, wrong[0])}
    return reason("missent", wrong[0].row, **facts)


def _array_of(names: list[str]) -> str:
    """The one array that is signalled and never waited for; "" if there are none or several."""
    return names[0].partition("[")[0] if len(names) == 1 else ""


def _signals(
    histories: dict, array: str, reporter: Reporter, but: tuple[str, ...] = ("load",)
) -> dict[int, int]:
    """Warp -> a row at which it signals an element of this array, by other means than these."""
    mine = of_array(histories, array, reporter.shared_array)
    return {warp: row for h in mine for how, warp, row in h.sources if how not in but}


def _lines(cluster: Cluster, histories: dict, array: str, reporter: Reporter) -> list[BarrierLine]:
    """The waits for elements of this array, past and present, grouped by line."""
    rows: list[tuple[int, int]] = []  # (row, warp)
    for history in of_array(histories, array, reporter.shared_array):
        rows += [(row, warp) for warp, waits in history.waits.items() for row in waits.rows]
    for warp, row, place in held_waits(cluster):
        if reporter.shared_array(place[1]) == array:
            rows.append((row, warp))
    lines: dict[str, BarrierLine] = {}
    for row, warp in sorted(rows):
        lines.setdefault(phrases.source_line(cluster.program, row), BarrierLine(row, set())).warps.add(warp)
    return list(lines.values())


def _signal_lines(cluster: Cluster, histories: dict, array: str, reporter: Reporter) -> list[BarrierLine]:
    """The arrivals on elements of this array and the commits to them, grouped by line."""
    lines: dict[str, BarrierLine] = {}
    for history in of_array(histories, array, reporter.shared_array):
        for (_, warp, row), signals in history.arrivals.items():
            line = lines.setdefault(phrases.source_line(cluster.program, row), BarrierLine(row, set()))
            line.warps.add(warp)
            line.announces |= signals.announces
    return list(lines.values())


def _counts_all(cluster: Cluster, histories: dict, array: str, reporter: Reporter) -> bool:
    """Whether init counts every thread at every line that signals: none of them is one too many."""
    for history in of_array(histories, array, reporter.shared_array):
        lanes: dict[tuple[int, str], int] = {}
        for (_, warp, row), signals in history.arrivals.items():
            at = warp, phrases.source_line(cluster.program, row)
            lanes[at] = lanes.get(at, 0) | signals.lanes
        if lanes and history.count != sum(mask.bit_count() for mask in lanes.values()):
            return False
    return True


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


def _by_text(cluster: Cluster, reporter: Reporter) -> set[str]:
    """Barrier arrays that some instruction of the program signals, even if it has not run yet."""
    return {reporter.shared_array(at) for offsets in signal_rows(cluster.launch).values() for at in offsets}


def _is_loaded_to(histories: dict, array: str, reporter: Reporter) -> bool:
    return any(history.loaders for history in of_array(histories, array, reporter.shared_array))


def _told(
    cluster: Cluster, array: str, ignored: str, signals: dict[int, int], wrong: list[BarrierLine]
) -> Reason:
    facts = {"ignored": ignored + _by(cluster, signals), "name": array}
    if len(wrong) == 1:
        who = _who(cluster, wrong[0].warps)
        facts |= {"who": who, "waits": agree(who, "waits")}
        return reason("misnamed", wrong[0].row, line=_source(cluster, wrong[0]), **facts)
    return reason("one-misnamed", both=" and ".join(_at(cluster, line) for line in wrong), **facts)


def _source(cluster: Cluster, line: BarrierLine) -> str:
    return phrases.source_line(cluster.program, line.row)


def _at(cluster: Cluster, line: BarrierLine) -> str:
    """A role and its line: `WG0 (line 12)`."""
    return f"{_who(cluster, line.warps)} ({_source(cluster, line)})"


def _by(cluster: Cluster, signals: dict[int, int]) -> str:
    """`, which WG0 signals (line 12)`; "" if nobody has signalled it."""
    if not signals:
        return ""
    row = signals[min(signals)]
    who = _who(cluster, {warp for warp, other in signals.items() if other == row})
    return f", which {who} {agree(who, 'signals')} ({phrases.source_line(cluster.program, row)})"


def _who(cluster: Cluster, warps: set[int]) -> str:
    """The role of these warps within one CTA: the lowest CTA that has any of them."""
    return role(cluster, of_first_cta(cluster, dict.fromkeys(warps, WHOLE_WARP)))
