"""The likely cause of a standstill: what is wrong with the first wait that no other wait explains.

Each detector looks at one group that waits and says what is wrong with what it waits for, or nothing. The
first detector of DETECTORS that answers for any group gives the cause.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.checks import phrases
from ptxsim.checks.diagnosis.deadlock import roles
from ptxsim.checks.diagnosis.deadlock.cause import Blame, barrier_of, blame, find_cycle, itself, says
from ptxsim.checks.diagnosis.deadlock.parity import flipped_early, not_flipped
from ptxsim.checks.diagnosis.deadlock.silent import silent
from ptxsim.checks.diagnosis.deadlock.uses import (
    all_answered,
    out_of_turn,
    own_elsewhere,
    parted,
    strange_commit,
    wrong_name,
)
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.number_agreement import agree, is_plural
from ptxsim.checks.diagnosis.rivals import loads_and_commits, one_slot, shifted
from ptxsim.checks.diagnosis.running_ahead import why
from ptxsim.machine.endless import loop_without_end


def find_cause(model: Model) -> Blame:
    """The first answer of the detectors; the first wait itself where none has one."""
    for detect in DETECTORS:
        for waiter in model.waiters:
            if (answer := detect(model, waiter)) is not None:
                return answer
    return blame("standstill", next((w for w in model.waiters if w.kind != "poll"), model.waiters[0]))


# ---- detectors ----


def _no_init(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "mbarrier" or waiter.place in model.cluster.mbarriers:
        return None
    return blame("no-init", waiter, name=model.name(waiter.place))


def _collective(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "collective":
        return None
    left = model.cluster.alive[next(iter(waiter.lanes))] & model.missing_lanes(waiter)
    alone = agree(model.lanes_wanted(waiter), "does not come there" if left else "has ended")
    others = ", ".join(h.state for h in waiter.helpers) or alone
    elects = model.program.instrs[waiter.row].op == "elect"
    return blame("elect" if elects else "lanes", waiter, others=others)


def _alloc(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "tmem-alloc":
        return None
    return blame("alloc", waiter)


def _pair(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "tmem-pair":
        return None
    return blame("pair", waiter, what=waiter.detail["what"])


def _registers(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "registers":
        return None
    now, free = waiter.detail["now"], waiter.detail["free"]
    return blame("registers", waiter, now=now, free=free, more=32 * (waiter.detail["count"] - now))


def _warpgroup(model: Model, waiter: Waiter) -> Blame | None:
    if waiter.kind != "wgmma":
        return None
    lanes = dict.fromkeys(model.absent_warps(waiter), 0xFFFF_FFFF)
    others = ", ".join(dict.fromkeys(h.state for h in waiter.helpers)) or "has ended"
    absent = model.role(waiter.cta, lanes)
    return blame("warpgroup", waiter, absent=absent, issues=agree(absent, "issues"), others=others)


def _bytes(model: Model, waiter: Waiter) -> Blame | None:
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or barrier.pending or not barrier.tx or loads_to_come(model, waiter.place):
        return None
    facts = {"announced": barrier.announced, "delivered": barrier.delivered, "phase": barrier.phase}
    return blame("bytes", waiter, name=model.name(waiter.place), **facts)


def loads_to_come(model: Model, place: tuple[int, int]) -> bool:
    """Whether a group that stands still would, once it goes on, load to a barrier that misses bytes."""
    return bool(_late_loaders(model, place))


def _late_loaders(model: Model, place: tuple[int, int]) -> list[Waiter]:
    barrier, history = model.cluster.mbarriers[place], model.histories.get(place)
    if barrier.tx < 0 or history is None or _came_elsewhere(model, place):
        return []
    now = {
        warp for (how, warp, _), s in history.sources.items() if how == "load" and s.phase == barrier.phase
    }
    rows = {r for r in model.rows_for(place) if model.program.instrs[r].op == "cp"}
    rows -= {r for r in rows if _for_another(model, place, r)}
    return [w for w in model.waiters if rows & model.reach(w) and not now & set(w.lanes)]


def _came_elsewhere(model: Model, place: tuple[int, int]) -> bool:
    """Whether a barrier of the same CTA got, unannounced, just the bytes that are missing at this one."""
    barriers, missing = model.cluster.mbarriers, model.cluster.mbarriers[place].tx
    return any(p[0] == place[0] and b.has_bytes_of(missing) for p, b in barriers.items())


def _for_another(model: Model, place: tuple[int, int], row: int) -> bool:
    """Whether the copies of a row go to one barrier alone, which is not this one; the text must name it, and
    no array of barriers hold both.
    """
    told = {p[1] for p, h in model.histories.items() if any(r == row for _, _, r in h.sources)}
    named = "[" in model.reporter.shared_name(place[1])
    return not named and len(told) == 1 and told == model.signal_rows[row] and place[1] not in told


def _own_barrier(model: Model, waiter: Waiter) -> Blame | None:
    """Bytes are missing here, and came to the same barrier of another CTA, where nobody expects them."""
    barrier, history = barrier_of(model, waiter)
    if history is None or barrier.tx <= 0 and barrier.pending < barrier.expected:
        return None
    for place, other in model.histories.items():
        loads = [row for how, _, row in other.sources if how == "load"]
        late = model.cluster.mbarriers[place].tx < 0
        if place[1] == waiter.place[1] and place[0] != waiter.place[0] and loads and late and not other.waits:
            line, name = model.program.instrs[loads[0]].src, model.reporter.shared_name(place[1])
            return blame("own-barrier", waiter, theirs=place[0], line=line, name=name, mine=waiter.place[0])
    return None


def _by_rival(*rivals: Callable) -> Callable:
    """A detector: what the first of these sees of the ring that is waited at."""

    def detect(model: Model, waiter: Waiter) -> Blame | None:
        barrier, _ = barrier_of(model, waiter)
        seen = (rival(model.cluster, waiter.place, model.reporter) for rival in rivals if barrier is not None)
        answer = next((one for one in seen if one is not None), None)
        if answer is None:
            return None
        return Blame(answer.cause, f"{says(waiter, 'waits')} for {waiter.wants}: {answer.text}", waiter)

    return detect


def _ahead(model: Model, waiter: Waiter) -> Blame | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or barrier.phase < 2 or history.seen >= barrier.phase - 2:
        return None
    reason = why(model.cluster, model.histories, waiter.place, model.reporter)
    text = (
        f"{model.name(waiter.place)} completed phases {history.seen + 1} to {barrier.phase - 1} before "
        f"the wait for phase {barrier.phase - 2} saw it: {reason.text}"
    )
    return Blame(reason.cause, text, waiter)


def _bytes_only(model: Model, waiter: Waiter) -> Blame | None:
    if any(not h.done for h in waiter.helpers if "loads" not in h.what and "would" not in h.what):
        return None
    return _unexpected(model, waiter)


def _unexpected(model: Model, waiter: Waiter) -> Blame | None:
    """Bytes came in a phase in which nobody has arrived."""
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or barrier.pending != barrier.expected or barrier.tx >= 0:
        return None
    name = model.name(waiter.place)
    return blame("bytes-only", waiter, name=name, bytes=-barrier.tx, expected=barrier.expected)


def _partial(model: Model, waiter: Waiter) -> Blame | None:
    """Some arrivals came, and everybody who could arrive has done so."""
    barrier, history = barrier_of(model, waiter)
    if history is None or not 0 < barrier.pending < barrier.expected:
        return None
    arrived = {w for (how, w, _), s in history.sources.items() if how != "load" and s.phase == barrier.phase}
    rows = _rows_of_others(model, waiter)
    late = [
        w for w in model.waiters if w is not waiter and rows & model.reach(w) and not arrived & set(w.lanes)
    ]
    known = {w for (how, w, _) in history.sources if how != "load"}
    if any(known & set(w.lanes) for w in late):
        return None
    if rows & model.reach(waiter) and not arrived & set(waiter.lanes):
        return roles.role_later(model, waiter, rows)
    twice = strange_commit(model, waiter) or roles.role_twice(model, waiter, arrived)
    if twice is not None:
        return twice
    elsewhere = _elsewhere(model, waiter)
    facts = {
        "name": model.name(waiter.place),
        "phase": barrier.phase,
        "count": barrier.expected - barrier.pending,
        "expected": barrier.expected,
        "arrived": _arrived(model, waiter, history),
    }
    if elsewhere:
        return blame("partial-apart", waiter, elsewhere=elsewhere, **facts)
    return blame("partial", waiter, **facts)


def _arrived(model: Model, waiter: Waiter, history) -> str:
    """Who has arrived in the present phase, and where: `WG0 warp 0, line 1020`."""
    phase = model.cluster.mbarriers[waiter.place].phase
    lanes: dict = {}
    lines: set = set()
    for (how, warp, row), signals in history.sources.items():
        if how != "load" and signals.phase == phase:
            lanes[warp] = lanes.get(warp, 0) | signals.lanes
            lines.add(model.program.instrs[row].src or model.program.instrs[row].line)
    if not lanes:
        return "by cp.async"
    first = min(lanes) // model.cluster.warps_per_cta
    mine = {w: mask for w, mask in lanes.items() if w // model.cluster.warps_per_cta == first}
    more = "" if len(mine) == len(lanes) else " and others"
    return f"{model.role(first, mine)}{more}, line {', '.join(map(str, sorted(lines)[:3]))}"


def _elsewhere(model: Model, waiter: Waiter) -> str:
    """Barriers that the lines meant for this one signal in its place; a commit to both comes here, too."""
    rank, offset = waiter.place
    rows, found, own = model.rows_for(waiter.place), [], model.histories[waiter.place].sources
    for place, history in model.histories.items():
        if place == waiter.place or not any(row in rows for _, _, row in history.sources):
            continue
        if (
            place[1] == offset
            and place[0] != rank
            and not all(source in own and source[0] == "commit" for source in history.sources)
            or model.array(place[1]) != model.array(offset)
            or place[0] == rank
            and model.cluster.mbarriers[place].phase - 2 > history.seen
        ):
            found.append(place)
    return ", ".join(model.name(p) for p in found)


def _misrouted(model: Model, waiter: Waiter) -> Blame | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or any(how != "load" for how, _, _ in history.sources):
        return None
    elsewhere = _elsewhere(model, waiter)
    if not elsewhere:
        return None
    return blame("misrouted", waiter, name=model.name(waiter.place), elsewhere=elsewhere)


def _endless(model: Model, waiter: Waiter) -> Blame | None:
    """The loop around the wait has no way out, and whoever could end the wait has ended."""
    if waiter.kind != "mbarrier" or not all(h.done or h.waiter is not None for h in waiter.helpers):
        return None
    loop = loop_without_end(model.program, waiter.row)
    if loop is None:
        return None
    lines = sorted({i.src for i in model.program.instrs[loop[0] : loop[1] + 1] if i is not None and i.src})
    where = f"lines {lines[0]} to {lines[-1]}" if lines else waiter.line
    them = "them" if is_plural(waiter.who) else "it"
    return blame("endless-wait", waiter, name=model.name(waiter.place), them=them, where=where)


def _role_ended(model: Model, waiter: Waiter) -> Blame | None:
    """One warp would come to the line that signals it, after loads or MMAs of its own, and has not."""
    barrier, history = barrier_of(model, waiter)
    if history is None or history.sources or waiter.helpers:
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
    who = model.role(warp // model.cluster.warps_per_cta, {warp: lanes})
    facts = {"name": model.name(waiter.place), "phase": barrier.phase, "who": who}
    return blame("role-ended", waiter, line=model.line(min(rows)), other=model.line(row), **facts)


def _how(model: Model, row: int) -> str:
    """As what a row signals a barrier."""
    return {"cp": "load", "tcgen05": "commit"}.get(model.program.instrs[row].op, "arrive")


def _ended(model: Model, waiter: Waiter) -> Blame | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or not history.sources or not all(h.done for h in waiter.helpers):
        return None
    rounds, helper = barrier.phase, waiter.helpers[0]
    unit = {"load": "load", "commit": "commit"}.get(helper.how, "round") + "s" * (rounds != 1)
    facts = {"phase": rounds, "name": model.name(waiter.place), "who": helper.who}
    if not any(model.in_one_loop(row, row) for _, _, row in history.sources):
        times = f"{phrases.times(rounds)} ({helper.line})"
        return blame("ended-once", waiter, signals=agree(helper.who, "signals"), times=times, **facts)
    facts |= {"has": agree(helper.who, "has"), "its": agree(helper.who, "its")}
    return blame("ended", waiter, rounds=f"{rounds} {unit}", line=helper.line, **facts)


def _sync(model: Model, waiter: Waiter) -> Blame | None:
    """A CTA or cluster barrier in a ring of waits, or one that the missing threads have left behind."""
    if waiter.kind not in ("bar", "cluster"):
        return None
    if roles.bar_of_a_role(model, waiter):
        return blame("role-sync", waiter, state=waiter.state, line=model.line(waiter.row))
    missing = [h for h in waiter.helpers if h.waiter is not None]
    ring = find_cycle(model, waiter)
    apart = waiter.kind == "bar" and all(h.waiter is not None and h.waiter.kind == "bar" for h in missing)
    if missing and not ring and not apart:
        return None
    others = f"; {missing[0].what} {missing[0].state}" if missing else ""
    return blame("sync", waiter, state=waiter.state, others=others)


def _fresh(model: Model, waiter: Waiter) -> Blame | None:
    """A ring of waits for the first phase of barriers; or loads that are missing wait for such a phase."""
    late = _late_loaders(model, waiter.place) if barrier_of(model, waiter)[0] is not None else []
    ring = [waiter, *late] if late else find_cycle(model, waiter)
    if len(ring) < 2 or any(w.kind != "mbarrier" or w.place not in model.cluster.mbarriers for w in ring):
        return None
    if any(model.cluster.mbarriers[w.place].phase or w.detail["parity"] for w in ring):
        return None
    if any(set(w.lanes) & set(model.histories[w.place].waits) for w in ring):
        return None  # it has passed such a wait, and waits again
    text = " and ".join(f"{w.who} for phase 0 of {model.name(w.place)}" for w in ring[:3])
    return blame("nobody-starts", ring[0], who=text)


def _signals_less(model: Model, waiter: Waiter) -> Blame | None:
    """In a ring of waits, one that has signalled less often than it has waited."""
    ring = find_cycle(model, waiter)
    return roles.signals_less(model, waiter) if len(ring) > 1 else None


def _ring(model: Model, waiter: Waiter) -> Blame | None:
    ring = find_cycle(model)
    if not ring or waiter is not ring[0]:
        return None
    if len(ring) == 1:
        later = roles.role_later(model, waiter, _rows_of_others(model, waiter))
        if later is not None:
            return later
        rounds = all_answered(model, waiter)
        if rounds:
            phases = f"{rounds} phase{'s' * (rounds > 1)}"
            more = blame("more-waits", waiter, rounds=phases, itself=itself(waiter))
            return _unexpected(model, waiter) or more
        return own_elsewhere(model, waiter) or blame("self-wait", waiter, itself=itself(waiter))
    return blame("ring", ring[0], who=", ".join(f"{w.who} for {w.wants}" for w in ring[:4]))


def _rows_of_others(model: Model, waiter: Waiter) -> set[int]:
    """Rows that signal its barrier, but for loads."""
    rows = model.rows_for(waiter.place) if waiter.kind == "mbarrier" else set()
    return {r for r in rows if model.program.instrs[r].op != "cp"}


DETECTORS = (
    _no_init,
    _collective,
    _alloc,
    _pair,
    _registers,
    _warpgroup,
    _own_barrier,
    _bytes,
    _by_rival(shifted, one_slot),
    roles.both_multiply,
    wrong_name,
    _misrouted,
    _ahead,
    _by_rival(loads_and_commits),
    out_of_turn,
    not_flipped,
    _bytes_only,
    roles.few,
    _partial,
    _endless,
    _role_ended,
    roles.no_work,
    silent,
    parted,
    flipped_early,
    _ended,
    _sync,
    _fresh,
    _signals_less,
    _ring,
)
