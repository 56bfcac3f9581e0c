"""One synchronisation from some warps to others, by a random mechanism."""

from __future__ import annotations

from research.truth.model import FULL

LEAD = 1  # mask of lane 0


def hand_over(b, before: list[int], after: list[int], known: dict | None = None) -> None:
    """Orders all that `before` did before what `after` does next. known: mbarriers that may be reused."""
    ranks = {b.rank(w) for w in (*before, *after)}
    ways = []
    if before == after and len(before) == 1:
        ways += [_by_warp_sync] * 4
    if len(ranks) == 1:
        ways += [_by_barrier] * 4
        if not set(before) & set(after):
            ways += [_by_arrive_and_sync] * 2
    else:
        ways += [_by_cluster] * 2
    if len({b.rank(w) for w in after}) == 1:
        ways += [_by_mbarrier] * 4
    ways += [_by_flag]
    b.rng.choice(ways)(b, before, after, {} if known is None else known)


def _by_warp_sync(b, before, after, known):
    b.put(before[0], "warp_sync")


def _by_barrier(b, before, after, known):
    who = sorted({*before, *after})
    if b.chance(0.2):
        who = b.warps_of(b.rank(who[0]))
    number = b.barrier_id(b.rank(who[0]), ("sync", *who))
    loose = b.chance(0.2)
    for warp in who:
        b.put(warp, "bar_sync", id=number, count=32 * len(who), loose=loose)


def _by_arrive_and_sync(b, before, after, known):
    number = b.barrier_id(b.rank(after[0]), ("arrive", *before, "sync", *after))
    if known.get(("bar", number)):  # reuse needs a synchronisation between: the chain's other direction
        return _by_barrier(b, before, after, known)
    known["bar", number] = True
    for warp in before:
        b.put(warp, "bar_arrive", id=number, count=32 * (len(before) + len(after)))
    for warp in after:
        b.put(warp, "bar_sync", id=number, count=32 * (len(before) + len(after)))


def _by_cluster(b, before, after, known):
    for warp in range(len(b.program.code)):
        b.put(warp, "cl_arrive", sem="release")
    for warp in range(len(b.program.code)):
        b.put(warp, "cl_wait")


def _by_mbarrier(b, before, after, known):
    rank, lead = b.rank(after[0]), b.chance(0.5)
    wide = any(b.rank(w) != rank for w in before)
    key = ("mbar", tuple(before), tuple(after), lead)
    bar, phase = known.get(key) or (b.bar(rank, len(before) * (1 if lead else 32)), 0)
    known[key] = bar, phase + 1
    for warp in before:
        if lead:
            b.put(warp, "warp_sync")
        remote = b.rank(warp) != rank
        b.put(warp, "arrive", LEAD if lead else FULL, bar=bar, sem="release", wide=wide, remote=remote)
    for warp in after:
        wait(b, warp, bar, phase, wide)


def wait(b, warp, bar, phase, wide=False, all_lanes=True) -> None:
    """All lanes wait, or one waits and the warp synchronises."""
    test = "test_wait" if b.chance(0.1) else "try_wait"
    if all_lanes and b.chance(0.7):
        b.put(warp, "wait", bar=bar, parity=phase & 1, wide=wide, test=test)
    else:
        b.put(warp, "wait", LEAD, bar=bar, parity=phase & 1, wide=wide, test=test)
        if all_lanes:
            b.put(warp, "warp_sync")


def _by_flag(b, before, after, known):
    ranks = {b.rank(w) for w in (*before, *after)}
    home = b.rank(after[0])
    space = "g" if b.chance(0.5) else "s"
    scope = b.rng.choice(["cta", "cluster", "gpu"] if len(ranks) == 1 else ["cluster", "gpu"])
    a = {"space": space, "rank": home, "flag": b.flag(space, home), "scope": scope}
    fenced = b.chance(0.3)
    rmw = len(before) > 1 or b.chance(0.3)
    for warp in before:
        b.put(warp, "warp_sync")
        if fenced:
            b.put(warp, "fence", LEAD, scope=scope)
        sem = "relaxed" if fenced else "release"
        b.put(warp, "flag_set", LEAD, **a, sem=sem, rmw=rmw, remote=b.rank(warp) != home)
    for warp in after:
        sem, lanes = "relaxed" if fenced else "acquire", FULL if b.chance(0.1) else LEAD
        need = len(before) if rmw else 1
        b.put(warp, "flag_wait", lanes, **a, sem=sem, need=need, remote=b.rank(warp) != home)
        if fenced:
            b.put(warp, "fence", lanes, scope=scope)
        if lanes == LEAD:
            b.put(warp, "warp_sync")
