"""The edge that is missing between two accesses: the wait, the fence or the flip that would order them."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.diagnosis.unseen_arrival import Edge, no_cta_sync, others_waited, passed_at_once
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import Pair
from ptxsim.checks.race.shadow_order import (
    NO_FENCE_READ,
    NO_FENCE_WRITE,
    NO_TCGEN05_FENCE,
    SAME_VALUE,
    UNACQUIRED,
)
from ptxsim.checks.race.wording import UNITS, line_of, line_text, thread_of, threads_of

_COPY_FENCE_HINT = (
    "cp.async writes like a thread: who waits for it (wait_group or its mbarrier) runs fence.proxy_async; "
    "then the barrier, then TMA or MMA"
)
_COPIES = (
    "copy, where one thread is meant to",
    "elect one thread of one warp: a test of warp_id around the elected thread keeps the other warps out",
)
_MMAS = (
    "MMA, and their columns overlap",
    "elect one thread of one warp for the MMAs of a result (test warp_id); two results lie side by side",
)
_FLIP_HINT = "move on to the next phase after each wait (move_to_next_stage, or phase ^ 1)"
_TILE_HINT = (
    "m_st, n_st and the row must differ for all that store: look at them, and at the extents of cta_id"
)
_ROW_HINT = "each thread stores a row of its own: does the row depend on the warp as well as on the lane?"
_SLOT_HINT = (
    "signal and wait for the same slot: the pipeline's stage, or the consumer's number, on both sides"
)
_GROUPS = "wait_group(n) returns when at most the n newest groups are pending: 0 for the last tile"
_COUNT_HINT = "init(count) is the number of arrivals per round: all threads that arrive, or 1 per commit"
_ACQUIRE = (
    "acquire what the counter stands for: a fence (__threadfence) behind the atomic, or atom.acquire.gpu"
)
_FREED_HINT = (
    "threads wait for it and read the product before tensor memory is freed (the write-back): that is missing"
)
_EARLY_HINT = "hand a buffer back (arrive) only after the last read of it (for TMEM, tcgen05.wait::ld)"


def missing(races, pair: Pair) -> Edge:
    """What would order the two, and what to do about it."""
    first = pair.first
    text = _fence(pair)
    if text:
        return Edge(text, _hint(pair))
    if pair.code == SAME_VALUE:
        return Edge("no barrier between them, but both write the same value", _hint(pair))
    if pair.code > UNACQUIRED:
        text = "the atomic that its CTA knows it by acquires nothing, though known chips read right"
        return Edge(text, _ACQUIRE)
    if pair.issuers:
        what, hint = _MMAS if first.kind == "mma" else _COPIES
        return Edge(f"{threads_of(races, pair.issuers)} each issue this {what}", hint, "issuers")
    text = _same_output(races, pair)
    if text:
        return Edge(text, _TILE_HINT if pair.space == "memory" else _ROW_HINT, "same tile")
    if first.kind == "other":
        return Edge("they are in different clusters of the grid, which nothing orders", _hint(pair))
    if first.kind == "cp.async" and not pair.waited:
        text = "its thread has not waited for it (cp.async.wait_group leaves its group pending)"
        return _one_too_many(races, pair) or Edge(text, _GROUPS)
    if not pair.waited:
        own = f"its warp has not executed tcgen05.wait::{first.kind}"
        group = "its thread has not waited for it (cp.async.bulk.commit_group, then wait_group)"
        return Edge(own if first.kind in ("ld", "st") else group, _hint(pair))
    return _wait(races, pair)


def _fence(pair: Pair) -> str:
    first, second = pair.first, pair.second
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        if pair.elsewhere is not None:
            return "fence.proxy.async ran after the barrier; the writing threads must run it before"
        where = "shared::cta" if pair.space == "shared" else "global"
        if first.kind == "cp.async":
            return f"no fence.proxy.async for .{where} after a wait for the copy"
        return f"no fence.proxy.async for .{where} between the write and the barrier"
    if pair.code != NO_TCGEN05_FENCE:
        return ""
    if first.kind == "ld" and not pair.waited:
        return (
            "its warp has not executed tcgen05.wait::ld; that a register was read orders no other access "
            "(PTX ISA 9.7.16.6.4.5), though chips have read the columns by then"
        )
    if first.kind == "mma":  # its commit includes the other fence
        later = UNITS.get(second.kind, "what comes later")
        return f"no tcgen05.fence::after_thread_sync between the wait and {later}"
    if second.kind == "thread":  # dealloc
        return "no tcgen05.fence::before_thread_sync between that and the barrier"
    return "their synchronisation has no tcgen05.fence::before_thread_sync / after_thread_sync pair"


def _same_output(races, pair: Pair) -> str:
    """Two writes by one line: rows, columns or tiles that are not told apart."""
    first, second = pair.first, pair.second
    if pair.space == "tmem" or (first.verb, second.verb) != ("write", "write"):
        return ""
    if first.kind == "other":
        ids = [races.launch.cluster_cta_ids(a.cluster - 1)[0] for a in (first, second)]
        unit = "CTAs" if races.cluster.ctas == 1 else "the clusters of CTAs"
        return f"{unit} {ids[0]} and {ids[1]} of the grid (cta_id) both store it"
    if line_of(races, first.row) != line_of(races, second.row) or None in (first.by, second.by):
        return ""
    if pair.space == "shared" and not first.kind == "thread" == second.kind:
        return ""
    one, two = (a.by // races.clocks.per_cta for a in (first, second))
    if one != two:
        return f"CTA {one} and CTA {two} of the cluster both store it: their tile coordinates are the same"
    if first.kind == "thread" == second.kind and first.by != second.by:
        names = threads_of(races, sorted({first.by, second.by}))
        return f"{names} both store it: their rows or columns overlap"
    if first.kind == "result" == second.kind and first.by != second.by:
        names = threads_of(races, sorted({first.by, second.by}))
        return f"{names} both store it: their tile coordinates do not tell them apart"
    if first.kind == "result" and first.by == second.by and first.detail == second.detail:
        return f"{thread_of(races, first.by)} stores the same tile again: its coordinates did not change"
    return ""


def _wait(races, pair: Pair) -> Edge:
    """The wait on an mbarrier that was left out, that an old phase let pass, or that came to nothing."""
    first, second = pair.first, pair.second
    forward, backward = _carriers(races, first), _carriers(races, second)
    queue = first.kind in ("bytes", "mma", "ld")
    edge = _by_thread(races, pair) or _other_slot(races, pair, forward)
    edge = edge or no_cta_sync(races, pair)
    writer, places = (first, forward) if first.verb == "write" else (second, backward)
    direct = [p for p in places if p in _own_signals(races, writer)]
    edge = edge or passed_at_once(races, pair, direct, barrier_of)
    if edge is not None:
        return edge
    unused = [p for p in forward + backward if not races.clocks.signals[p].awaited]
    unused = unused or (_never_waited_for(races) if queue else [])
    if unused:
        return _not_waited_for(races, pair, unused[0])
    for access, places in ((second, forward), (first, backward)):
        edge = _passed_again(races, pair, access, places)
        if edge is not None:
            return edge
    return _one_too_many(races, pair) or _early(races, pair) or _left_out(races, pair, forward, backward)


def _not_waited_for(races, pair: Pair, place: tuple[int, int]) -> Edge:
    """A barrier that hands the first access on; where memory is freed, perhaps nobody is there to wait."""
    name = barrier_of(races, place)
    freed = pair.space == "tmem" and pair.second.kind == "thread"
    if freed and place in _never_waited_for(races):
        return Edge(f"no thread waits for {name}", _FREED_HINT)
    return Edge(f"{name} was not waited for", _hint(pair))


def _early(races, pair: Pair) -> Edge | None:
    """A buffer was handed on while it was still being read."""
    if pair.early is None:
        return None
    place, row = pair.early
    reader = pair.first if pair.first.verb == "read" else pair.second
    what = f"the read by {UNITS.get(reader.kind, thread_of(races, reader.by))} was done"
    text = f"{barrier_of(races, place)} was signalled{line_text(races, row)} before {what}"
    return Edge(text, _EARLY_HINT, "early")


def _left_out(races, pair: Pair, forward: list, backward: list) -> Edge:
    """The barrier that should have been waited for, and who did that in the reader's place."""
    first, second = pair.first, pair.second
    queue = first.kind in ("bytes", "mma", "ld")
    own = [races.clocks.queue(first.agent).owner] if first.kind == "bytes" else []
    chosen = (own or (_likely(races, pair, forward) if queue else []) or [None])[0]
    if chosen is not None:
        edge = others_waited(races, pair, chosen, barrier_of) if first.verb == "write" else None
        return edge or Edge(f"{barrier_of(races, chosen)} was not waited for", _hint(pair))
    if second.kind == "mma" and backward:
        edge = others_waited(races, pair, backward[0], barrier_of)
        if edge is not None:
            return edge
        text = f"no barrier between them, nor was {barrier_of(races, backward[0])} waited for"
        return Edge(text, _hint(pair))
    return Edge("no barrier between them", _hint(pair))


def _one_too_many(races, pair: Pair) -> Edge | None:
    """A barrier counted fewer arrivals than came: the first access comes after one that it did not need."""
    warp, histories = _warp(races, pair.second), history_of(races.cluster)
    for place in _carriers(races, pair.first):
        stray = races.clocks.signals[place].stray
        if stray is not None and place in histories and (warp, place) in pair.seen:
            text = (
                f"{barrier_of(races, place)} has init({histories[place].count}), and more arrive in a "
                f"round{line_text(races, stray)}: it does not wait for all of them"
            )
            return Edge(text, _COUNT_HINT, "arrivals")
    return None


def _by_thread(races, pair: Pair) -> Edge | None:
    """The issuer of an MMA has arrived itself where it should have committed."""
    first, second = pair.first, pair.second
    if first.kind != "mma":
        return None
    committed = {place for _, place in races.transfers.commits.get(first.agent, ())}
    for place, handed in races.handshakes.handed.get(_warp(races, first), {}).items():
        if (_warp(races, second), place) in pair.seen and place not in committed:
            line = line_text(races, handed.row)
            text = f"{barrier_of(races, place)} was signalled by a thread{line}, not by a commit"
            return Edge(
                text, "tcgen05.commit signals when the MMAs are done; an arrival does not wait", "by thread"
            )
    return None


def _other_slot(races, pair: Pair, forward: list) -> Edge | None:
    """Another element was waited for than the one of the same array that hands the access on."""
    warp = _warp(races, pair.second)
    array = {p: races.reporter.shared_name(p[1]).partition("[")[0] for w, p in pair.seen if w == warp}
    for place in forward:
        name = races.reporter.shared_name(place[1]).partition("[")[0]
        others = [p for p, known in array.items() if known == name and p not in forward and p[0] == place[0]]
        if others and place not in array:
            text = (
                f"{barrier_of(races, place)} is signalled, but {barrier_of(races, others[0])} was waited for"
            )
            return Edge(text, _SLOT_HINT, "slot")
    return _other_commits(races, pair, array)


def _other_commits(races, pair: Pair, awaited: dict) -> Edge | None:
    """What was waited for is committed to by another thread than the one that issued the MMA."""
    first, histories = pair.first, history_of(races.cluster)
    if first.kind != "mma" or first.by is None:
        return None
    commits = {
        p: {w for how, w, _ in histories[p].sources if how == "commit"} for p in awaited if p in histories
    }
    theirs = {p: warps for p, warps in commits.items() if warps}
    if not theirs or any(_warp(races, first) in warps for warps in theirs.values()):
        return None
    place, warps = next(reversed(theirs.items()))
    per_cta = races.cluster.warps_per_cta
    text = (
        f"{barrier_of(races, place)} was waited for, to which warp {min(warps) % per_cta} commits; "
        f"warp {_warp(races, first) % per_cta} issued this MMA"
    )
    return Edge(text, _SLOT_HINT, "slot")


def _passed_again(races, pair: Pair, access: Access, places: list) -> Edge | None:
    """A wait of the warp after `access`, on a barrier that hands the other one on, saw a phase twice."""
    for place in places:
        seen = pair.seen.get((_warp(races, access), place))
        if seen is not None and seen.again is not None:
            phase, row = seen.again
            which = f"phase {phase}" if phase >= 0 else "the phase before the first"
            name, line = barrier_of(races, place), line_text(races, row)
            return Edge(f"the wait for {name}{line} let {which} pass a second time", _FLIP_HINT, "again")
    return None


def _likely(races, pair: Pair, forward: list) -> list:
    """Barriers that hand the first access on: what its own warp signals before what others pass on, and
    what the second one's warp waits for before the rest.
    """
    warp = _warp(races, pair.second)
    own = _own_signals(races, pair.first)
    return sorted(forward, key=lambda place: (place not in own, (warp, place) not in pair.seen))


def _own_signals(races, access: Access) -> set[tuple[int, int]]:
    """Barriers that an access signals itself: its copy, the commits after it, the arrivals of its warp."""
    if access.kind == "bytes":
        return {races.clocks.queue(access.agent).owner}
    committed = {place for _, place in races.transfers.commits.get(access.agent, ())}
    return committed | set(races.handshakes.handed.get(_warp(races, access), ()))


def _warp(races, access: Access) -> int | None:
    return None if access.by is None else races.clocks.warp_of(access.by)


def _never_waited_for(races) -> list[tuple[int, int]]:
    """Initialised barriers of a name that no thread of the cluster has waited for, at any index."""
    places = [p for p, s in races.clocks.signals.items() if s.initialised is not None]
    names = {p: races.reporter.shared_name(p[1]).partition("[") for p in places}
    awaited = {names[p][0] for p in places if races.clocks.signals[p].awaited}
    return [p for p in places if names[p][1] and names[p][0] not in awaited]


def _carriers(races, access: Access) -> list[tuple[int, int]]:
    """mbarriers that hand on an access, the first to do so first; commits before what came of them."""
    if access.kind == "other":
        return []
    commits = races.transfers.commits.get(access.agent, ())
    planned = sorted((at, p) for at, p in commits if at >= access.epoch)
    found = []
    for place, signal in races.clocks.signals.items():
        if signal.initialised is not None and signal.gathered is not None:
            clock = signal.gathered.clock
            at = int(clock[access.agent]) if access.agent < len(clock) else 0
            if at >= access.epoch:
                found.append((at, place))
    return [place for _, place in planned + sorted(found) if place in races.clocks.signals]


def barrier_of(races, place: tuple[int, int]) -> str:
    name = races.reporter.shared_name(place[1])
    return f"{name} of CTA {place[0]}" if races.cluster.ctas > 1 else name


def _hint(pair: Pair) -> str:
    if pair.code in (NO_FENCE_READ, NO_FENCE_WRITE):
        if pair.first.kind == "cp.async":
            return _COPY_FENCE_HINT
        return (
            "every thread that writes runs fence.proxy_async after its writes; "
            "then the barrier, then TMA or MMA"
        )
    if pair.code == NO_TCGEN05_FENCE:
        return "tensor memory is handed over by before_thread_sync, the barrier, after_thread_sync"
    if pair.first.verb == "write" and pair.second.verb == "read":
        return "before reading, wait on the barrier that signals that the data has arrived"
    return "before overwriting a buffer, wait on the barrier that marks it free"
