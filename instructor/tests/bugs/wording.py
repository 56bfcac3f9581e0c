"""Mistakes that students make alone with the handout: the first finding names the cause, in their words.

Each is a Bug, what the hint must say, and the statement that the finding must point at.
"""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, ONE_TILE
from corpus import Bug, after, drop, head, replace, unwrap
from memory import SINGLE
from slips import TWO_PAIRS

_WAIT = "Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), "
_LD = "Tx.copy(Dreg_wg[:, :], tmem[:, :BLK_N])"
_COPY_A = "Tx.copy(Asmem[:, :], A[:, :])"
_EXPECT = "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([0]), TILE_BYTES"
_CTA_ID = "bx, by = Tx.cta_id(["

WAITS = (
    Bug(
        "parity-1-on-a-fresh-barrier",
        1,
        SINGLE,
        (replace(f"{_WAIT}0)", f"{_WAIT}1)"),),
        kind="race",
        names="passed at once: parity 1 on a fresh barrier",
        why="Nobody waits for the product.",
    ),
    Bug(
        "no-sync-after-the-copies",
        1,
        SINGLE,
        (drop("Tx.cuda.cta_sync()", nth=1),),
        kind="race",
        names="threads write, the tensor core reads, and no cta_sync stands between",
        why="The MMA starts when its own thread has copied.",
    ),
    Bug(
        "no-sync-after-the-k-loop",
        4,
        ONE_TILE,
        (drop("Tx.cuda.cta_sync()  # the product"),),
        kind="race",
        names="warps 1-3 did not wait for mma_bar[0]: only warp 0 lane 0 did",
        why="The elected thread's wait is its own.",
    ),
    Bug(
        "wait-by-the-elected-thread-alone",
        1,
        SINGLE,
        (drop(_WAIT), after("Tx.ptx.tcgen05.commit(", f"{_WAIT}0)")),
        kind="race",
        names="warps 1-3 did not wait for mma_bar[0]: only warp 0 lane 0 did",
        why="The others read tensor memory at once.",
    ),
    Bug(
        "next-tile-forgotten-by-tma",
        7,
        **EIGHT,
        edits=(drop("tile_scheduler.next_tile()"),),
        kind="deadlock",
        names="waits for mma2tma[0] once too often: nothing lets it leave the loop at lines",
        why="The TMA warp loads the first tile forever.",
    ),
    Bug(
        "next-tile-forgotten-by-tma-with-stages-to-spare",
        8,
        **EIGHT,
        edits=(drop("tile_scheduler.next_tile()"),),
        kind="deadlock",
        names="once too often: nothing lets it leave the loop at lines",
        why="There are more stages than K tiles: the endless wait is at a barrier that nobody signals.",
    ),
    Bug(
        "next-tile-forgotten-in-one-loop-of-all-warps",
        6,
        (256, 384, 64),
        (drop("tile_scheduler.next_tile()"),),
        kind="deadlock",
        names="warps 0, 1, 2, 3 never leave the loop at",
        why="The loop over tiles stores its first tile forever.",
    ),
    Bug(
        "elected-under-a-test-of-the-lane",
        4,
        ONE_TILE,
        (
            replace(
                "if warp_id == 0:\n                with Tx.thread",
                "if lane_id == 0:\n                with Tx.thread",
            ),
        ),
        kind="deadlock",
        names="waits for lanes 1-31 of its warp at elect_sync, which do not arrive",
        why="elect_sync waits for the whole warp.",
    ),
    Bug(
        "no-warpgroup-sync-before-the-store",
        7,
        **EIGHT,
        edits=(drop("Tx.cuda.warpgroup_sync(1)"),),
        kind="race",
        names="and no barrier of WG0 stands between",
        why="The store starts when its own thread has written.",
    ),
    Bug(
        "both-ctas-announce-all-bytes",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace(
                "if cbx == 0:\n                    tma2mma_cta0", "if True:\n                    tma2mma_cta0"
            ),
        ),
        kind="tx-count",
        names="CTA 0 and CTA 1 arrive on it at line",
        why="Each CTA announces the bytes of both: twice the bytes that come.",
        order="adverse",
    ),
    Bug(
        "both-ctas-announce-their-own-bytes",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace(
                "if cbx == 0:\n                    tma2mma_cta0.arrive(stage, TILE_BYTES)",
                "tma2mma_cta0.arrive(stage, TILE_BYTES // 2)",
            ),
        ),
        kind="mbarrier",
        names="CTA 0 and CTA 1 arrive on it at line",
        why="The sum is right, the count is not: init(1), and two arrive.",
    ),
    Bug(
        "each-cta-announces-at-its-own-barrier",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace("if cbx == 0:\n                    tma2mma_cta0.arrive", "tma2mma.arrive"),),
        kind="mbarrier",
        names="CTA 1 announces bytes at its own tma2mma[0], where no copy reports and nobody waits",
        why="All copies report to CTA 0: its barrier alone expects bytes.",
    ),
    Bug(
        "both-ctas-multiply",
        9,
        **EIGHT_OF_PAIR,
        edits=(unwrap("if cbx == 0:", nth=1),),
        kind="deadlock",
        names="CTA 1 runs the loop with the MMAs of the pair",
        why="One MMA computes for both CTAs, and CTA 0 issues it.",
    ),
    Bug(
        "two-roles-in-one-warp",
        7,
        (256, 384, 64),
        edits=(replace("if warp_id == 3:", "if warp_id == 0:"),),
        kind="deadlock",
        names="WG1 warp 0 lane 0, which would signal it",
        why="The loads use up the tiles: the loop with the MMAs finds none.",
    ),
    Bug(
        "roles-in-both-warpgroups",
        7,
        (256, 384, 64),
        edits=(unwrap("if wg_id == 1:"),),
        kind="race",
        names="threads 96 and 224 each issue this copy",
        why="Warps 3 and 0 of either warpgroup load and multiply.",
    ),
    Bug(
        "write-back-by-both-warpgroups",
        7,
        (256, 384, 64),
        edits=(unwrap("if wg_id == 0:", nth=1),),
        kind="collective",
        names="lane 0 of WG1 warp 3 does not take part: it loads by TMA",
        why="The warps that load and multiply reach the write-back, too.",
    ),
    Bug(
        "every-thread-copies-the-tile",
        1,
        SINGLE,
        (head("with Tx.cta():", "with Tx.thread():"),),
        kind="race",
        names="both write the same value, by the same statement",
        why="128 copies of the same tile: right, and slow.",
        severity="review",
    ),
    Bug(
        "write-back-not-yet-written",
        7,
        (512, 512, 192),  # one tile for each of 16 CTAs: with a second tile it is a deadlock
        (drop("if wg_id == 0:", nth=1),),
        kind="race",
        names="no thread waits for mma2ld[0]",
        why="A half-written step: TMA and MMA are there, and the product is freed under the MMA.",
    ),
)

PLACES = (
    Bug(
        "four-warps-store-the-same-rows",
        4,
        ONE_TILE,
        (replace("Tx.copy(Dsmem[warp_id * 32 + lane_id, :]", "Tx.copy(Dsmem[lane_id, :]"),),
        kind="race",
        names="both store it: their rows or columns overlap",
        why="The row lacks the warp.",
    ),
    Bug(
        "elements-in-place-of-bytes",
        4,
        ONE_TILE,
        (replace(f"{_EXPECT})", f"{_EXPECT} // F16_BYTES)"),),
        kind="tx-count",
        names="16384 B too many",
        why="expect_tx counts bytes.",
    ),
    Bug(
        "copy-with-exchanged-arguments",
        1,
        SINGLE,
        (replace(_COPY_A, "Tx.copy(A[:, :], Asmem[:, :])"),),
        kind="uninitialized",
        names="copies Asmem, which nobody has written, into A",
        why="The kernel writes its input.",
    ),
    Bug(
        "too-few-columns",
        1,
        SINGLE,
        (replace("n_cols=TMEM_COLS", "n_cols=64", 2),),
        kind="tmem-alloc",
        names="writes TMEM columns 0..127 of CTA 0, but only 64 columns are allocated",
        why="A 128x128 float32 accumulator takes 128 columns.",
    ),
    Bug(
        "grid-extents-exchanged",
        3,
        (256, 512, 64),
        (replace(f"{_CTA_ID}M // BLK_M, N // BLK_N]", f"{_CTA_ID}N // BLK_N, M // BLK_M]"),),
        kind="out-of-bounds",
        names="by CTA (2, 0, 0): row 256 of A, which has 256 rows",
        why="bx counts rows of tiles.",
    ),
    Bug(
        "k-loop-one-too-far",
        2,
        SINGLE,
        (replace("range(K_TILES)", "range(K_TILES + 1)"),),
        kind="out-of-bounds",
        names="A[127, 64] or A[128, 0], and A is 128 x 64",
        why="Columns past the last one continue in the next row; after the last row there is none.",
    ),
    Bug(
        "tile-column-not-scaled",
        3,
        (256, 256, 64),
        (replace("by * BLK_N", "by"),),
        kind="race",
        names="the write by CTA (0, 0, 0)",
        why="n_st is a column, not a tile.",
    ),
    Bug(
        "loads-in-a-loop-of-their-own",
        4,
        (256, 256, 256),
        (
            replace(
                "tma_load(k)\n" + 24 * " " + "Tx",
                f"tma_load(k)\n{20 * ' '}for k in range(K_TILES):\n{24 * ' '}Tx",
            ),
        ),
        kind="race",
        names="has neither waited for the first nor used it",
        why="All K tiles are loaded into one buffer before the first is multiplied.",
    ),
    Bug(
        "rows-of-one-consumer-for-both",
        10,
        **TWO_PAIRS,
        edits=(replace("d_m_st = Tx.meta_var(m_st + wg_id * BLK_M)", "d_m_st = Tx.meta_var(m_st)"),),
        kind="race",
        names="threads 0 and 128",
        why="Both warpgroups store their product to the same rows of D.",
    ),
)
REGISTERS = (
    Bug(
        "cast-forgotten",
        1,
        SINGLE,
        (drop("Tx.cast("),),
        kind="uninitialized",
        names="4 of 4 registers that nothing has set",
        why="Dreg_16b is stored, and nothing fills it.",
    ),
    Bug(
        "cast-of-what-was-never-read",
        1,
        SINGLE,
        (drop(_LD), replace("with Tx.warpgroup():", "with Tx.warpgroup():\n                pass")),
        kind="uninitialized",
        names="4 of 4 registers that nothing has set",
        why="The product stays in tensor memory.",
    ),
    Bug(
        "half-of-the-row-cast",
        4,
        ONE_TILE,
        (replace("Tx.cast(Dreg_16b[:], Dreg[:])", "Tx.cast(Dreg_16b[0:64], Dreg[0:64])"),),
        kind="uninitialized",
        names="registers that nothing has set",
        why="The other half of Dreg_16b goes to Dsmem as it is.",
    ),
)
GROUPS = (WAITS, PLACES, REGISTERS)

HINTS = {  # name -> in the hint
    "two-roles-in-one-warp": "give each warp one role",
    "roles-in-both-warpgroups": "of wg_id where there are several",
    "write-back-by-both-warpgroups": "is there a test of wg_id",
    "every-thread-copies-the-tile": "`with Tx.cta():` shares it",
    "each-cta-announces-at-its-own-barrier": "if cbx == 0:",
    "both-ctas-multiply": "if cbx == 0:",
    "no-warpgroup-sync-before-the-store": "then comes warpgroup_sync(1)",
    "next-tile-forgotten-in-one-loop-of-all-warps": "next_tile()",
    "elected-under-a-test-of-the-lane": "if warp_id == ..",
    "parity-1-on-a-fresh-barrier": "phase 0",
    "no-sync-after-the-copies": "cta_sync()",
    "no-sync-after-the-k-loop": "cta_sync()",
    "next-tile-forgotten-by-tma": "next_tile()",
    "next-tile-forgotten-by-tma-with-stages-to-spare": "next_tile()",
    "both-ctas-announce-all-bytes": "if cbx == 0:",
    "both-ctas-announce-their-own-bytes": "if cbx == 0:",
    "write-back-not-yet-written": "the write-back",
    "cast-forgotten": "Tx.cast",
    "four-warps-store-the-same-rows": "a row of its own",
    "copy-with-exchanged-arguments": "Tx.copy(dst, src)",
    "too-few-columns": "allocate 128 columns or more",
    "grid-extents-exchanged": "extents of cta_id",
    "loads-in-a-loop-of-their-own": "belong to one round of one K loop",
    "rows-of-one-consumer-for-both": "name the warpgroup (wg_id)",
}
STATEMENTS = {  # name -> the statement that the finding points at
    "both-ctas-announce-all-bytes": "tma2mma_cta0.arrive(stage, TILE_BYTES)",
    "both-ctas-announce-their-own-bytes": "tma2mma_cta0.arrive(stage, TILE_BYTES // 2)",
    "parity-1-on-a-fresh-barrier": f"{_WAIT}1)",
    "no-sync-after-the-k-loop": _LD,
    "elements-in-place-of-bytes": _EXPECT,
    "copy-with-exchanged-arguments": "Tx.copy(A[:, :], Asmem[:, :])",
    "cast-forgotten": "Tx.copy(D[",
    "half-of-the-row-cast": "Tx.copy(Dsmem[",
}
