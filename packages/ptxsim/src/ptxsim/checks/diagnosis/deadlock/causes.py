"""The likely cause of a standstill: what is wrong with the first wait that no other wait explains.

Each detector looks at one group that waits and says what is wrong with what it waits for, or nothing. The
first detector of CAUSES that answers for any group gives the cause.
"""

from __future__ import annotations

from dataclasses import replace

from ptxsim.checks.diagnosis.deadlock.cause import Cause, barrier_of, find_cycle, itself, says
from ptxsim.checks.diagnosis.deadlock.parity import flipped_early, not_flipped
from ptxsim.checks.diagnosis.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.diagnosis.grammar import agree, is_plural
from ptxsim.checks.diagnosis.running_ahead import why
from ptxsim.machine.endless import loop_around, loop_without_end

_COUNT_HINT = (
    "init(count) is the number of arrivals per round: all threads that arrive, of both CTAs, or 1 per commit"
)
_BYTES_HINT = "the bytes given to arrive are the sum of all copies that signal this barrier in a phase"
_LOOP_HINT = (
    "both sides of a barrier must run the same number of rounds: compare their loops over K and over tiles "
    "(each role needs its own next_tile())"
)
_ONCE_HINT = (
    "one signal lets one wait pass: look at the phase of this wait, and whether it stands here once too often"
)
_ENDLESS_HINT = (
    "nothing in the loop changes what its condition reads: a loop over tiles ends with next_tile(), "
    "in every role"
)
_SILENT_HINT = "the arrive, commit or load for it is missing, or under a condition that no thread meets"
_ROUTE_HINT = "look at the slot index, at cta_id, and at cta_mask (one bit per CTA that is to hear it)"
_START_HINT = "one side must start: PipelineState.init(is_producer=True) lets the first wait pass"
_ORDER_HINT = "both sides must go through stages and phases in the same order, from the same start"
_SELF_HINT = "who signals a barrier and waits for it signals first: look at their order, then at the phase"
_SYNC_HINT = "every thread of the CTA (every CTA of the cluster) must come to the same sync: none may skip it"
_REMOTE_HINT = (
    "mbar=bar.remote_view(0).ptr_to([stage]) for the loads of both CTAs: one barrier counts all bytes"
)
_WARP_HINT = "all lanes named by the instruction must come to it: no divergent guard around it"
_REGISTER_HINT = (
    "setmaxnreg: who needs few registers runs dec first; the counts of all {threads} threads are together "
    "no more than the CTA has at launch (65536 at most)"
)
_GROUP_HINT = "all four warps of a warpgroup execute every wgmma: no condition on the warp or lane around it"
_ALLOC_HINT = "one warp of the CTA allocates, once: warp_id counts within a warpgroup, so name wg_id too"
_PAIR_HINT = (
    "with cta_group 2 one warp of each CTA of the pair executes alloc: no condition on the CTA around it"
)


def find_cause(model: Model) -> Cause:
    """The first answer of the detectors; the first wait itself where none has one."""
    for detect in CAUSES:
        for waiter in model.waiters:
            cause = detect(model, waiter)
            if cause is not None:
                return (
                    cause if cause.name else replace(cause, name=detect.__name__.strip("_").replace("_", " "))
                )
    waiter = next((w for w in model.waiters if w.kind != "poll"), model.waiters[0])
    return Cause(f"{says(waiter, 'waits')} for {waiter.wants} forever", "", waiter)


# ---- detectors ----


def _no_init(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "mbarrier" or waiter.place in model.cluster.mbarriers:
        return None
    return Cause(f"{model.name(waiter.place)} is waited on and was never initialised", "", waiter)


def _collective(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "collective":
        return None
    others = ", ".join(h.state for h in waiter.helpers) or "have ended"
    return Cause(f"{says(waiter, 'waits')} for {waiter.wants}, which {others}", _WARP_HINT, waiter)


def _alloc(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "tmem-alloc":
        return None
    return Cause(
        f"{says(waiter, 'waits')} for {waiter.wants}: all are allocated, nobody frees them",
        _ALLOC_HINT,
        waiter,
    )


def _pair(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "tmem-pair":
        return None
    return Cause(f"{says(waiter, 'waits')} in {waiter.detail['what']} for {waiter.wants}", _PAIR_HINT, waiter)


def _registers(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "registers":
        return None
    now, free, threads = (waiter.detail[name] for name in ("now", "free", "threads"))
    text = (
        f"{says(waiter, 'waits')} for {waiter.wants}: its warps have {now} a thread, and the pool of the CTA "
        f"{free} of the {32 * (waiter.detail['count'] - now)} that a warp asks for"
    )
    return Cause(text, _REGISTER_HINT.format(threads=threads), waiter)


def _warpgroup(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "wgmma":
        return None
    lanes = dict.fromkeys(model.absent_warps(waiter), 0xFFFF_FFFF)
    others = ", ".join(dict.fromkeys(h.state for h in waiter.helpers)) or "has ended"
    absent = model.role(waiter.cta, lanes)
    return Cause(
        f"{says(waiter, 'waits')} for a wgmma that {absent} never {agree(absent, 'issues')} ({others})",
        _GROUP_HINT,
        waiter,
    )


def _bytes(model: Model, waiter: Waiter) -> Cause | None:
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or barrier.pending or not barrier.tx or loads_to_come(model, waiter.place):
        return None
    text = (
        f"{model.name(waiter.place)} expects {barrier.announced} B in phase {barrier.phase} and gets "
        f"{barrier.delivered} B: it never completes"
    )
    return Cause(text, _BYTES_HINT, waiter)


def loads_to_come(model: Model, place: tuple[int, int]) -> bool:
    """Whether a group that stands still would, once it goes on, load to a barrier that misses bytes."""
    barrier, history = model.cluster.mbarriers[place], model.histories.get(place)
    if barrier.tx < 0 or history is None:
        return False
    now = {
        warp for (how, warp, _), s in history.sources.items() if how == "load" and s.phase == barrier.phase
    }
    rows = {r for r in model.rows_for(place) if model.program.instrs[r].op == "cp"}
    return any(rows & model.reach(w) and not now & set(w.lanes) for w in model.waiters)


def _own_barrier(model: Model, waiter: Waiter) -> Cause | None:
    """Bytes are missing here, and came to the same barrier of another CTA, where nobody expects them."""
    barrier, history = barrier_of(model, waiter)
    if history is None or barrier.tx <= 0 and barrier.pending < barrier.expected:
        return None
    for place, other in model.histories.items():
        loads = [row for how, _, row in other.sources if how == "load"]
        late = model.cluster.mbarriers[place].tx < 0
        if place[1] == waiter.place[1] and place[0] != waiter.place[0] and loads and late and not other.waits:
            line, name = model.program.instrs[loads[0]].src, model.reporter.shared_name(place[1])
            text = (
                f"the loads of CTA {place[0]} (line {line}) report to its own {name}, where nobody waits; "
                f"CTA {waiter.place[0]} waits for them at the {name} of CTA {waiter.place[0]}"
            )
            return Cause(text, _REMOTE_HINT, waiter)
    return None


def _ahead(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or barrier.phase < 2 or history.seen >= barrier.phase - 2:
        return None
    reason = why(model.cluster, model.histories, waiter.place, model.reporter)
    text = (
        f"{model.name(waiter.place)} completed phases {history.seen + 1} to {barrier.phase - 1} before "
        f"the wait for phase {barrier.phase - 2} saw it: {reason.text}"
    )
    return Cause(text, reason.hint, waiter, reason.cause)


def _bytes_only(model: Model, waiter: Waiter) -> Cause | None:
    barrier, _ = barrier_of(model, waiter)
    if barrier is None or barrier.pending != barrier.expected or barrier.tx >= 0:
        return None
    if any(not h.done for h in waiter.helpers if "loads" not in h.what and "would" not in h.what):
        return None
    text = (
        f"{model.name(waiter.place)}: TMA has delivered {-barrier.tx} B, but nobody has arrived "
        f"(0/{barrier.expected}) to expect them"
    )
    return Cause(
        text, "after issuing the copies, the same thread executes arrive(bytes) once per phase", waiter
    )


def _partial(model: Model, waiter: Waiter) -> Cause | None:
    """Some arrivals came, and everybody who could arrive has done so."""
    barrier, history = barrier_of(model, waiter)
    if history is None or not 0 < barrier.pending < barrier.expected:
        return None
    arrived = {w for (how, w, _), s in history.sources.items() if how != "load" and s.phase == barrier.phase}
    rows = {r for r in model.rows_for(waiter.place) if model.program.instrs[r].op != "cp"}
    late = [
        w for w in model.waiters if w is not waiter and rows & model.reach(w) and not arrived & set(w.lanes)
    ]
    known = {w for (how, w, _) in history.sources if how != "load"}
    if any(known & set(w.lanes) for w in late):
        return None
    count = barrier.expected - barrier.pending
    text = (
        f"{model.name(waiter.place)} never completes phase {barrier.phase}: only {count} of "
        f"{barrier.expected} arrivals came ({_arrived(model, waiter, history)}), and every thread that "
        f"signals it has already done so"
    )
    elsewhere = _elsewhere(model, waiter)
    if elsewhere:
        text += f" (others went to {elsewhere})"
    return Cause(text, _COUNT_HINT, waiter)


def _arrived(model: Model, waiter: Waiter, history) -> str:
    """Who has arrived in the present phase, and where: `WG0 warp 0, line 1020`."""
    phase, lanes, lines = model.cluster.mbarriers[waiter.place].phase, {}, set()
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
    """Barriers that the lines meant for this one signal in its place."""
    rank, offset = waiter.place
    rows, found = model.rows_for(waiter.place), []
    for place, history in model.histories.items():
        if place == waiter.place or not any(row in rows for _, _, row in history.sources):
            continue
        if (
            place[1] == offset
            and place[0] != rank
            or model.array(place[1]) != model.array(offset)
            or place[0] == rank
            and model.cluster.mbarriers[place].phase - 2 > history.seen
        ):
            found.append(place)
    return ", ".join(model.name(p) for p in found)


def _misrouted(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or any(how != "load" for how, _, _ in history.sources):
        return None
    elsewhere = _elsewhere(model, waiter)
    if not elsewhere:
        return None
    text = f"nobody ever signals {model.name(waiter.place)}; what is meant for it goes to {elsewhere}"
    return Cause(text, _ROUTE_HINT, waiter)


def _endless(model: Model, waiter: Waiter) -> Cause | None:
    """The loop around the wait has no way out, and whoever could end the wait has ended."""
    if waiter.kind != "mbarrier" or not all(h.done or h.waiter is not None for h in waiter.helpers):
        return None
    loop = loop_without_end(model.program, waiter.row)
    if loop is None:
        return None
    lines = sorted({i.src for i in model.program.instrs[loop[0] : loop[1] + 1] if i is not None and i.src})
    where = f"lines {lines[0]} to {lines[-1]}" if lines else waiter.line
    text = (
        f"{says(waiter, 'waits')} for {model.name(waiter.place)} once too often: "
        f"nothing lets {'them' if is_plural(waiter.who) else 'it'} leave the loop at {where}"
    )
    return Cause(text, _ENDLESS_HINT, waiter)


def _silent(model: Model, waiter: Waiter) -> Cause | None:
    """Nobody has signalled the barrier, and nobody who is left can."""
    barrier, history = barrier_of(model, waiter)
    if history is None or history.sources or waiter.helpers:
        return None
    text = (
        f"nobody signals {model.name(waiter.place)}: {says(waiter, 'waits')} for its phase {barrier.phase}, "
        f"0/{barrier.expected} arrived"
    )
    return Cause(text, _SILENT_HINT, waiter)


def _ended(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = barrier_of(model, waiter)
    if history is None or not history.sources or not all(h.done for h in waiter.helpers):
        return None
    rounds, helper = barrier.phase, waiter.helpers[0]
    unit = {"load": "load", "commit": "commit"}.get(helper.how, "round") + "s" * (rounds != 1)
    waits = f"{says(waiter, 'waits')} for phase {rounds} of {model.name(waiter.place)}, but {helper.who}"
    if not any(_in_loop(model, row) for _, _, row in history.sources):
        times = f"{rounds} time{'s' * (rounds != 1)} ({helper.line})"
        text = f"{waits} {agree(helper.who, 'signals')} it only {times}"
        return Cause(text, _ONCE_HINT, waiter)
    text = (
        f"{waits} {agree(helper.who, 'has')} left {agree(helper.who, 'its')} loop after {rounds} {unit} "
        f"({helper.line}) and will not signal again"
    )
    return Cause(text, _LOOP_HINT, waiter)


def _in_loop(model: Model, row: int) -> bool:
    return loop_around(model.program, row, row) != (row, row)


def _sync(model: Model, waiter: Waiter) -> Cause | None:
    """A CTA or cluster barrier in a ring of waits, or one that the missing threads have left behind."""
    if waiter.kind not in ("bar", "cluster"):
        return None
    missing = [h for h in waiter.helpers if h.waiter is not None]
    ring = find_cycle(model, waiter)
    apart = waiter.kind == "bar" and all(h.waiter.kind == "bar" for h in missing)
    if missing and not ring and not apart:
        return None
    others = f"; {missing[0].what} {missing[0].state}" if missing else ""
    return Cause(f"{says(waiter, 'waits')} at {waiter.wants}: {waiter.state}{others}", _SYNC_HINT, waiter)


def _fresh(model: Model, waiter: Waiter) -> Cause | None:
    """A ring of waits for the first phase of barriers that nobody has signalled."""
    ring = find_cycle(model, waiter)
    if len(ring) < 2 or any(w.kind != "mbarrier" or w.place not in model.cluster.mbarriers for w in ring):
        return None
    if any(model.cluster.mbarriers[w.place].phase or w.detail["parity"] for w in ring):
        return None
    text = " and ".join(f"{w.who} for phase 0 of {model.name(w.place)}" for w in ring[:3])
    return Cause(f"nobody starts: {text} wait for each other", _START_HINT, ring[0])


def _ring(model: Model, waiter: Waiter) -> Cause | None:
    ring = find_cycle(model)
    if not ring or waiter is not ring[0]:
        return None
    if len(ring) == 1:
        text = f"{says(waiter, 'waits')} for {waiter.wants}: {itself(waiter)}"
        return Cause(text, _SELF_HINT, waiter)
    text = ", ".join(f"{w.who} for {w.wants}" for w in ring[:4])
    return Cause(f"a ring of waits: {text}; each would be ended by the next", _ORDER_HINT, ring[0])


CAUSES = (
    _no_init,
    _collective,
    _alloc,
    _pair,
    _registers,
    _warpgroup,
    _own_barrier,
    _bytes,
    _misrouted,
    _ahead,
    not_flipped,
    _bytes_only,
    _partial,
    _endless,
    _silent,
    _ended,
    flipped_early,
    _sync,
    _fresh,
    _ring,
)
