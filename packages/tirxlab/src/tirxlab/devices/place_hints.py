"""What to do about causes that are about places, in terms of TIRX: shared memory, columns, tiles of D."""

from __future__ import annotations

OF_PLACES = {
    "freed-in-use": (
        "free tensor memory after its last use: everybody who uses it waits (wait.ld, or the barrier of the "
        "commit), then comes cta_sync() (of a pair, cluster_sync()), then dealloc"
    ),
    "swizzle-start": (
        "swizzled buffers start where their pattern does: pool.move_base_to(1024), or align=1024"
    ),
    "two-swizzles": (
        "declare a buffer once, with one layout: tma_shared_layout(dtype, swizzle, shape), and let a "
        "descriptor of your own name the same swizzle"
    ),
    "one-memory": (
        "give each buffer memory of its own: check pool.move_base_to and the order of the pool.alloc. If "
        "they are meant to share it, threads that use it as one must wait for those that use it as the other"
    ),
    "loaded-too-soon": (
        "load into a stage only after waiting for its MMA: move tma_load after that wait, or give each "
        "load a stage of its own"
    ),
    "other-columns": (
        "columns of tensor memory and slot must match on both sides: take both from the same stage, before "
        "it advances"
    ),
    "first-left-out": (
        "does next_tile() come before the first tile is stored, or is init given a later number? Does a "
        "condition keep the first CTA or the first tile out?"
    ),
    "same-tile": (
        "m_st and n_st must differ for every CTA that stores, and the row also for every thread of it "
        "(warp_id * 32 + lane_id): check them, the extents of cta_id, the scheduler's number of clusters "
        "and the number given to init"
    ),
    "same-tile-of-warps": (
        "what each of these threads stores needs rows of its own in D: does its first row name the warp "
        "(m_st + warp_id * 32), as its part of Dsmem does? Or is one thread meant to store the whole tile: "
        "then a test of warp_id keeps the other warps out"
    ),
    "same-tile-again": (
        "the coordinates of the store must follow the tile of each round: its rows (m_st) come from m_idx, "
        "its columns (n_st, d_st) from n_idx"
    ),
    "tiles-too-many": (
        "does the loop ask valid() before each tile? Are there more CTAs, or more rounds, than tiles? Or is "
        "the box that is stored larger than its tile?"
    ),
    "tiles-overlap": (
        "tiles of D must be as far apart as a tile is large: scale n_idx by the columns, and m_idx by the "
        "rows, that the whole tile has, those of both CTAs of a pair included"
    ),
    "stores-past": (
        "the only stores are for a tile past the last one: they belong in the loop over tiles, before "
        "next_tile(). Is a coordinate scaled twice?"
    ),
    "first-tiles": (
        "is the number of tiles along this axis right: the extents of cta_id, num_m_tiles and num_n_tiles of "
        "the scheduler? Does m_st (n_st) follow the scheduler's tile along this axis, in each round, and "
        "does next_tile() come once per round? Is the store as wide as the tile?"
    ),
    "adds-to-nothing": (
        "to overwrite D, leave out use_tma_reduce; to add to it, D must be cleared first, and every add must "
        "come after the clear"
    ),
    "incomplete-output": (
        "do the tiles of all CTAs, and the columns that each thread stores, cover the whole output? With "
        "a scheduler: its numbers of tiles and of clusters, the number given to init, and `while valid()`"
    ),
    "stores-outside": (
        "stores went past the end of the output instead: do the extents of cta_id, or the scheduler's "
        "num_m_tiles and num_n_tiles, follow from the shape of D, each for the index that it bounds? Is the "
        "row (m_st) or the column (n_st) taken from bx, where the CTA's rank in its cluster (cbx) is meant, "
        "or scaled twice?"
    ),
    "stores-diagonal": (
        "the CTAs of a pair store rows of their own and the same columns: cbx belongs only in the row of the "
        "store (m_st). Is its column taken from n_st, this CTA's rows of B, where the columns of the "
        "whole tile are meant (n_idx times MMA_N)?"
    ),
    "last-left-out": (
        "is the last tile of each CTA stored, too? If a tile is stored one round later, beside the next "
        "one's work, the last one's store comes after the loop. Or do the loop, `while valid()` or the "
        "number given to init end one tile too early?"
    ),
    "useless-stores": (
        "make one CTA, or one round of the scheduler, for each tile of the output: is the grid too large, "
        "or the number of tiles?"
    ),
    "same-part": (
        "each warpgroup stores to a part of its own: does the index of the part name the warpgroup (wg_id), "
        "and nothing that the others have, too?"
    ),
    "other-group": (
        "let a thread of each warpgroup store the part that this warpgroup writes: warpgroup_sync orders "
        "only its own threads"
    ),
    "one-cta": (
        "where init(1) counts one arrival for the whole cluster, only one of its CTAs may arrive: put the "
        "arrive under a condition on the CTA's rank, as in `if cbx == 0:`, or count both in init"
    ),
}
