"""Chains of cp.async: rings of stages, copies whose data the async proxy uses next, and what their arrivals
do not release (PTX ISA 8.9.1.1, 9.7.9.25.3, 9.7.13.15.15).
"""

from __future__ import annotations

from research.truth.hand_over import LEAD, hand_over, wait
from research.truth.model import FULL, SLOT, SLOTS, TILE


def ring(b) -> None:
    """Warps fill stages by cp.async, others read them and hand them back through mbarriers."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    copiers, readers = b.pick(pool, 2), b.pick(pool, 2)
    stages, lead = b.rng.choice([1, 1, 2]), b.chance(0.5)
    slots = [{w: b.slot(rank) for w in copiers} for _ in range(stages)]
    beside = b.slot(rank) if b.chance(0.4) else None  # a word that the copying warps write themselves
    inc = b.chance(0.5)
    full = [b.bar(rank, 32 * len(copiers)) for _ in range(stages)]
    empty = [b.bar(rank, len(readers) * (1 if lead else 32)) for _ in range(stages)]
    for k in range(b.rng.choice([1, 1, 2, 3])):
        s, phase = k % stages, k // stages
        for w in copiers:
            if k >= stages:
                wait(b, w, empty[s], phase - 1)
            if beside is not None and w == copiers[0] and k == 0:
                b.put(w, "st", space="s", rank=rank, slot=beside, at="own")
            b.put(w, "cp_async", slot=slots[s][w], **{"from": b.global_slot()})
            b.put(w, "cp_arrive", bar=full[s], inc=inc)
            if inc:  # the copies' arrival adds itself to the count; this one is the expected arrival
                b.put(w, "arrive", bar=full[s], sem="release")
        for r in readers:
            wait(b, r, full[s], phase)
            _read(b, r, rank, slots[s][b.rng.choice(copiers)])
            if beside is not None and inc:
                _read(b, r, rank, beside)
            if lead:
                b.put(r, "warp_sync")
            b.put(r, "arrive", LEAD if lead else FULL, bar=empty[s], sem="release")
    _done(b, copiers)


def grouped(b) -> None:
    """Groups in flight: a warp waits for all but the youngest before it hands a group over."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    copier, readers = b.rng.choice(pool), b.pick(pool, 2)
    count, source = b.rng.choice([2, 3, 4]), b.global_slot()
    slots = [b.slot(rank) for _ in range(count)]
    for slot in slots:
        b.put(copier, "cp_async", slot=slot, **{"from": source})
        b.put(copier, "cp_commit")
    known: dict = {}
    for k, slot in enumerate(slots):
        b.put(copier, "cp_wait", n=count - 1 - k)
        hand_over(b, [copier], readers, known)
        for r in readers:
            _read(b, r, rank, slot)
        if b.chance(0.4):
            hand_over(b, readers, [copier], known)
            b.put(copier, "cp_async", slot=slot, **{"from": b.global_slot()})
            b.put(copier, "cp_wait", n=-1)
    _done(b, [copier])


def sent_on(b) -> None:
    """A bulk copy stores what cp.async has loaded, with a proxy fence between."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    copiers, storer = b.pick(pool, 2), b.rng.choice(pool)
    first, target = b.slot(rank, len(copiers)), b.global_slot(len(copiers))
    known: dict = {}
    for turn in range(b.rng.choice([1, 1, 2])):
        if turn:
            hand_over(b, [storer], copiers, known)
        for i, w in enumerate(copiers):
            b.put(w, "cp_async", slot=first + i, **{"from": b.global_slot()})
        fenced(b, copiers, storer, known)
        words = SLOT * len(copiers)
        b.put(storer, "bulk_store", LEAD, slot=first, to=target, words=words)
        b.put(storer, "bulk_commit", LEAD)
        b.put(storer, "bulk_wait", LEAD, n=0, read=b.chance(0.5) and turn == 0)
    b.put(storer, "bulk_wait", LEAD, n=0, read=False)
    _done(b, copiers)


def fenced(b, copiers: list[int], user: int, known: dict) -> None:
    """Makes copies complete and visible to the async proxy before `user` continues: their warps wait and
    fence, or `user` waits for an mbarrier that tracks them, and fences.
    """
    rank, space = b.rank(user), b.rng.choice(["all", "s"])
    if b.chance(0.5):
        for w in copiers:
            b.put(w, "cp_wait", n=-1)
            b.put(w, "fence_proxy", space=space)
        hand_over(b, copiers, [user], known)
        return
    bar, phase = known.get("copied") or (b.bar(rank, 32 * len(copiers)), 0)
    known["copied"] = bar, phase + 1
    for w in copiers:
        b.put(w, "cp_arrive", bar=bar, inc=False)
    wait(b, user, bar, phase)
    b.put(user, "fence_proxy", space=space)


def multiplied(b) -> None:
    """cp.async fills a slot of a tile, one thread multiplies, then the slot is filled again."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    copier, issuer = b.rng.choice(pool), b.rng.choice(pool)
    tile, column, free = b.tile(rank), b.column(rank), b.bar(rank, 1)
    slot = SLOTS + tile * TILE // SLOT + b.rng.randrange(32)
    known: dict = {}
    for k in range(b.rng.choice([1, 1, 2, 3])):
        if k:
            wait(b, copier, free, k - 1)
        b.put(copier, "cp_async", slot=slot, **{"from": b.global_slot()})
        fenced(b, [copier], issuer, known)
        b.put(issuer, "tfence", after=True)
        b.put(issuer, "mma", LEAD, tile=tile, column=column)
        b.put(issuer, "tc_commit", LEAD, bar=free)
    wait(b, issuer, free, k)
    _done(b, [copier])


def _read(b, warp: int, rank: int, slot: int) -> None:
    b.put(warp, "ld", space="s", rank=rank, slot=slot, at=b.rng.choice(["own", "next", "flip", "one"]))


def _done(b, copiers: list[int]) -> None:
    for w in copiers:
        b.put(w, "cp_wait", n=-1)
