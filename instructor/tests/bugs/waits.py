"""Mistakes in which role waits for which: dropped or misplaced waits and barriers, mixed-up stages.

A dropped wait is a race in whatever order the run goes: the barrier that nobody waited for must be named.
"""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, before, drop, guard, instead, replace
from memory import SINGLE

FOUR_TILES = (256, 256, 192)  # steps 3-5: a grid of 2 x 2, three K tiles


def _race(name: str, step: int, where: dict, edits: tuple, names: str, why: str, **more) -> Bug:
    return Bug(name, step, **where, edits=edits, kind="race", names=names, why=why, **more)


DROPPED = (
    _race(
        "no-wait-tma2mma",
        7,
        EIGHT,
        (drop("tma2mma.wait("),),
        "tma2mma",
        "MMA reads A and B before TMA wrote them.",
    ),
    _race(
        "no-wait-mma2tma",
        7,
        EIGHT,
        (drop("mma2tma.wait("),),
        "mma2tma",
        "TMA overwrites a stage that MMA may read.",
    ),
    _race(
        "no-wait-mma2ld",
        7,
        EIGHT,
        (drop("mma2ld.wait("),),
        "mma2ld",
        "The accumulator is read while MMA writes it.",
    ),
    _race(
        "no-wait-ld2mma",
        7,
        EIGHT,
        (drop("ld2mma.wait("),),
        "ld2mma",
        "The next tile's first MMA overwrites TMEM that is still being read.",
    ),
    _race(
        "no-wait-tma2mma-4-stages", 8, EIGHT, (drop("tma2mma.wait("),), "tma2mma", "Also with four stages."
    ),
    _race(
        "no-wait-mma2tma-4-stages",
        8,
        EIGHT,
        (drop("mma2tma.wait("),),
        "mma2tma",
        "Four stages hide it for three K tiles, not for the second tile.",
    ),
    _race(
        "no-wait-tma2mma-pair",
        9,
        EIGHT_OF_PAIR,
        (drop("tma2mma.wait("),),
        "tma2mma",
        "CTA 0 multiplies before its own and its peer's tiles are there.",
    ),
    _race(
        "no-wait-mma2tma-pair",
        9,
        EIGHT_OF_PAIR,
        (drop("mma2tma.wait("),),
        "mma2tma",
        "Both CTAs overwrite stages that the pair's MMA still reads.",
    ),
    _race(
        "no-wait-mma2ld-two-consumers",
        10,
        FOUR_OF_PAIR,
        (drop("mma2ld.wait("),),
        "mma2ld",
        "Both write-back warpgroups read unfinished products.",
    ),
    _race(
        "no-wait-ld2mma-two-consumers",
        10,
        FOUR_OF_PAIR,
        (drop("ld2mma.wait("),),
        "ld2mma",
        "Both consumers overwrite products that are being read.",
    ),
    _race(
        "no-wait-mma-step-1",
        1,
        {"size": SINGLE},
        (drop("Tx.ptx.mbarrier.try_wait(mma_bar"),),
        "mma_bar",
        "TMEM is read while the tensor core may still write it.",
    ),
    _race(
        "no-wait-mma-step-2",
        2,
        {"size": ONE_TILE},
        (drop("Tx.ptx.mbarrier.try_wait(mma_bar"),),
        "mma_bar",
        "The next copies overwrite A and B under the tensor core.",
    ),
    _race(
        "no-wait-tma-step-4",
        4,
        {"size": ONE_TILE},
        (drop("Tx.ptx.mbarrier.try_wait(tma_bar"),),
        "tma_bar",
        "MMA is issued right behind the copies.",
    ),
    _race(
        "no-wait-mma-step-4",
        4,
        {"size": ONE_TILE},
        (drop("Tx.ptx.mbarrier.try_wait(mma_bar"),),
        "mma_bar",
        "The next load overwrites A and B under the tensor core, and TMEM is read too early.",
    ),
    _race(
        "no-wait-tma-step-5",
        5,
        {"size": FOUR_TILES},
        (drop("Tx.ptx.mbarrier.try_wait(", 0),),
        "tma_bar",
        "The prefetched stages are used without waiting for them.",
    ),
)

MISPLACED = (
    _race(
        "load-before-wait",
        5,
        {"size": (128, 128, 320)},
        (
            before(
                "Tx.ptx.mbarrier.try_wait(",
                "if k + PIPE_DEPTH < K_TILES:",
                "    tma_load(k + PIPE_DEPTH, stage)",
                nth=1,
            ),
            drop("if k + PIPE_DEPTH < K_TILES:", nth=1),
        ),
        "mma_bar",
        "The next load goes into the stage that the MMA just issued reads.",
    ),
    _race(
        "wait-by-one-warp",
        2,
        {"size": ONE_TILE},
        (guard("Tx.ptx.mbarrier.try_wait(mma_bar", "if warp_id == 0:"),),
        "mma_bar",
        "The other three warps overwrite A and B without having waited.",
    ),
    _race(
        "wait-by-one-warp-at-one-tile",
        2,
        {"size": (128, 128, 64)},
        (guard("Tx.ptx.mbarrier.try_wait(mma_bar", "if warp_id == 0:"),),
        "warps 1-3 did not wait for mma_bar[0]: only warp 0 did",
        "Nothing is overwritten where there is one K tile; the other three warps read TMEM too early.",
    ),
    _race(
        "wait-for-stage-0",
        8,
        EIGHT,
        (replace("tma2mma.wait(mma_phase.stage,", "tma2mma.wait(0,"),),
        "tma2mma",
        "Only stage 0 is waited for; the MMA reads stages 1 to 3 as they are.",
    ),
    _race(
        "mma-next-stage",
        8,
        EIGHT,
        (replace("mma(mma_phase.stage, k != 0)", "mma((mma_phase.stage + 1) % PIPE_DEPTH, k != 0)"),),
        "tma2mma",
        "Stage index wrong by one: the stage waited for is not the one that is read.",
    ),
    _race(
        "load-next-stage",
        7,
        EIGHT,
        (replace("Asmem[stage, :, :], A[m_st", "Asmem[(stage + 1) % PIPE_DEPTH, :, :], A[m_st"),),
        "Asmem",
        "A goes into the neighbouring stage, which MMA may be reading.",
    ),
    _race(
        "prefetch-wrong-stage",
        5,
        {"size": (128, 128, 320)},
        (replace("tma_load(k + PIPE_DEPTH, stage)", "tma_load(k + PIPE_DEPTH, (stage + 1) % PIPE_DEPTH)"),),
        "smem",
        "The refill goes into the stage that is loaded but not yet used.",
    ),
    _race(
        "commit-before-mma",
        7,
        EIGHT,
        (
            drop("mma2tma.arrive(stage, cta_group=1, cta_mask=1)"),
            before("Tx.gemm_async(", "mma2tma.arrive(stage, cta_group=1, cta_mask=1)"),
        ),
        "Asmem",
        "A commit covers only what was issued before it: the stage is handed back too early.",
    ),
    _race(
        "mma2ld-before-last-mma",
        7,
        EIGHT,
        (
            drop("mma2ld.arrive(0, cta_group=1, cta_mask=1)"),
            before(
                "mma(mma_phase.stage, k != 0)",
                "if k == K_TILES - 1:",
                "    mma2ld.arrive(0, cta_group=1, cta_mask=1)",
            ),
        ),
        "tensor memory",
        "mma2ld is committed before the last MMA, so it does not cover it.",
    ),
)

EARLY = (
    _race(
        "tmem-handed-back-before-last-read",
        10,
        FOUR_OF_PAIR,
        (replace("if i == MMA_N // EPI_N - 1:", "if i == 0:"),),
        "ld2mma[0] of CTA 0 was signalled",
        "All threads arrive on ld2mma once the first of four chunks of TMEM is read.",
    ),
    _race(
        "tmem-handed-back-before-first-read",
        7,
        EIGHT,
        (drop("ld2mma.arrive(0)"), before("for i in Tx.unroll(BLK_N // EPI_N):", "ld2mma.arrive(0)")),
        "ld2mma[0] was signalled",
        "The arrive stands in front of the loop that reads TMEM.",
    ),
)

CTA_BARRIERS = (
    _race(
        "no-sync-after-alloc",
        8,
        EIGHT,
        (drop("Tx.cuda.cta_sync()", 0),),
        "tmem_addr",
        "The address that alloc wrote is read before the warps have met.",
    ),
    _race(
        "no-sync-after-copies",
        3,
        {"size": FOUR_TILES},
        (drop("Tx.cuda.cta_sync()", 1),),
        "smem",
        "MMA is issued while other threads still copy.",
    ),
    _race(
        "no-sync-before-tmem-read",
        5,
        {"size": ONE_TILE},
        (drop("Tx.cuda.cta_sync()", 1),),
        "tensor memory",
        "Only the elected thread has waited for the product; the others read at once.",
    ),
    _race(
        "no-sync-before-tmem-read-persistent",
        6,
        EIGHT,
        (drop("Tx.cuda.cta_sync()", 1),),
        "tensor memory",
        "The same, for every tile.",
    ),
    _race(
        "no-sync-before-store",
        4,
        {"size": FOUR_TILES},
        (drop("Tx.cuda.cta_sync()", 2),),
        "Dsmem",
        "TMA reads Dsmem while other threads still write their rows.",
    ),
    _race(
        "no-sync-before-store-roles",
        7,
        EIGHT,
        (drop("Tx.cuda.warpgroup_sync(1)", 0),),
        "Dsmem",
        "The first of the two warpgroup barriers: Dsmem is not complete when TMA reads it.",
    ),
    _race(
        "no-sync-after-store-roles",
        7,
        EIGHT,
        (drop("Tx.cuda.warpgroup_sync(1)", 1),),
        "Dsmem",
        "The second: threads that did not wait for the store write the next chunk over it.",
    ),
    _race(
        "no-sync-before-store-persistent",
        6,
        EIGHT,
        (drop("Tx.cuda.cta_sync()", 2),),
        "Dsmem",
        "TMA reads Dsmem while other threads still write their rows of this tile.",
    ),
    _race(
        "shared-barrier-id",
        10,
        FOUR_OF_PAIR,
        (replace("Tx.cuda.warpgroup_sync(1 + wg_id)", "Tx.cuda.warpgroup_sync(1)", 2),),
        "Dsmem",
        "Two warpgroups share one 128-thread barrier: either may release the other's half.",
    ),
    Bug(
        "init-not-visible",
        7,
        **EIGHT,
        edits=(drop("Tx.cuda.cta_sync()", 0),),
        kind="mbarrier",
        names="nothing orders",
        why="The other warps use barriers that thread 0 may not have initialised yet.",
    ),
    Bug(
        "init-not-visible-to-peer",
        9,
        **EIGHT_OF_PAIR,
        edits=(instead("Tx.cuda.cluster_sync()", "Tx.cuda.cta_sync()"),),
        kind="mbarrier",
        names="nothing orders",
        why="cta_sync does not wait for the other CTA's barriers.",
    ),
)

OUTPUT = (
    _race(
        "ctas-share-rows",
        3,
        {"size": FOUR_TILES},
        (replace("m_st = Tx.meta_var(bx * BLK_M)", "m_st = Tx.meta_var(by * BLK_M)"),),
        "of the grid (cta_id) both store it",
        "Two CTAs write the same tile of D, and nobody the others.",
    ),
    _race(
        "ctas-share-tile-tma",
        4,
        {"size": FOUR_TILES},
        (replace("n_st = Tx.meta_var(by * BLK_N)", "n_st = Tx.meta_var(bx * BLK_N)"),),
        "of the grid (cta_id) both store it",
        "The same through TMA stores.",
    ),
    _race(
        "rows-of-one-warp",
        3,
        {"size": FOUR_TILES},
        (replace("m_st + warp_id * 32 + lane_id", "m_st + lane_id"),),
        "both store it: their rows or columns overlap",
        "All four warps write the first 32 rows of D.",
    ),
)

BUGS = DROPPED + MISPLACED + EARLY + CTA_BARRIERS + OUTPUT
