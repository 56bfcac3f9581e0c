"""The chains that random programs are made of: who writes, how it is handed over, who reads.

Every chain ends after its readers are done, and uses places of its own. Between steps comes a `hand_over`;
the chains add what their kind of memory access needs around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from research.truth import copy_chains, tensor_chains
from research.truth.hand_over import LEAD, hand_over, wait
from research.truth.model import FULL, SLOT


@dataclass(frozen=True)
class Chain:
    build: object
    weight: int
    fits: object = lambda b: True


# ---- data ----


def write(b, warp, place: dict) -> None:
    at, lanes = b.rng.choice(
        [("own", FULL)] * 4 + [("one", LEAD), ("own", 0xFFFF), ("own", LEAD), ("flip", FULL)]
    )
    b.put(warp, "st", lanes, **place, at=at, **_remote(b, warp, place))


def read(b, warp, place: dict) -> None:
    at, lanes = b.rng.choice([("own", FULL), ("next", FULL), ("flip", FULL), ("one", FULL), ("one", LEAD)])
    b.put(warp, "ld", lanes, **place, at=at, **_remote(b, warp, place))


def _remote(b, warp, place) -> dict:
    return {"remote": True} if place["space"] == "s" and place["rank"] != b.rank(warp) else {}


def plain(b) -> None:
    """Threads write words, others read them, and the words are written again."""
    everyone = list(range(len(b.program.code)))
    rank = b.rng.randrange(b.program.ctas)
    local = b.program.ctas == 1 or b.chance(0.5)
    pool = b.warps_of(rank) if local else everyone
    writers = b.pick(pool)
    readers = b.pick(pool if local else b.warps_of(rank), most=6 if b.chance(0.2) else 3)
    if b.chance(0.15):
        readers = writers = writers[:1]
    space = "g" if b.chance(0.25) else "s"
    places = {}
    for w in writers:
        slot = b.global_slot() if space == "g" else b.slot(rank)
        places[w] = {"space": space, "rank": rank if space == "s" else 0, "slot": slot}
    known: dict = {}
    for turn in range(b.rng.choice([1, 1, 2, 3])):
        if turn:
            hand_over(b, readers, writers, known)
        for w in writers:
            write(b, w, places[w])
        hand_over(b, writers, readers, known)
        for r in readers:
            for place in b.rng.sample(list(places.values()), b.rng.randint(1, len(places))):
                read(b, r, place)


def counted(b) -> None:
    """Atomic additions by all warps, read after a hand-over."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    adders, readers = b.pick(pool), b.pick(pool)
    place = {"space": "g", "slot": b.global_slot()} if b.chance(0.5) else {"space": "s", "slot": b.slot(rank)}
    place["rank"] = rank if place["space"] == "s" else 0
    for w in adders:
        b.put(w, "red", **place, at=b.rng.choice(["own", "one", "next"]))
    hand_over(b, adders, readers)
    for r in readers:
        read(b, r, place)


def apart(b) -> None:
    """Some lanes of a warp write and signal, the others wait and read: each part makes progress (3.1)."""
    warp = b.rng.choice(range(len(b.program.code)))
    rank, mask = b.rank(warp), b.rng.choice([1, 0xFFFF, 0x55555555, 0xFFFF0000, 0xFFFFFFFE])
    bar = b.bar(rank, mask.bit_count())
    place = {"space": "s", "rank": rank, "slot": b.slot(rank)}
    kept = b.program.code[warp]
    arms = []
    for lanes, sends in ((mask, True), (FULL & ~mask, False)):
        b.program.code[warp] = []
        if sends:
            b.put(warp, "st", **place, at="own")
            b.put(warp, "arrive", bar=bar, sem="release")
        else:
            b.put(warp, "wait", bar=bar, parity=0)
            b.put(warp, "ld", **place, at=b.rng.choice(["flip", "next"]))
        arms.append((lanes, b.program.code[warp]))
    b.program.code[warp] = kept
    b.put(warp, "arms")
    if b.chance(0.3):
        arms.reverse()
    kept[-1].arms = arms
    if b.chance(0.7):
        b.put(warp, "warp_sync")
        write(b, warp, place)


def loaded(b) -> None:
    """A ring: one thread fills stages by bulk copy, warps read them and hand them back."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    loader = b.rng.choice(range(len(b.program.code)) if b.chance(0.2) else pool)
    consumers = b.pick(pool)
    far = b.rank(loader) != rank
    stages, words = b.rng.choice([1, 1, 2]), b.rng.choice([SLOT, 2 * SLOT])
    lead = b.chance(0.5)
    slots = [b.slot(rank, words // SLOT) for _ in range(stages)]
    beside = b.slot(rank) if not far and b.chance(0.3) else None  # a word that the loader itself writes
    full = [b.bar(rank, 1) for _ in range(stages)]
    empty = [b.bar(b.rank(loader), len(consumers) * (1 if lead else 32)) for _ in range(stages)]
    for k in range(b.rng.choice([1, 2, 3, 4])):
        s, phase = k % stages, k // stages
        if k >= stages:
            wait(b, loader, empty[s], phase - 1, wide=far, all_lanes=False)
        announcer = consumers[0] if far else loader
        sizes = [words // 2] * 2 if b.chance(0.2) and words > SLOT else [words]
        early = not far and b.chance(0.2)  # bytes may come before they are announced
        if beside is not None and k == 0:  # released by the announcement, not by the bytes
            b.put(loader, "st", LEAD, space="s", rank=rank, slot=beside, at="own")
        for announce in (not early, early):
            if announce:
                b.put(announcer, "expect", LEAD, bar=full[s], bytes=4 * words, arrive=1)
                continue
            for part, size in enumerate(sizes):
                _copy(b, loader, rank, slots[s] + part * size // SLOT, size, full[s], far)
        for c in consumers:
            wait(b, c, full[s], phase, wide=far)
            read(b, c, {"space": "s", "rank": rank, "slot": slots[s] + b.rng.randrange(words // SLOT)})
            if beside is not None:
                b.put(c, "ld", space="s", rank=rank, slot=beside, at="one")
        for c in consumers:
            if lead:
                b.put(c, "warp_sync")
            b.put(c, "arrive", LEAD if lead else FULL, bar=empty[s], sem="release", wide=far, remote=far)


def _copy(b, loader, rank, slot, words, bar, far) -> None:
    source = ("in", 0, 64 * (b.source % 32))
    b.source += 1
    a = {"rank": rank, "slot": slot, "words": words, "source": source, "bar": bar, "remote": far}
    b.put(loader, "bulk_load", LEAD, **a, tensor=not far and b.chance(0.5))


def multicast(b) -> None:
    """One thread copies a stage to every CTA of the cluster; each CTA waits for its own bytes."""
    ctas = range(b.program.ctas)
    home = b.rng.choice(ctas)
    loader, readers = b.rng.choice(b.warps_of(home)), [b.rng.choice(b.warps_of(r)) for r in ctas]
    slot, index = max(b.slots), max(b.bars)
    for r in ctas:
        b.slots[r], b.bars[r] = slot, index
        b.slot(r)
        b.bar(r, 1)
    empty = b.bar(home, len(readers))
    for k in range(b.rng.choice([1, 2, 3])):
        if k:
            wait(b, loader, empty, k - 1, wide=True, all_lanes=False)
        for r in ctas:
            b.put(readers[r], "expect", LEAD, bar=(r, index), bytes=4 * SLOT, arrive=1)
        a = {"rank": home, "slot": slot, "words": SLOT, "bar": (home, index), "ranks": tuple(ctas)}
        b.put(loader, "bulk_load", LEAD, **a, source=("in", 0, 64 * (b.source % 32)), tensor=True)
        b.source += 1
        for r in ctas:
            wait(b, readers[r], (r, index), k, wide=True)
            read(b, readers[r], {"space": "s", "rank": r, "slot": slot})
            b.put(readers[r], "warp_sync")
            b.put(readers[r], "arrive", LEAD, bar=empty, sem="release", wide=True, remote=r != home)


def stored(b) -> None:
    """Warps write a stage, one thread stores it by bulk copy, others read global memory."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    writers, storer = b.pick(pool, 2), b.rng.choice(pool)
    readers = b.pick(pool if b.chance(0.7) else list(range(len(b.program.code))))
    if len({b.rank(r) for r in readers}) > 1:
        readers = readers[:1]
    first, target = b.slot(rank, len(writers)), b.global_slot(len(writers))
    known: dict = {}
    turns = b.rng.choice([1, 1, 2])
    for turn in range(turns):
        for i, w in enumerate(writers):
            b.put(w, "st", space="s", rank=rank, slot=first + i, at="own")
            b.put(w, "fence_proxy", space=b.rng.choice(["all", "s"]))
        hand_over(b, writers, [storer], known)
        words = SLOT * len(writers)
        b.put(storer, "bulk_store", LEAD, slot=first, to=target, words=words)
        b.put(storer, "bulk_commit", LEAD)
        last = turn == turns - 1
        b.put(storer, "bulk_wait", LEAD, n=0, read=not last and b.chance(0.6))
        hand_over(b, [storer], readers if last else writers, known)
    for r in readers:
        read(b, r, {"space": "g", "rank": 0, "slot": target + b.rng.randrange(len(writers))})


def copied(b) -> None:
    """cp.async of each lane's word, awaited by groups or by an mbarrier."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    copiers, readers = b.pick(pool, 2), b.pick(pool)
    slots = {w: b.slot(rank, 2) for w in copiers}
    source = b.global_slot()
    by_bar = b.chance(0.4)
    for w in copiers:
        for i in range(2):
            b.put(w, "cp_async", slot=slots[w] + i, **{"from": source})
            if not by_bar:
                b.put(w, "cp_commit")
    used = b.rng.randrange(2)
    if by_bar:
        bar = b.bar(rank, 32 * len(copiers))
        for w in copiers:
            b.put(w, "cp_arrive", bar=bar)
        for r in readers:
            wait(b, r, bar, 0)
    else:
        for w in copiers:
            b.put(w, "cp_wait", n=b.rng.choice([0, -1, 1 - used]))
        hand_over(b, copiers, readers)
    for r in readers:
        read(b, r, {"space": "s", "rank": rank, "slot": slots[b.rng.choice(copiers)] + used})
    for w in copiers:
        b.put(w, "cp_wait", n=-1)


def sent(b) -> None:
    """A bulk copy from one CTA's shared memory into another's."""
    source, target = b.rng.sample(range(b.program.ctas), 2)
    sender, readers = b.rng.choice(b.warps_of(source)), b.pick(b.warps_of(target))
    here, there = b.slot(source), b.slot(target)
    bar = b.bar(target, 1)
    b.put(sender, "st", space="s", rank=source, slot=here, at="own")
    b.put(sender, "fence_proxy", space="all")
    b.put(sender, "warp_sync")
    b.put(readers[0], "expect", LEAD, bar=bar, bytes=4 * SLOT, arrive=1)
    a = {"rank": target, "slot": there, "words": SLOT, "source": ("s", source, here * SLOT)}
    b.put(sender, "bulk_load", LEAD, **a, bar=bar, remote=True)
    for r in readers:
        wait(b, r, bar, 0, wide=True)
        read(b, r, {"space": "s", "rank": target, "slot": there})


def _blackwell(b) -> bool:
    return b.program.target == "sm_100a"


CHAINS = (
    Chain(plain, 10),
    Chain(counted, 2),
    Chain(apart, 2),
    Chain(loaded, 6),
    Chain(stored, 4),
    Chain(copied, 3),
    Chain(copy_chains.ring, 4),
    Chain(copy_chains.grouped, 3),
    Chain(copy_chains.sent_on, 3),
    Chain(copy_chains.multiplied, 3, _blackwell),
    Chain(sent, 3, lambda b: b.program.ctas > 1),
    Chain(multicast, 3, lambda b: b.program.ctas > 1),
    Chain(tensor_chains.passed_on, 3, _blackwell),
    Chain(tensor_chains.product, 4, _blackwell),
    Chain(
        tensor_chains.warpgroup,
        6,
        lambda b: not _blackwell(b) and b.program.warps >= 4 and b.program.warps % 4 == 0,
    ),
)
