"""Why a barrier completes phases before those who wait for it see them: what its signallers ignored."""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.checks.barrier_history import BarrierHistory, never_waited, waited_at
from ptxsim.checks.diagnosis.grammar import role

_COUNT = (
    "init(count) is the number of arrivals per round: all threads that arrive, of both CTAs, or 1 per commit"
)
_ROUNDS = "the count is right: the loop with the wait must go round as often as the one that signals"
_IGNORED = "who signals a barrier round after round waits, in each round, for the one that answers it"
_ONCE = "each wait is answered by one arrival of each thread: does the arrive stand in a loop of its own?"
_SLOT = "signal and wait for the same slot: the pipeline's stage, or the consumer's number, on both sides"
_AGAIN = "move on to the next phase after each wait (move_to_next_stage, or phase ^ 1), and start it once"
_ISSUERS = (
    "elect one thread of one warp: a test of warp_id around the elected thread keeps the other warps out"
)
_BOTH = (
    "a barrier that init(1) counts for the whole cluster is arrived on by one of its CTAs: put the arrive "
    "under a condition on the CTA's rank, as in `if cbx == 0:`, or count both in init"
)


@dataclass(frozen=True)
class Reason:
    text: str
    hint: str
    cause: str
    row: int | None = None  # of the program, where the reason has a line of its own


def why(cluster, histories: dict, place: tuple[int, int], reporter) -> Reason:
    """The first that applies: barriers without a wait, waits that let a phase pass again, many issuers."""
    history, name_of = histories[place], reporter.shared_name
    ignored = never_waited(cluster, histories, name_of)
    if ignored:
        return Reason(f"nobody ever waits for {' or '.join(ignored)}", _IGNORED, "ahead")
    reason = _slots(cluster, histories, place, reporter) or _again(cluster, histories, history, reporter)
    reason = reason or _too_often(cluster, histories, history, reporter)
    reason = reason or _unsignalled(cluster, histories, place, reporter)
    return reason or _issuers(cluster, place, history, reporter) or _count(history)


def _slots(cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of an array that are signalled and that no wait ever names."""
    arrays = {}
    for p in histories:
        if p[0] == place[0]:
            arrays.setdefault(reporter.shared_name(p[1]).partition("[")[0], p)
    for first in arrays.values():
        missed, awaited = waited_at(histories, cluster, first, reporter.shared_name)
        passed = sum(w.count for p in awaited for w in histories[p].waits.values())
        if not missed or passed < len(missed) + len(awaited):  # it may still come to them
            continue
        names = [reporter.shared_name(p[1]) for p in missed[:3]]
        others = [reporter.shared_name(p[1]) for p in awaited[:3]]
        rows = {row for p in awaited for w in histories[p].waits.values() for row in w.rows}
        row = min(rows, default=None)
        at = f" (line {cluster.program.instrs[row].src})" if row is not None else ""
        text = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} signalled, but only "
        return Reason(text + f"{' and '.join(others)} waited for{at}", _SLOT, "slot", row)
    return None


def _too_often(cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """Who waits for this barrier answers its signallers more often than it has waited."""
    signallers = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        if other is history or not signallers & set(other.waits):
            continue
        answers: dict[tuple[int, int], list] = {}
        for (how, warp, row), signals in other.sources.items():
            if how == "arrive" and warp in history.waits:
                line = cluster.program.instrs[row].src or row
                times, lanes = answers.get((warp, line), (0, 0))
                each = signals.total // max(1, signals.lanes.bit_count())
                answers[warp, line] = times + each, lanes | signals.lanes
        for (warp, line), (times, lanes) in answers.items():
            waits = history.waits[warp].count
            if times > waits + 1:
                who = role(cluster, warp // cluster.warps_per_cta, {warp: lanes})
                name = reporter.shared_name(place[1])
                text = (
                    f"{who} has arrived {times} times on {name} (line {line}), which lets its signallers go "
                    f"on, and waited {waits} time{'s' * (waits != 1)} for this one"
                )
                return Reason(text, _ONCE, "ahead")
    return None


def _unsignalled(cluster, histories: dict, place: tuple[int, int], reporter) -> Reason | None:
    """Elements of the barrier's own array that are waited for and that nobody signals."""
    _, awaited = waited_at(histories, cluster, place, reporter.shared_name)
    silent = [reporter.shared_name(p[1]) for p in awaited if not histories[p].sources]
    row = next((row for how, _, row in histories[place].sources if how != "load"), None)
    if not silent or row is None or histories[place].seen < 0:
        return None
    line = cluster.program.instrs[row].src
    verb = "is" if len(silent) == 1 else "are"
    text = f"{' and '.join(silent[:3])} {verb} waited for, but line {line} signals only "
    array = [p for p in histories if p in awaited and histories[p].sources]
    return Reason(text + " and ".join(reporter.shared_name(p[1]) for p in array[:3]), _SLOT, "slot", row)


def _again(cluster, histories: dict, history: BarrierHistory, reporter) -> Reason | None:
    """A wait of a warp that signals the barrier let a phase pass a second time."""
    warps = {warp for _, warp, _ in history.sources}
    for place, other in histories.items():
        for warp in warps & set(other.waits):
            if other is not history and other.waits[warp].again is not None:
                phase, row = other.waits[warp].again
                which = f"phase {phase}" if phase >= 0 else "the phase before the first"
                line = cluster.program.instrs[row].src
                name = f"{reporter.shared_name(place[1])}{f' (line {line})' if line else ''}"
                text = f"the wait for {name} by who signals it let {which} pass a second time"
                return Reason(text, _AGAIN, "stale", row)
    return None


def _issuers(cluster, place, history: BarrierHistory, reporter) -> Reason | None:
    """More threads signal it by one line than it counts arrivals."""
    by_line: dict[tuple[str, int], dict[int, int]] = {}
    for (how, warp, row), signals in history.sources.items():
        if how != "load":
            key = how, cluster.program.instrs[row].src or row
            lanes = by_line.setdefault(key, {})
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
    for (how, line), lanes in by_line.items():
        threads = sum(mask.bit_count() for mask in lanes.values())
        both = from_several_ctas(cluster, history)
        if threads > history.count and both is not None and how == "arrive":
            return both
        if threads > history.count:
            who = role(cluster, next(iter(lanes)) // cluster.warps_per_cta, lanes)
            verb = "commit to" if how == "commit" else "arrive on"
            text = f"{threads} threads ({who}) {verb} it at line {line}, but it has init({history.count})"
            return Reason(text, _ISSUERS if how == "commit" else _COUNT, "arrivals")
    return None


def from_several_ctas(cluster, history: BarrierHistory) -> Reason | None:
    """One line by which several CTAs of the cluster arrive on a barrier that counts fewer arrivals."""
    ranks: dict[int, set[int]] = {}
    rows: dict[int, int] = {}
    for how, warp, row in history.sources:
        if how == "arrive":
            line = cluster.program.instrs[row].src or row
            ranks.setdefault(line, set()).add(warp // cluster.warps_per_cta)
            rows.setdefault(line, row)
    for line, ctas in ranks.items():
        if len(ctas) > max(1, history.count):
            who = " and ".join(f"CTA {rank}" for rank in sorted(ctas))
            text = f"{who} arrive on it at line {line}, but it has init({history.count})"
            return Reason(text, _BOTH, "arrivals", rows[line])
    return None


def _count(history: BarrierHistory) -> Reason:
    """Too many arrivals for its count; where every signaller arrives once a phase, too few waits."""
    arrivals = sum(s.total for s in history.sources.values())
    threads = sum(s.lanes.bit_count() for s in history.sources.values())
    waits = max((w.count for w in history.waits.values()), default=0)
    rounds, left = divmod(arrivals, max(threads, 1))
    if threads == history.count and not left and waits < rounds:
        each = "its signaller arrives" if threads == 1 else f"each of its {threads} signallers arrives"
        text = f"{each} {rounds} times, as init({history.count}) wants it, and is waited for {waits} times"
        return Reason(text, _ROUNDS, "ahead")
    text = f"{arrivals} arrivals came, and init({history.count}) makes {history.count} of them a phase"
    return Reason(text, _COUNT, "ahead")
