"""A group has lost a phase because those who signal it went on without it: the barrier that should have held
them was over too soon, or is another one, or is never waited for.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.diagnosis.deadlock.cause import of_waiter, says, stuck
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.diagnosis.running_ahead import passed_again
from ptxsim.checks.phrases import times
from ptxsim.events.records import Place


def went_on(model: Model, waiter: Waiter) -> Reason | None:
    """Why those who signal the barrier of this group came again before it had seen the phase."""
    detectors = _unwaited, _fresh, _again, _over_without
    return next((found for detect in detectors if (found := detect(model, waiter)) is not None), None)


def _fresh(model: Model, waiter: Waiter) -> Reason | None:
    """Its signallers passed their first wait for what this group brings at once; or both sides began so."""
    own = model.histories[waiter.place]
    waits = [own.waits[warp] for warp in waiter.lanes if warp in own.waits]
    began = any(of.fresh is not None for of in waits) if waits else bool(waiter.detail["parity"])
    for place in model.case.answers(waiter.place):
        history = model.histories[place]
        brought = waiter.lanes.keys() & history.loaders or _signals(model, waiter, place)
        for warp in own.signallers & history.waits.keys() if brought and (began or history.loaders) else ():
            row = history.waits[warp].fresh
            if row is not None:
                cause, line = CAUSES["fresh"], f" ({model.line(row)})"
                told = cause.tell(name=model.name(place), line=line)
                return of_waiter(cause, f"{says(waiter, 'waits')} for {waiter.wants}: {told}", waiter)
    return None


def _again(model: Model, waiter: Waiter) -> Reason | None:
    """This group, or one that signals its barrier, has passed twice on one phase of a barrier."""
    found = passed_again(model.case, waiter.place, waiter.lanes.keys())
    if found is None:
        return None
    return of_waiter(found.cause, f"{says(waiter, 'waits')} for {waiter.wants}: {found.text}", waiter)


def _unwaited(model: Model, waiter: Waiter) -> Reason | None:
    """No wait stands in the program for what this group signals."""
    names = model.case.never_waited(model.array)
    if not names:
        return None
    cause = CAUSES["ahead-unwaited"]
    text = f"{says(waiter, 'waits')} for {waiter.wants}; {cause.tell(names=' or '.join(names))}"
    return of_waiter(cause, text, waiter)


def _signals(model: Model, waiter: Waiter, place: Place) -> bool:
    """Whether this group has signalled a barrier, or may still do so."""
    came = bool(model.histories[place].signallers & waiter.lanes.keys())
    return came or bool(model.able(waiter, model.rows_for(place), place))


def _over_without(model: Model, waiter: Waiter) -> Reason | None:
    """They wait for a barrier on which this group would arrive, too, and whose phase others have ended."""
    for place in model.case.answers(waiter.place):
        history, barrier = model.histories[place], model.cluster.mbarriers.last(place)
        gone = [w for w in model.histories[waiter.place].signallers if w in history.waits]
        if not gone or not barrier.phase or not model.able(waiter, model.rows_for(place), place):
            continue
        own = sum(s.total for (_, warp, _), s in history.arrivals.items() if warp in waiter.lanes)
        others = {w: s for (_, w, _), s in history.arrivals.items() if w not in waiter.lanes}
        if own or not others or history.loaders:
            continue
        return _told(model, waiter, place, gone[0])
    return None


def _told(model: Model, waiter: Waiter, place: Place, gone: int) -> Reason:
    history = model.histories[place]
    lanes = {w: mask for w, mask in history.arriving().items() if w not in waiter.lanes}
    lines = sorted({row for _, warp, row in history.arrivals if warp in lanes})
    total = sum(s.total for (_, warp, _), s in history.arrivals.items() if warp in lanes)
    facts = {"back": model.name(place), "count": history.count, "init": model.line(history.row)}
    facts |= {
        "line": model.line(min(history.waits[gone].rows)),
        "who": model.role(lanes),
        "times": times(total),
    }
    return stuck("over-without", waiter, own=waiter.who, at=model.line(lines[0]), **facts)
