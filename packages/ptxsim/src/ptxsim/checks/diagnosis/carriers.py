"""The mbarriers that pass an access on to other threads, and those among them that nobody waits for."""

from __future__ import annotations

from ptxsim.checks.barrier_history import history_of
from ptxsim.checks.diagnosis.unseen_arrival import group_of
from ptxsim.checks.race.access import Access
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.machine.register_files import WHOLE_WARP


def carriers(races: RaceDetector, access: Access) -> list[tuple[int, int]]:
    """mbarriers whose completion implies that an access is done, the earliest first; commits come before
    barriers that were signalled later because of them.
    """
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


def likely(races: RaceDetector, pair: AccessPair, forward: list) -> list:
    """The barriers that pass on the first access, the likeliest first: those that its own warp signals, then
    those that its warpgroup signals, then those that whole warps beside the second access's warp wait for,
    then those that this warp itself has waited for, then the rest.
    """
    peers = awaited_by_peers(races, pair.second, forward)
    warp, reader = pair.second.warp(races), pair.first.warp(races)
    own, group = own_signals(races, pair.first), set()
    if pair.first.kind in ("ld", "thread") and reader is not None:
        first = reader // 4 * 4
        group = {p for w in range(first, first + 4) for p in races.handshakes.handed_by(w)}
    return sorted(
        forward, key=lambda p: (p not in own, p not in group, p not in peers, (warp, p) not in pair.seen)
    )


def awaited_by_peers(races: RaceDetector, access: Access, places: list) -> list[tuple[int, int]]:
    """Those of these barriers that whole warps of the access's warpgroup wait for, but not its own warp."""
    warp, histories = access.warp(races), history_of(races.cluster)
    if warp is None:
        return []
    group = group_of(races, warp)
    passed = {p: histories[p].passed for p in places if p in histories and warp not in histories[p].waits}
    return [
        place
        for place, lanes in passed.items()
        if any(mask == WHOLE_WARP and group_of(races, w) == group for w, mask in lanes)
    ]


def own_signals(races: RaceDetector, access: Access) -> set[tuple[int, int]]:
    """Barriers that an access signals itself: by its copy, later commits or its warp's arrivals."""
    if access.kind == "bytes":
        return {races.clocks.queue(access.agent).owner}
    committed = {place for _, place in races.transfers.commits.get(access.agent, ())}
    return committed | set(races.handshakes.handed_by(access.warp(races)))


def awaited_in_a_peer(races: RaceDetector, place: tuple[int, int]) -> tuple[int, int] | None:
    """The same barrier in another CTA, if that one is waited for, and no element of its array is here."""
    signals, array_of = races.clocks.signals, races.reporter.shared_array
    peers = (p for p in signals if p[1] == place[1] and p[0] != place[0] and signals[p].awaited)
    here = (p for p in signals if p[0] == place[0] and array_of(p[1]) == array_of(place[1]))
    return None if any(signals[p].awaited for p in here) else next(peers, None)


def unawaited(races: RaceDetector, pair: AccessPair) -> list[tuple[int, int]]:
    """Barriers that pass one of the accesses on, but that nobody has waited for."""
    handing_on = carriers(races, pair.first) + carriers(races, pair.second)
    unused = [place for place in handing_on if not races.clocks.signals[place].awaited]
    return [place for place in unused if races.cluster.mbarriers.last(place).phase or races.cluster.stuck]


def never_waited_for(races: RaceDetector) -> list[tuple[int, int]]:
    """Initialised, named barriers of whose array no thread of the cluster has waited for any element."""
    places = [p for p, s in races.clocks.signals.items() if s.initialised is not None]
    names = {p: races.reporter.shared_name(p[1]).partition("[") for p in places}
    awaited = {names[p][0] for p in places if races.clocks.signals[p].awaited}
    return [p for p in places if names[p][1] and names[p][0] not in awaited]
