"""Chains of the tensor core: tensor memory handed on, tcgen05 products, wgmma products."""

from __future__ import annotations

from research.truth.execute import MMA_COLUMNS
from research.truth.hand_over import LEAD, hand_over, wait
from research.truth.model import SLOT, SLOTS, TILE


def passed_on(b) -> None:
    """tcgen05.st by one warp, tcgen05.ld by a warp of the same quadrant."""
    rank = b.rng.randrange(b.program.ctas)
    first = b.rng.choice(b.warps_of(rank))
    same = [w for w in b.warps_of(rank) if w % b.program.warps % 4 == first % b.program.warps % 4]
    second, column = b.rng.choice(same), b.column(rank)
    known: dict = {}
    for turn in range(b.rng.choice([1, 1, 2])):
        if turn:
            _tmem_over(b, second, first, known)
        b.put(first, "tmem_st", column=column)
        b.put(first, "wait_st")
        _tmem_over(b, first, second, known)
        b.put(second, "tmem_ld", column=column)
        b.put(second, "wait_ld")


def _tmem_over(b, first, second, known) -> None:
    if first == second:
        return
    b.put(first, "tfence", after=False)
    hand_over(b, [first], [second], known)
    b.put(second, "tfence", after=True)


def product(b) -> None:
    """A tile is loaded, multiplied by one thread, and the result read by warps; several rounds."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    loader, issuer, readers = b.rng.choice(pool), b.rng.choice(pool), b.pick(pool)
    tile, column = b.tile(rank), b.column(rank)
    full, free, done = b.bar(rank, 1), b.bar(rank, 1), b.bar(rank, 1)
    generic = b.chance(0.3)
    known: dict = {}
    for k in range(b.rng.choice([1, 1, 2, 3])):
        if k:
            wait(b, loader, free, k - 1, all_lanes=generic)
            for r in readers:
                b.put(r, "tfence", after=False)
            hand_over(b, readers, [issuer], known)
        if generic:
            b.put(
                loader,
                "st",
                space="s",
                rank=rank,
                slot=SLOTS + tile * TILE // SLOT + b.rng.randrange(32),
                at="own",
            )
            b.put(loader, "fence_proxy", space=b.rng.choice(["all", "s"]))
            hand_over(b, [loader], [issuer], known)
        else:
            b.put(loader, "expect", LEAD, bar=full, bytes=4 * TILE, arrive=1)
            a = {"rank": rank, "slot": SLOTS + tile * TILE // SLOT, "words": TILE, "source": ("in", 0, 0)}
            b.put(loader, "bulk_load", LEAD, **a, bar=full)
            wait(b, issuer, full, k)
        b.put(issuer, "tfence", after=True)
        for _ in range(b.rng.choice([1, 1, 2])):
            b.put(issuer, "mma", LEAD, tile=tile, column=column)
        for bar in b.rng.sample([free, done], 2):
            b.put(issuer, "tc_commit", LEAD, bar=bar)
        for r in readers:
            wait(b, r, done, k)
            b.put(r, "tfence", after=True)
            b.put(r, "tmem_ld", column=column + b.rng.randrange(MMA_COLUMNS))
            b.put(r, "wait_ld")


def warpgroup(b) -> None:
    """A tile is loaded, a warpgroup multiplies it and hands the stage back; several rounds."""
    rank = b.rng.randrange(b.program.ctas)
    pool = b.warps_of(rank)
    group = pool[4 * b.rng.randrange(len(pool) // 4) :][:4]
    loader, tile = b.rng.choice(pool), b.tile(rank)
    single = b.chance(0.3)  # one thread hands the stage back for the warpgroup
    full, empty = b.bar(rank, 1), b.bar(rank, 1 if single else 4)
    for k in range(b.rng.choice([1, 2, 3])):
        if k:
            wait(b, loader, empty, k - 1, all_lanes=False)
        b.put(loader, "expect", LEAD, bar=full, bytes=2 * TILE, arrive=1)
        a = {"rank": rank, "slot": SLOTS + tile * TILE // SLOT, "words": TILE // 2, "source": ("in", 0, 0)}
        b.put(loader, "bulk_load", LEAD, **a, bar=full)
        first = b.blocks(3)
        for w in group:
            wait(b, w, full, k)
            b.put(w, "wgmma", tile=tile, block=first)
            b.put(w, "wgmma_commit", block=first + 1)
            b.put(w, "wgmma_wait", n=0, block=first + 2)
            if w == group[0] or not single:
                b.put(w, "arrive", LEAD, bar=empty, sem="release")
