"""Mistakes in which threads issue or join an operation, and work still in flight when the CTA ends."""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, after, before, drop, guard, head, instead
from memory import ELECTED, SINGLE

ISSUE = (
    Bug(
        "mma-not-elected",
        1,
        SINGLE,
        (head(ELECTED, "with Tx.thread():"),),
        kind="illegal",
        names="tcgen05.mma",
        why="32 lanes issue the MMA: the product is computed 32 times.",
    ),
    Bug(
        "load-not-elected",
        7,
        **EIGHT,
        edits=(head(ELECTED, "with Tx.thread():"),),
        kind="illegal",
        names="Asmem",
        why="32 lanes issue the load.",
    ),
    Bug(
        "store-not-elected",
        4,
        ONE_TILE,
        (head(ELECTED, "with Tx.thread():", nth=1),),
        kind="illegal",
        names="Dsmem",
        why="32 lanes store the tile.",
        severity="review",  # the same bytes to the same place: slow, but right
    ),
    Bug(
        "cta-sync-in-elected-store",
        4,
        ONE_TILE,
        (before("Tx.ptx.cp_async.bulk.commit_group()", "Tx.cuda.cta_sync()"),),
        kind="collective",
        names="cta_sync",
        why="One thread executes cta_sync, which is for all of the CTA.",
    ),
    Bug(
        "cta-sync-in-elected-loop",
        5,
        ONE_TILE,
        (before("mma(stage, k != 0)", "Tx.cuda.cta_sync()"),),
        kind="collective",
        names="cta_sync",
        why="The same inside the K loop.",
    ),
    Bug(
        "warpgroup-sync-without-warp-3",
        7,
        **EIGHT,
        edits=(guard("Tx.cuda.warpgroup_sync(1)", "if warp_id < 3:"),),
        kind="deadlock",
        names="barrier 1",
        why="Three of four warps arrive at every second sync: the warps drift apart.",
    ),
    Bug(
        "cluster-sync-in-cta-0",
        9,
        **EIGHT_OF_PAIR,
        edits=(guard("Tx.cuda.cluster_sync()", "if cbx == 0:"),),
        kind="deadlock",
        names="cluster barrier",
        why="CTA 1 does not reach the first cluster_sync.",
    ),
    Bug(
        "group-dropped-on-b",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            instead(
                "Tx.copy_async(Bsmem",
                "Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K],",
                '               dispatch="tma", cta_group=1, mbar=tma2mma_cta0.ptr_to([stage]))',
            ),
        ),
        kind="cluster",
        names="tma2mma[0]",
        why="Without cta_group=2 a load may signal only the barrier of the CTA that it writes to.",
    ),
    Bug(
        "group-dropped-on-a",
        10,
        **FOUR_OF_PAIR,
        edits=(
            instead(
                "Tx.copy_async(Asmem",
                "Tx.copy_async(Asmem[stage, c, :, :], A[a_st : a_st + BLK_M, k_st : k_st + BLK_K],",
                '               dispatch="tma", cta_group=1, mbar=tma2mma_cta0.ptr_to([stage]))',
            ),
        ),
        kind="cluster",
        names="tma2mma[0]",
        why="The same for A with two consumers.",
    ),
)

REPEATED = (
    Bug(
        "store-elected-in-each-warp",
        7,
        **EIGHT,
        edits=(head("if warp_id == 0:", "if True:", nth=2),),
        kind="race",
        severity="review",
        names="threads 0, 32, 64 and 96 each issue this copy",
        why="elect_sync elects one thread per warp: four store the same tile, which is slow and right.",
    ),
    Bug(
        "load-elected-in-three-warps",
        7,
        **EIGHT,
        edits=(head("if warp_id == 3:", "if warp_id > 0:"),),
        kind="race",
        names="threads 160, 192 and 224 each issue this copy",
        why="Three warps of WG1 load every tile.",
    ),
    Bug(
        "mma-elected-in-two-warps",
        7,
        **EIGHT,
        edits=(head("if warp_id == 0:", "if warp_id < 2:", nth=1),),
        kind="race",
        names="threads 128 and 160 each issue this MMA",
        why="Two warps of WG1 issue every MMA, and each accumulates.",
    ),
)

PENDING = (
    Bug(
        "store-not-awaited",
        4,
        ONE_TILE,
        (drop("Tx.ptx.cp_async.bulk.wait_group(0)"),),
        kind="async-pending",
        names="Dsmem",
        why="The CTA ends, and its shared memory with it, while TMA reads Dsmem.",
        severity="review",  # known chips let it finish
    ),
    Bug(
        "store-not-committed",
        5,
        ONE_TILE,
        (drop("Tx.ptx.cp_async.bulk.commit_group()"),),
        kind="async-pending",
        names="Dsmem",
        why="wait_group waits for committed groups: there is none.",
        severity="review",  # known chips let it finish
    ),
    Bug(
        "load-never-awaited",
        4,
        ONE_TILE,
        (after("Tx.ptx.cp_async.bulk.wait_group(0)", "tma_load(0)"),),
        kind="async-pending",
        names="tma_bar[0]",
        why="A load at the end that nobody waits for writes memory of a CTA that has gone.",
    ),
)
