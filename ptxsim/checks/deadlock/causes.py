"""The likely cause of a standstill: what is wrong with the first wait that no other wait explains.

Each detector looks at one group that waits and says what is wrong with what it waits for, or nothing. The
first detector of CAUSES that answers for any group gives the cause.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.checks.barrier_history import never_waited
from ptxsim.checks.deadlock.wait_graph import Model, Waiter
from ptxsim.checks.grammar import agree
from ptxsim.machine.split import lane_list

_COUNT_HINT = (
    "init(count) is the number of arrivals per round: all threads that arrive, of both CTAs, or 1 per commit"
)
_BYTES_HINT = "the bytes given to arrive are the sum of all copies that signal this barrier in a phase"
_FLIP_HINT = "flip the phase after each wait, keep it from tile to tile, and start it once"
_WRAP_HINT = "a phase that all stages share flips when the stage wraps to 0, not from stage to stage"
_LOOP_HINT = (
    "both sides of a barrier must run the same number of rounds: compare their loops over K and over tiles"
)
_IGNORED_HINT = "who signals a barrier round after round waits, in each round, for the one that answers it"
_SILENT_HINT = "the arrive, commit or load for it is missing, or under a condition that no thread meets"
_ROUTE_HINT = "look at the slot index, at cta_id, and at cta_mask (one bit per CTA that is to hear it)"
_START_HINT = "one side must start: PipelineState.init(is_producer=True) lets the first wait pass"
_ORDER_HINT = "both sides must go through stages and phases in the same order, from the same start"
_SELF_HINT = "who signals a barrier and waits for it signals first: look at their order, then at the phase"
_SYNC_HINT = "every thread of the CTA (every CTA of the cluster) must come to the same sync: none may skip it"
_WARP_HINT = "all lanes named by the instruction must come to it: no divergent guard around it"
_GROUP_HINT = "all four warps of a warpgroup execute every wgmma: no condition on the warp or lane around it"
_ALLOC_HINT = "one warp of the CTA allocates, once: warp_id counts within a warpgroup, so name wg_id too"
_PAIR_HINT = (
    "with cta_group 2 one warp of each CTA of the pair executes alloc: no condition on the CTA around it"
)


@dataclass(frozen=True)
class Cause:
    sentence: str
    hint: str
    waiter: Waiter


def find_cause(model: Model) -> Cause:
    """The first answer of the detectors; the first wait itself where none has one."""
    for detect in CAUSES:
        for waiter in model.waiters:
            cause = detect(model, waiter)
            if cause is not None:
                return cause
    waiter = next((w for w in model.waiters if w.kind != "poll"), model.waiters[0])
    return Cause(f"{_says(waiter, 'waits')} for {waiter.wants} for ever", "", waiter)


def find_cycle(model: Model, start: Waiter | None = None) -> list[Waiter]:
    """Groups that wait for each other in a ring, the shortest; empty if there is none."""
    best: list[Waiter] = []
    for first in [start] if start else model.waiters:
        paths = [[first]]
        seen = {id(first)}
        while paths:
            path = paths.pop(0)
            for helper in path[-1].helpers:
                if helper.waiter is first and (not best or len(path) < len(best)):
                    best = path
                if helper.waiter is not None and id(helper.waiter) not in seen:
                    seen.add(id(helper.waiter))
                    paths.append([*path, helper.waiter])
    return best


# ---- detectors ----


def _says(waiter: Waiter, verb: str) -> str:
    """`warp 0 waits`, `warps 1-3 wait`."""
    return f"{waiter.who} {agree(waiter.who, verb)}"


def _barrier(model: Model, waiter: Waiter):
    """(barrier, history) of a wait on an initialised mbarrier, else (None, None)."""
    if waiter.kind != "mbarrier" or waiter.place not in model.cluster.mbarriers:
        return None, None
    return model.cluster.mbarriers[waiter.place], model.histories.get(waiter.place)


def _no_init(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "mbarrier" or waiter.place in model.cluster.mbarriers:
        return None
    return Cause(f"{model.name(waiter.place)} is waited on and was never initialised", "", waiter)


def _collective(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "collective":
        return None
    others = ", ".join(h.state for h in waiter.helpers) or "have ended"
    return Cause(f"{_says(waiter, 'waits')} for {waiter.wants}, which {others}", _WARP_HINT, waiter)


def _alloc(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "tmem-alloc":
        return None
    return Cause(
        f"{_says(waiter, 'waits')} for {waiter.wants}: all are allocated, nobody frees them",
        _ALLOC_HINT,
        waiter,
    )


def _pair(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "tmem-pair":
        return None
    return Cause(
        f"{_says(waiter, 'waits')} in {waiter.detail['what']} for {waiter.wants}", _PAIR_HINT, waiter
    )


def _warpgroup(model: Model, waiter: Waiter) -> Cause | None:
    if waiter.kind != "wgmma":
        return None
    lanes = dict.fromkeys(model.absent_warps(waiter), 0xFFFF_FFFF)
    others = ", ".join(dict.fromkeys(h.state for h in waiter.helpers)) or "has ended"
    absent = model.role(waiter.cta, lanes)
    return Cause(
        f"{_says(waiter, 'waits')} for a wgmma that {absent} never {agree(absent, 'issues')} ({others})",
        _GROUP_HINT,
        waiter,
    )


def _bytes(model: Model, waiter: Waiter) -> Cause | None:
    barrier, _ = _barrier(model, waiter)
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


def _ahead(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = _barrier(model, waiter)
    if history is None or barrier.phase < 2 or history.seen >= barrier.phase - 2:
        return None
    text = (
        f"{model.name(waiter.place)} completed phases {history.seen + 1} to {barrier.phase - 1} before "
        "the wait "
        f"for phase {barrier.phase - 2} saw it: "
    )
    ignored = never_waited(model.cluster, model.histories, model.reporter.shared_name)
    if ignored:
        text += f"who signals it runs ahead, as nobody ever waits for {' or '.join(ignored)}"
        return Cause(text, _IGNORED_HINT, waiter)
    text += f"it gets more than init({barrier.expected}) arrivals per round"
    return Cause(text, _COUNT_HINT, waiter)


def _not_flipped(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = _barrier(model, waiter)
    if history is None:
        return None
    warp, mask = next(iter(waiter.lanes.items()))
    thread = warp * 32 + (mask & -mask).bit_length() - 1
    seen, asked = history.threads.get(thread, -1), waiter.detail["parity"]
    if seen < 0 or seen & 1 != asked or barrier.phase <= seen + 1:
        return None
    text = (
        f"{_says(waiter, 'asks')} {model.name(waiter.place)} for parity {asked} again: "
        f"{agree(waiter.who, 'it has')} seen phase {seen}, phase {seen + 1} has completed too, "
        f"so this waits for phase {barrier.phase}; the phase was not flipped"
    )
    return Cause(text, _FLIP_HINT, waiter)


def _bytes_only(model: Model, waiter: Waiter) -> Cause | None:
    barrier, _ = _barrier(model, waiter)
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
    barrier, history = _barrier(model, waiter)
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
        f"{model.name(waiter.place)} never completes phase {barrier.phase}: init({barrier.expected}), but "
        f"{count} arrival{'s' * (count != 1)} came, and everybody who signals it has"
    )
    elsewhere = _elsewhere(model, waiter)
    if elsewhere:
        text += f" (others went to {elsewhere})"
    return Cause(text, _COUNT_HINT, waiter)


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
    barrier, history = _barrier(model, waiter)
    if history is None or any(how != "load" for how, _, _ in history.sources):
        return None
    elsewhere = _elsewhere(model, waiter)
    if not elsewhere:
        return None
    text = f"nobody ever signals {model.name(waiter.place)}; what is meant for it goes to {elsewhere}"
    return Cause(text, _ROUTE_HINT, waiter)


def _silent(model: Model, waiter: Waiter) -> Cause | None:
    """Nobody has signalled the barrier, and nobody who is left can."""
    barrier, history = _barrier(model, waiter)
    if history is None or history.sources or waiter.helpers:
        return None
    text = (
        f"nobody signals {model.name(waiter.place)}: {_says(waiter, 'waits')} for its phase {barrier.phase}, "
        f"0/{barrier.expected} arrived"
    )
    return Cause(text, _SILENT_HINT, waiter)


def _ended(model: Model, waiter: Waiter) -> Cause | None:
    barrier, history = _barrier(model, waiter)
    if history is None or not history.sources or not all(h.done for h in waiter.helpers):
        return None
    rounds = barrier.phase
    who = waiter.helpers[0].what.split(" (")[0]
    text = (
        f"{_says(waiter, 'waits')} for phase {rounds} of {model.name(waiter.place)}, but {who} no more: "
        f"{agree(who, 'it has')} done so for {rounds} round{'s' * (rounds != 1)} and "
        + agree(who, "is through with its loop")
    )
    return Cause(text, _LOOP_HINT, waiter)


_FIRST = (" or began at 1", ", or phase 0 was signalled too early")  # alone; in a ring with others


def _flipped_early(model: Model, waiter: Waiter) -> Cause | None:
    """In a ring, perhaps of itself alone: it waits for the open phase and has never seen the one before."""
    barrier, history = _barrier(model, waiter)
    if history is None or not barrier.phase or waiter.detail["parity"] != barrier.phase & 1:
        return None
    seen, missed = max(history.threads.get(t, -1) for t in _threads(waiter)), barrier.phase - 1
    ring = find_cycle(model, waiter)
    if seen >= missed or not ring or _is_faulty(model, waiter):
        return None
    text = (
        f"{_says(waiter, 'waits')} for phase {barrier.phase} of {model.name(waiter.place)}, but "
        f"{agree(waiter.who, 'has')} never waited for phase {missed}, which is complete: the phase was "
        f"flipped too early{'' if missed else _FIRST[len(ring) > 1]}"
    )
    return Cause(text + (f"; {_itself(waiter)}" if len(ring) == 1 else ""), _WRAP_HINT, waiter)


def _is_faulty(model: Model, waiter: Waiter) -> bool:
    """Is something wrong with the barrier itself (initialised twice), so that its phases tell nothing?"""
    name, found = model.reporter.shared_name(waiter.place[1]), model.reporter.found.values()
    return any(f.kind == "mbarrier" and f.evidence.get("barrier") == name for f in found)


def _threads(waiter: Waiter) -> list[int]:
    return [warp * 32 + int(lane) for warp, mask in waiter.lanes.items() for lane in lane_list(mask)]


def _itself(waiter: Waiter) -> str:
    ends = next(h.what for h in waiter.helpers if h.waiter is waiter)
    return f"what would end this wait comes behind it: {ends}"


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
    return Cause(f"{_says(waiter, 'waits')} at {waiter.wants}: {waiter.state}{others}", _SYNC_HINT, waiter)


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
        text = f"{_says(waiter, 'waits')} for {waiter.wants}: {_itself(waiter)}"
        return Cause(text, _SELF_HINT, waiter)
    text = ", ".join(f"{w.who} for {w.wants}" for w in ring[:4])
    return Cause(f"a ring of waits: {text}; each would be ended by the next", _ORDER_HINT, ring[0])


CAUSES = (
    _no_init,
    _collective,
    _alloc,
    _pair,
    _warpgroup,
    _bytes,
    _misrouted,
    _ahead,
    _not_flipped,
    _bytes_only,
    _partial,
    _silent,
    _ended,
    _flipped_early,
    _sync,
    _fresh,
    _ring,
)
