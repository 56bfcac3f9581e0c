"""The likely cause of a deadlock: what is wrong with the first wait that no other wait explains.

Each detector looks at one waiting group and says what is wrong with what it waits for, or returns None. The
first detector of DETECTORS that answers for any group gives the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks import phrases
from ptxsim.checks.cta_barriers import cta_barriers
from ptxsim.checks.diagnosis.both_ways import both_ways
from ptxsim.checks.diagnosis.deadlock import roles
from ptxsim.checks.diagnosis.deadlock.cause import barrier_of, find_cycle, itself, of_waiter, says, stuck
from ptxsim.checks.diagnosis.deadlock.collectives import alloc, collective, pair, registers, warpgroup
from ptxsim.checks.diagnosis.deadlock.miscounted import miscounted
from ptxsim.checks.diagnosis.deadlock.missing_arrivals import (
    misrouted,
    partial,
    rows_of_others,
)
from ptxsim.checks.diagnosis.deadlock.missing_bytes import (
    bytes_only,
    late_loaders,
    missing_bytes,
    own_barrier,
    unexpected,
)
from ptxsim.checks.diagnosis.deadlock.parity import arrives_twice, flipped_early, not_flipped
from ptxsim.checks.diagnosis.deadlock.silent import neutral, silent
from ptxsim.checks.diagnosis.deadlock.uses import (
    all_answered,
    awaited_elsewhere,
    out_of_turn,
    own_elsewhere,
    parted,
    wrong_name,
)
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree, is_plural
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.checks.diagnosis.rivals import loads_and_commits, one_slot, shifted
from ptxsim.checks.diagnosis.running_ahead import why
from ptxsim.checks.diagnosis.turns import nobody_waits
from ptxsim.checks.phrases import brings_bytes
from ptxsim.machine.endless import loop_without_end


def find_cause(model: Model) -> Reason:
    """The first answer of a detector; if there is none, the first wait itself."""
    for detect in DETECTORS:
        for waiter in model.waiters:
            if (answer := detect(model, waiter)) is not None:
                return answer
    return stuck("standstill", next((w for w in model.waiters if w.kind != "poll"), model.waiters[0]))


# ---- detectors ----


def _polls(model: Model, waiter: Waiter) -> Reason | None:
    """Threads poll a word that nobody will write any more, or that others would write who wait for them."""
    word, ring = waiter.detail.get("polled"), find_cycle(model, waiter)
    if word is None or waiter.helpers and not ring:
        return None
    mate = next((h for h in waiter.helpers if h.waiter is ring[1]), None) if len(ring) > 1 else None
    why = "no thread is left to write it" if mate is None else f"{mate.what}, but {mate.state}"
    return stuck("polls", waiter, line=model.line(word.row), state=waiter.state, why=why)


def _by_rival(*rivals: Callable) -> Callable:
    """A detector that returns what the first of these rivals finds in the ring that is waited for."""

    def detect(model: Model, waiter: Waiter) -> Reason | None:
        barrier, _ = barrier_of(model, waiter)
        seen = (rival(model.case, waiter.place) for rival in rivals if barrier is not None)
        answer = next((one for one in seen if one is not None), None)
        if answer is None:
            return None
        return of_waiter(answer.cause, f"{says(waiter, 'waits')} for {waiter.wants}: {answer.text}", waiter)

    return detect


def _ahead(model: Model, waiter: Waiter) -> Reason | None:
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or barrier.phase < 2 or history.seen >= barrier.phase - 2:
        return None
    reason = why(model.case, waiter.place)
    text = (
        f"{model.name(waiter.place)} completed phases {history.seen + 1} to {barrier.phase - 1} before "
        f"the wait for phase {barrier.phase - 2} saw it: {reason.text}"
    )
    return of_waiter(reason.cause, text, waiter)


def _ran_ahead(model: Model, waiter: Waiter) -> Reason | None:
    """Who signals this barrier has come more than once in a phase and has ended, and the barriers that answer
    it are waited for by nobody. Whatever else is stuck, waits for this one or has lost a phase, too.
    """
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None:
        return None
    gone = [h for h in waiter.helpers if h.done and h.waiter is None]
    held = {warp for other in model.waiters for warp in other.lanes}
    times: Counter = Counter()  # an unrolled loop signals at many rows
    for (_, warp, _), signals in history.arrivals.items():
        times[warp] += signals.each if warp not in held else 0
    comes = max(times.values(), default=0)
    if not gone or comes <= barrier.phase + 1:
        return None
    names = model.case.never_waited(model.array)
    if not names:
        return None
    cause = CAUSES["ahead-unwaited"]
    text = f"{gone[0].who} has signalled it {comes} times by phase {barrier.phase} and has ended: "
    told = cause.tell(names=" or ".join(names))
    return of_waiter(cause, f"{says(waiter, 'waits')} for {waiter.wants}; {text}{told}", waiter)


def _endless(model: Model, waiter: Waiter) -> Reason | None:
    """The loop around the wait has no way out, and everyone who could end the wait has ended."""
    if waiter.kind != "mbarrier" or not all(h.done or h.waiter is not None for h in waiter.helpers):
        return None
    loop = loop_without_end(model.program, waiter.row)
    if loop is None:
        return None
    where = phrases.source_lines(model.program, *loop) or waiter.line
    them = "them" if is_plural(waiter.who) else "it"
    return stuck("endless-wait", waiter, name=model.name(waiter.place), them=them, where=where)


def _role_ended(model: Model, waiter: Waiter) -> Reason | None:
    """One warp could reach the line that signals this barrier, after its own loads or MMAs, but has ended."""
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or history.sources or waiter.helpers:
        return None
    rows = model.rows_for(waiter.place)
    able = {}  # warp -> (row, lanes) of what it has issued
    for other in model.histories.values():
        for (how, warp, row), signals in other.sources.items():
            ahead = {r for r in rows if not model.in_one_loop(row, r) and _how(model, r) != how}
            if how != "arrive" and ahead & model.guards.reach(row, warp, signals.lanes):
                able[warp] = row, signals.lanes
    if len(able) != 1 or set(able) <= set(waiter.lanes):
        return None
    ((warp, (row, lanes)),) = able.items()
    who = model.role({warp: lanes})
    facts = {"name": model.name(waiter.place), "phase": barrier.phase, "who": who}
    return stuck("role-ended", waiter, line=model.line(min(rows)), other=model.line(row), **facts)


def _how(model: Model, row: int) -> str:
    """How a row signals a barrier: "load", "commit" or "arrive"."""
    instr = model.program.instrs[row]
    return (
        "load" if brings_bytes(instr) or instr.op == "cp" else "commit" if instr.op == "tcgen05" else "arrive"
    )


def _ended(model: Model, waiter: Waiter) -> Reason | None:
    barrier, history = barrier_of(model, waiter)
    if barrier is None or history is None or not history.sources or not all(h.done for h in waiter.helpers):
        return None
    rounds, helper = barrier.phase, waiter.helpers[0]
    if not rounds and barrier.tx:
        return None  # it lacks bytes, not signals
    unit = {"load": "load", "commit": "commit"}.get(helper.how, "round") + "s" * (rounds != 1)
    facts = {"phase": rounds, "name": model.name(waiter.place), "who": helper.who}
    if not any(model.in_one_loop(row, row) for _, _, row in history.sources):
        times = f"{phrases.times(rounds)} ({helper.line})"
        return stuck("ended-once", waiter, signals=agree(helper.who, "signals"), times=times, **facts)
    facts |= {"has": agree(helper.who, "has"), "its": agree(helper.who, "its")}
    return stuck("ended", waiter, rounds=f"{rounds} {unit}", line=helper.line, **facts)


def _sync(model: Model, waiter: Waiter) -> Reason | None:
    """A CTA or cluster barrier in a ring of waits, or one that the missing threads have already passed."""
    if waiter.kind not in ("bar", "cluster"):
        return None
    if roles.bar_of_a_role(model, waiter):
        return stuck("role-sync", waiter, state=waiter.state, line=model.line(waiter.row))
    missing = [h for h in waiter.helpers if h.waiter is not None]
    ring = find_cycle(model, waiter)
    apart = waiter.kind == "bar" and all(h.waiter is not None and h.waiter.kind == "bar" for h in missing)
    if missing and not ring and not apart:
        return None
    others = f"; {missing[0].what} {missing[0].state}" if missing else ""
    return stuck("sync", waiter, state=waiter.state, others=others)


def _no_wait_at_all(model: Model, waiter: Waiter) -> Reason | None:
    """Threads arrive on a barrier for which no wait stands in the program, and phases have been missed."""
    barrier, history = barrier_of(model, waiter)
    names = model.case.never_waited(model.array) if history is not None else []
    if not names or barrier is None or barrier.phase < 2:
        return None
    text = CAUSES["ahead-unwaited"].tell(names=" or ".join(names))
    return of_waiter(CAUSES["ahead-unwaited"], f"{says(waiter, 'waits')} for {waiter.wants}; {text}", waiter)


def _unmet(model: Model, waiter: Waiter) -> Reason | None:
    """A CTA barrier of several groups on which nobody but the waiting one has ever arrived; or they do arrive
    on one at which nobody waits.
    """
    if waiter.kind != "bar" or waiter.detail["expected"] is None:
        return None
    if any(h.waiter is not None and h.waiter.kind != "bar" for h in waiter.helpers):
        return None
    barriers = cta_barriers(model.cluster)
    rows = {row for h in waiter.helpers if h.waiter is not None for row in model.reach(h.waiter)}
    come = barriers[waiter.cta, waiter.detail["number"]].how
    others = {warp for (cta, _), of in barriers.items() if cta == waiter.cta for warp in of.how}
    alone = nobody_waits(model.cluster, waiter.cta, others)
    if alone is not None:
        return of_waiter(alone.cause, f"{says(waiter, 'waits')} at {waiter.wants}; {alone.text}", waiter)
    if come.keys() - waiter.lanes.keys() or not rows:
        return None
    return stuck("unmet", waiter, state=waiter.state)


def _fresh(model: Model, waiter: Waiter) -> Reason | None:
    """A ring of waits for the first phase of barriers, or missing loads or arrivals that wait for such a
    phase.
    """
    late = late_loaders(model, waiter.place) if barrier_of(model, waiter)[0] is not None else []
    late = [w for w in late if w is not waiter]
    ring = [waiter, *late] if late else find_cycle(model, waiter) or _partner(model, waiter)
    if len(ring) < 2 or any(w.kind != "mbarrier" or w.place not in model.cluster.mbarriers for w in ring):
        return None
    if any(model.cluster.mbarriers[w.place].phase or w.detail["parity"] for w in ring):
        return None
    if any(set(w.lanes) & set(model.histories[w.place].waits) for w in ring):
        return None  # it has passed such a wait before
    if len(ring) == 2 and not _fills(model, *ring) and _fills(model, *reversed(ring)):
        ring.reverse()  # who loads or multiplies for the other should start
    text = " and ".join(
        f"{w.who} for phase 0 of {model.name(w.place)} ({model.line(w.row)})" for w in ring[:3]
    )
    return stuck("nobody-starts", ring[0], who=text)


def _partner(model: Model, waiter: Waiter) -> list[Waiter]:
    """This group and one that it should signal, and that could end its wait after that; else nothing."""
    if waiter.kind != "mbarrier" or waiter.place not in model.histories:
        return []
    for other in (w for w in model.waiters if w.kind == "mbarrier" and w is not waiter):
        signals = model.able(other, rows_of_others(model, waiter), waiter.place)
        if signals and model.able(waiter, rows_of_others(model, other), other.place):
            return [waiter, other]
    return []


def _fills(model: Model, one: Waiter, other: Waiter) -> bool:
    """Whether a group's loads or commits would end the wait of another."""
    rows = model.able(one, model.rows_for(other.place), other.place)
    return any(_how(model, row) != "arrive" for row in rows)


def _signals_less(model: Model, waiter: Waiter) -> Reason | None:
    """A group in a ring of waits that has signalled less often than it has waited."""
    ring = find_cycle(model, waiter)
    return roles.signals_less(model, waiter) if len(ring) > 1 else None


def _ring(model: Model, waiter: Waiter) -> Reason | None:
    ring = find_cycle(model)
    if not ring or waiter is not ring[0]:
        return None
    if len(ring) == 1:
        later = roles.role_later(model, waiter, rows_of_others(model, waiter))
        if later is not None:
            return later
        rounds = all_answered(model, waiter)
        if rounds:
            phases = f"{rounds} phase{'s' * (rounds > 1)}"
            more = stuck("more-waits", waiter, rounds=phases, itself=itself(waiter))
            return unexpected(model, waiter) or more
        return own_elsewhere(model, waiter) or stuck("self-wait", waiter, itself=itself(waiter))
    return stuck("ring", ring[0], who=", ".join(f"{w.who} for {w.wants}" for w in ring[:4]))


DETECTORS = (
    _ran_ahead,
    _polls,
    collective,
    alloc,
    pair,
    registers,
    warpgroup,
    own_barrier,
    missing_bytes,
    _by_rival(shifted, one_slot),
    roles.both_multiply,
    wrong_name,
    misrouted,
    _ahead,
    _by_rival(loads_and_commits, both_ways),
    out_of_turn,
    _no_wait_at_all,
    not_flipped,
    arrives_twice,
    bytes_only,
    roles.few,
    neutral,
    partial,
    miscounted,
    _endless,
    _role_ended,
    roles.no_work,
    silent,
    parted,
    flipped_early,
    awaited_elsewhere,
    _ended,
    _fresh,
    _unmet,
    _sync,
    _signals_less,
    _ring,
)
