"""Mistakes with tensor memory, shared memory and buffers."""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, after, before, drop, guard, head, instead, replace, unwrap

DEALLOC = "Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group="
ELECTED = 'with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:'
SINGLE = (128, 128, 64)  # step 1

TMEM = (
    Bug(
        "alloc-one-lane",
        1,
        SINGLE,
        (guard("Tx.ptx.tcgen05.alloc(", "if lane_id == 0:"),),
        kind="collective",
        names="tcgen05.alloc",
        why="alloc is .sync.aligned: all 32 lanes of the warp execute it.",
    ),
    Bug(
        "alloc-elected",
        7,
        **EIGHT,
        edits=(guard("Tx.ptx.tcgen05.alloc(", ELECTED),),
        kind="collective",
        names="tcgen05.alloc",
        why="One elected thread is right for MMA and TMA, not for alloc.",
    ),
    Bug(
        "alloc-in-two-warpgroups",
        7,
        **EIGHT,
        edits=(unwrap("if wg_id == 0:"),),
        kind="tmem-alloc",
        names="tcgen05.alloc",
        why="warp_id counts within a warpgroup: warp 0 of both allocates 512 columns, the second waits.",
    ),
    Bug(
        "alloc-in-two-warps",
        8,
        **EIGHT,
        edits=(head("if warp_id == 0:", "if warp_id < 2:"),),
        kind="tmem-alloc",
        names="tcgen05.alloc",
        why="Two warps allocate all columns each; the second waits for columns that nobody frees.",
    ),
    Bug(
        "dealloc-missing",
        1,
        SINGLE,
        (drop("Tx.ptx.tcgen05.dealloc("),),
        kind="tmem-leak",
        names="512 columns",
        why="TMEM outlives the CTA unless it is freed: the next kernel's alloc waits forever.",
    ),
    Bug(
        "dealloc-missing-pair",
        10,
        **FOUR_OF_PAIR,
        edits=(drop("Tx.ptx.tcgen05.dealloc("),),
        kind="tmem-leak",
        names="512 columns",
        why="The same for the pair of CTAs.",
    ),
    Bug(
        "dealloc-before-read",
        1,
        SINGLE,
        (
            drop("Tx.ptx.tcgen05.dealloc("),
            before("with Tx.warpgroup():", "if warp_id == 0:", f"    {DEALLOC}1)"),
        ),
        kind="tmem-alloc",
        names="tcgen05.ld",
        why="The accumulator is freed before it is read.",
    ),
    Bug(
        "dealloc-per-tile",
        7,
        **EIGHT,
        edits=(
            drop("Tx.ptx.tcgen05.dealloc("),
            after("ld2mma.arrive(0)", "if warp_id == 0:", f"    {DEALLOC}1)"),
        ),
        kind="tmem-alloc",
        names="tcgen05.mma",
        why="Freed after the first tile, while the MMA warp goes on with the next.",
    ),
    Bug(
        "dealloc-other-warp",
        1,
        SINGLE,
        (head("if warp_id == 0:", "if warp_id == 1:", nth=-1),),
        kind="tmem-alloc",
        names="tcgen05.dealloc",
        why="One warp of the CTA does both alloc and dealloc.",
        severity="review",
    ),
    Bug(
        "one-k-tile-too-many",
        4,
        ONE_TILE,
        (replace("range(K_TILES)", "range(K_TILES + 1)"),),
        kind="out-of-bounds",
        names="1 phase of tma_bar bring nothing but zeros",
        why="D is right: TMA fills what lies behind the end of K with zeros. An MMA is for nothing.",
        severity="review",
    ),
    Bug(
        "dealloc-other-warp-roles",
        7,
        **EIGHT,
        edits=(head("if warp_id == 0:", "if warp_id == 2:", nth=-1),),
        kind="tmem-alloc",
        names="tcgen05.dealloc",
        why="One warp of the CTA does both alloc and dealloc.",
        severity="review",
    ),
    Bug(
        "dealloc-half",
        3,
        (128, 128, 192),
        (replace(f"{DEALLOC}1)", "Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=256, cta_group=1)"),),
        kind="tmem-alloc",
        names="tcgen05.dealloc",
        why="dealloc takes the size that alloc was given.",
    ),
    Bug(
        "dealloc-before-peer",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            drop("Tx.cuda.cluster_sync()", nth=1),
            after("if wg_id == 0:", "Tx.cuda.cluster_sync()", nth=-1),
        ),
        kind="tmem-alloc",
        names="tcgen05.dealloc",
        why="With cta_group 2 both CTAs must be done with TMEM before either frees it; known chips wait.",
        severity="review",
    ),
    Bug(
        "dealloc-before-peer-consumers",
        10,
        **FOUR_OF_PAIR,
        edits=(instead("Tx.cuda.cluster_sync()", "Tx.cuda.cta_sync()", nth=1),),
        kind="tmem-alloc",
        names="tcgen05.dealloc",
        why="cta_sync waits for the own CTA; the peer may still read its half. Known chips wait.",
        severity="review",
    ),
    Bug(
        "no-final-cluster-sync",
        9,
        **EIGHT_OF_PAIR,
        edits=(drop("Tx.cuda.cluster_sync()", nth=1),),
        kind="cluster",
        names="ld2mma[0]",
        why="CTA 1's last arrival goes to CTA 0, which may have exited.",
    ),
    Bug(
        "cta-sync-at-the-end",
        10,
        **FOUR_OF_PAIR,
        edits=(instead("Tx.cuda.cluster_sync()", "Tx.cuda.cta_sync()", nth=1),),
        kind="cluster",
        names="ld2mma[",
        why="The same: cta_sync does not keep the CTA alive for its peer.",
    ),
)

UNINITIALIZED = (
    Bug(
        "accumulate-from-the-start",
        1,
        SINGLE,
        (replace("accum=False,", "accum=True,"),),
        kind="uninitialized",
        names="tensor memory",
        why="The first MMA adds to what TMEM happens to hold.",
    ),
    Bug(
        "accumulate-in-first-k",
        7,
        **EIGHT,
        edits=(replace("mma(mma_phase.stage, k != 0)", "mma(mma_phase.stage, True)"),),
        kind="uninitialized",
        names="tensor memory",
        why="The first K tile must overwrite.",
    ),
    Bug(
        "copy-of-b-forgotten",
        1,
        SINGLE,
        (drop("Tx.copy(Bsmem[:, :], B[:, :])"),),
        kind="uninitialized",
        names="Bsmem",
        why="The MMA reads shared memory that nobody filled.",
    ),
    Bug(
        "half-of-dsmem",
        4,
        ONE_TILE,
        (
            replace(
                "Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b[:])",
                "Tx.copy(Dsmem[warp_id * 32 + lane_id, :64], Dreg_16b[:64])",
            ),
        ),
        kind="uninitialized",
        names="Dsmem",
        why="Half the columns are never written before TMA stores the tile.",
    ),
    Bug(
        "half-of-dsmem-rows",
        7,
        **EIGHT,
        edits=(guard("Tx.copy(Dsmem[warp_id * 32 + lane_id, :], Dreg_16b", "if warp_id < 2:"),),
        kind="uninitialized",
        names="Dsmem",
        why="Two of four warps write their rows.",
    ),
    Bug(
        "half-the-mma",
        1,
        SINGLE,
        (
            instead("tmem[:, :BLK_N],", "tmem[:, :64],"),
            instead("Bsmem[:, :],", "Bsmem[:64, :],"),
        ),  # fmt: skip
        kind="uninitialized",
        names="tensor memory",
        why="64 columns are computed, 128 are read.",
    ),
    Bug(
        "half-the-output",
        3,
        (256, 128, 64),
        (
            replace(
                "Tx.copy(D[m_st + warp_id * 32 + lane_id, n_st : n_st + BLK_N], Dreg_16b[:])",
                "Tx.copy(D[m_st + warp_id * 32 + lane_id, n_st : n_st + 64], Dreg_16b[:64])",
            ),
        ),
        kind="uninitialized",
        names="D",
        why="Half the columns of D are never written.",
    ),
    Bug(
        "tiles-left-out",
        6,
        size=(512, 512, 64),
        ctas=2,
        edits=(replace("num_n_tiles=N // BLK_N", "num_n_tiles=N // BLK_N - 1"),),
        kind="uninitialized",
        names="D",
        why="The scheduler never hands out the last column of tiles.",
    ),
)

BOUNDS = (
    Bug(
        "row-plus-one",
        3,
        (128, 128, 64),
        (replace("D[m_st + warp_id * 32 + lane_id, n_st", "D[m_st + warp_id * 32 + lane_id + 1, n_st"),),
        kind="out-of-bounds",
        names="D",
        why="The last thread writes row M.",
    ),
    Bug(
        "rows-of-next-tile",
        3,
        (128, 128, 64),
        (replace("A[m_st : m_st + BLK_M, k_st", "A[m_st + 64 : m_st + 64 + BLK_M, k_st"),),
        kind="out-of-bounds",
        names="A",
        why="The tile's lower half lies past the end of A.",
    ),
    Bug(
        "base-not-1024-aligned",
        4,
        ONE_TILE,
        (
            before("_check_multiple(", "from tvm.backend.cuda.lang.alloc_pool import SMEMPool"),
            replace("pool.move_base_to(1024)", "pool.move_base_to(1152)"),
            replace(
                "Asmem = pool.alloc((BLK_M, BLK_K), F16, layout=A_LAYOUT)",
                "Asmem = SMEMPool.alloc(pool, (BLK_M, BLK_K), F16, align=128, layout=A_LAYOUT)",
            ),
        ),  # fmt: skip
        kind="misaligned",
        severity="review",  # TMA wrote it with the same pattern: known chips read it right
        names="Asmem",
        why="The 128-byte swizzle repeats every 1024 B; the MMA descriptor says that A starts on one.",
    ),
    Bug(
        "base-not-1024-aligned-stages",
        7,
        **EIGHT,
        edits=(
            before("_check_multiple(", "from tvm.backend.cuda.lang.alloc_pool import SMEMPool"),
            replace("pool.move_base_to(1024)", "pool.move_base_to(1280)"),
            replace(
                "Asmem = pool.alloc((PIPE_DEPTH, BLK_M, BLK_K), F16, layout=A_LAYOUT)",
                "Asmem = SMEMPool.alloc(pool, (PIPE_DEPTH, BLK_M, BLK_K), F16, align=128, layout=A_LAYOUT)",
            ),
        ),  # fmt: skip
        kind="misaligned",
        severity="review",  # TMA wrote it with the same pattern: known chips read it right
        names="Asmem",
        why="The same with two stages.",
    ),
    Bug(
        "alloc-after-commit",
        1,
        SINGLE,
        (
            drop("Bsmem = pool.alloc("),
            after("pool.commit()", "Bsmem = pool.alloc((BLK_N, BLK_K), F16, layout=B_LAYOUT)"),
        ),
        kind="build",
        names="pool.alloc() after pool.commit()",
        why="The buffer would lie outside the memory that commit() asked for.",
    ),
    Bug(
        "barrier-after-commit",
        7,
        **EIGHT,
        edits=(drop("ld2mma = MBarrier("), after("pool.commit()", 'ld2mma = MBarrier(pool, 1, "ld2mma")')),
        kind="build",
        names="pool.alloc() after pool.commit()",
        why="A barrier array is allocated from the pool too.",
    ),
)
