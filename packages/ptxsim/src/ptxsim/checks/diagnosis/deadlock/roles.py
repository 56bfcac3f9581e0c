"""Deadlocks of warps with roles: a warp that has two, or a CTA-wide barrier that only one role reaches."""

from __future__ import annotations

from ptxsim.checks import phrases
from ptxsim.checks.barrier_history import ring_of, threads_in, times_signalled, times_waited
from ptxsim.checks.diagnosis.deadlock.cause import awaited, barrier_of, stuck
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree
from ptxsim.checks.diagnosis.reason import Reason
from ptxsim.machine.register_files import WHOLE_WARP

_WARPGROUP = 4  # warps


def role_later(model: Model, waiter: Waiter, rows: set[int]) -> Reason | None:
    """The missing arrivals are the waiting threads' own, in a loop after the one that they wait in."""
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or not rows or not model.in_a_loop(waiter.row):
        return None
    own = rows & model.reach(waiter)
    alike = [waiter, *_in_other_roles(model, waiter, own)]
    lanes = threads_in(waiter.lanes)
    whole = 32 * len({warp for other in alike for warp in other.lanes})
    if (
        not own
        or barrier.pending not in (lanes, whole)
        or any(model.in_one_loop(waiter.row, row) for row in own)
    ):
        return None
    came = f"{barrier.expected - barrier.pending} of {barrier.expected} arrivals came"
    others = [other.who for other in alike[1:]] if barrier.pending != lanes else []
    whose = " and ".join(["its own warp's", *(f"those of {who}" for who in others)]) if others else "its own"
    missing = f"the missing {'ones are' if others else 'one is'} {whose}"
    return stuck("role-later", waiter, came=came, missing=missing, line=model.line(min(own)))


def _in_other_roles(model: Model, waiter: Waiter, rows: set[int]) -> list[Waiter]:
    """Warps of the same warpgroup that are held at other barriers, in loops, and reach these rows later."""
    groups = {warp // _WARPGROUP for warp in waiter.lanes}
    return [
        other
        for other in model.waiters
        if other is not waiter
        and other.kind == "mbarrier"
        and rows & model.reach(other)
        and {warp // _WARPGROUP for warp in other.lanes} == groups
        and model.in_a_loop(other.row)
        and not any(model.in_one_loop(other.row, row) for row in rows)
    ]


def bar_of_a_role(model: Model, waiter: Waiter) -> bool:
    """Whether whole warpgroups wait at a barrier of all threads that nobody else will ever reach."""
    if waiter.kind != "bar" or waiter.detail["expected"] is not None or not waiter.helpers:
        return False
    whole = all(mask == WHOLE_WARP for mask in waiter.lanes.values()) and len(waiter.lanes) % _WARPGROUP == 0
    groups = {warp // _WARPGROUP for warp in waiter.lanes}
    others = [h.waiter for h in waiter.helpers if h.waiter is not None]
    alone = all(waiter.row not in model.reach(other) for other in others)
    return whole and len(groups) * _WARPGROUP == len(waiter.lanes) and bool(others) and alone


def few(model: Model, waiter: Waiter) -> Reason | None:
    """A CTA barrier with a thread count, where too few threads wait and nobody else will ever come."""
    if waiter.kind != "bar" or waiter.detail["expected"] is None or waiter.helpers:
        return None
    here = [w for w in model.waiters if w.kind == "bar" and w.wants == waiter.wants and w.cta == waiter.cta]
    if len(here) > 1 or any(mask != WHOLE_WARP for mask in waiter.lanes.values()):
        return None
    lucky = model.reporter.by_identity.get(("collective", ("luck", waiter.detail["number"])))
    if lucky is not None and lucky.where.get("line"):
        line = phrases.lines_text([phrases.line_at(model.program, lucky.where)])
        return stuck("arrived-again", waiter, state=waiter.state, line=line)
    return stuck("few", waiter, state=waiter.state, line=model.line(waiter.row))


def role_twice(model: Model, waiter: Waiter, arrived: set[int]) -> Reason | None:
    """The missing arrivals are those of a warp that also runs the role of a warp of another warpgroup."""
    barrier, _ = barrier_of(model, waiter)
    for other in model.waiters:
        warp, *more = other.lanes
        if more or other.kind != "mbarrier" or warp in arrived or other is waiter:
            continue
        group, cta = warp // _WARPGROUP, warp // model.cluster.warps_per_cta
        there = [w for w in sorted(_at_line(model, other)) if w // model.cluster.warps_per_cta == cta]
        own = next((w for w in there if w // _WARPGROUP != group), None)
        if barrier is None or own is None or not any(w // _WARPGROUP == group for w in arrived):
            continue
        facts = awaited(model, waiter) | {"late": other.who, "line": model.line(other.row)}
        role = model.role({own: WHOLE_WARP})
        return stuck(
            "role-twice", waiter, owner=role, does=agree(other.who, "does not arrive, but waits"), **facts
        )
    return None


def _at_line(model: Model, waiter: Waiter) -> set[int]:
    """Other warps that wait, or have waited, at the line where this group waits."""
    line = model.spot(waiter.row)
    here = {warp for w in model.waiters if model.spot(w.row) == line for warp in w.lanes}
    passed = (item for history in model.histories.values() for item in history.waits.items())
    here |= {warp for warp, waits in passed if any(model.spot(row) == line for row in waits.rows)}
    return here - set(waiter.lanes)


def signals_less(model: Model, waiter: Waiter) -> Reason | None:
    """The group that should end this wait is held at a wait that it passed more often than it signalled."""
    ring = ring_of(model.histories, waiter.place, model.array) if waiter.kind == "mbarrier" else []
    for other in (h.waiter for h in waiter.helpers if h.waiter is not None and h.waiter is not waiter):
        answers = ring_of(model.histories, other.place, model.array) if other.kind == "mbarrier" else []
        if not ring or len(answers) != len(ring) or set(answers) & set(ring):
            continue
        # one warp may signal for the whole group
        alone = [w for w in other.lanes if times_signalled(model.histories, ring, w)]
        loads = {w for p in ring for w in model.histories[p].loaders}
        for warp in alone or other.lanes.keys() - loads:
            waits = [w for p in answers if (w := model.histories[p].waits.get(warp)) is not None]
            times = times_signalled(model.histories, ring, warp)
            passed = times_waited(model.histories, answers, warp)
            if times < passed and not any(w.again for w in waits):
                names = {"array": model.array(waiter.place[1]), "answer": model.array(other.place[1])}
                numbers = {"times": phrases.times(times), "passed": phrases.times(passed)}
                verbs = {"has": agree(other.who, "has"), "goes_on": agree(other.who, "waits")}
                return stuck("signals-less", waiter, who=other.who, **numbers, **names, **verbs)
    return None


def no_work(model: Model, waiter: Waiter) -> Reason | None:
    """The wait is in a cluster after the first, where no barrier is ever signalled: there is no work."""
    _, history = barrier_of(model, waiter)
    if history is None or waiter.helpers or not model.cluster.index or not model.rows_for(waiter.place):
        return None
    others = [w for w in model.waiters if w.kind not in ("bar", "cluster") and w.place != waiter.place]
    if others or any(h.sources for h in model.histories.values()):
        return None
    return stuck("no-work", waiter, name=model.name(waiter.place))


def both_multiply(model: Model, waiter: Waiter) -> Reason | None:
    """The group waits where the peer CTA waits for its own barrier, before MMAs that serve both CTAs."""
    barrier, history = barrier_of(model, waiter)
    if history is None or history.sources or not _has_pair_mma(model, waiter):
        return None
    for (rank, offset), peer in model.histories.items():
        rows = {row for waits in peer.waits.values() for row in waits.rows}
        if offset == waiter.place[1] and rank != waiter.cta and waiter.row in rows and peer.sources:
            return stuck("both-multiply", waiter, name=model.name(waiter.place), mine=waiter.cta, theirs=rank)
    return None


def _has_pair_mma(model: Model, waiter: Waiter) -> bool:
    """Whether MMAs of the pair follow this wait, or are in its loop under a condition that it fails."""
    rows = [
        row for row, i in model.program.by_row.items() if i.mods[:1] == ("mma",) and "cta_group::2" in i.mods
    ]
    reach = model.reach(waiter)
    return any(row in reach or model.in_one_loop(waiter.row, row) for row in rows)
