"""The same mistakes once more, in another kernel or another form: each class of mistakes has at least two."""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, after, drop, guard, head, replace, unwrap
from memory import ELECTED, SINGLE

ASYNC_READ = replace("Tx.copy(Dreg_wg[:, :], tmem[", "Tx.copy_async(Dreg_wg[:, :], tmem[")
WAIT_LD = "Tx.ptx.tcgen05.wait.ld()"

BARRIERS = (
    Bug(
        "arrive-one-lane-two-consumers",
        10,
        **FOUR_OF_PAIR,
        edits=(guard("ld2mma.arrive(wg_id, cta_id=0)", "if lane_id == 0:"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="8 of 256 arrivals come: one lane of each warp of both CTAs.",
    ),
    Bug(
        "count-one-consumer",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2tma.init(NUM_CONSUMER)", "mma2tma.init(1)"),),
        kind="mbarrier",
        names="mma2tma[0]",
        why="Two consumers commit per stage: the first commit frees it under the second; two phases pass.",
    ),
    Bug(
        "bytes-half-roles",
        8,
        **EIGHT,
        edits=(replace("BLK_N * BLK_K) * F16_BYTES", "BLK_N * BLK_K) * F16_BYTES // 2"),),
        kind="tx-count",
        names="tma2mma[0]",
        why="Expects 16384 B, TMA delivers 32768 B.",
    ),
    Bug(
        "bytes-of-one-cta-consumers",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("TILE_BYTES = CTA_GROUP * (", "TILE_BYTES = ("),),
        kind="tx-count",
        names="tma2mma[0]",
        why="Both CTAs' loads report to CTA 0: the count lacks a factor of two.",
    ),
    Bug(
        "load-of-second-a-forgotten",
        10,
        **FOUR_OF_PAIR,
        edits=(head("for c in Tx.unroll(NUM_CONSUMER):", "for c in Tx.unroll(1):"),),
        kind="tx-count",
        names="tma2mma[0]",
        why="Two blocks of A are counted per CTA, one is loaded.",
    ),
)

ISSUE = (
    Bug(
        "mma-not-elected-roles",
        7,
        **EIGHT,
        edits=(head(ELECTED, "with Tx.thread():", nth=1),),
        kind="illegal",
        names="tcgen05.mma",
        why="32 lanes of the MMA warp issue each MMA.",
    ),
    Bug(
        "store-not-committed-step-4",
        4,
        ONE_TILE,
        (drop("Tx.ptx.cp_async.bulk.commit_group()"),),
        kind="async-pending",
        names="Dsmem",
        why="wait_group waits for committed groups: there is none.",
        severity="review",  # known chips let it finish
    ),
    Bug(
        "store-not-awaited-step-5",
        5,
        ONE_TILE,
        (drop("Tx.ptx.cp_async.bulk.wait_group(0)"),),
        kind="async-pending",
        names="Dsmem",
        why="The CTA ends, and its shared memory with it, while TMA reads Dsmem.",
        severity="review",  # known chips let it finish
    ),
    Bug(
        "no-commit-group-persistent",
        6,
        **EIGHT,
        edits=(drop("Tx.ptx.cp_async.bulk.commit_group()"),),
        kind="race",
        names="Dsmem",
        why="wait_group waits for nothing: the next tile overwrites Dsmem under TMA.",
    ),
)

TMEM = (
    Bug(
        "alloc-in-three-warpgroups",
        10,
        **FOUR_OF_PAIR,
        edits=(unwrap("if wg_id == 0:"),),
        kind="tmem-alloc",
        names="tcgen05.alloc",
        why="warp_id counts within a warpgroup: three warps of each CTA ask for all columns.",
    ),
    Bug(
        "alloc-too-few-columns",
        1,
        SINGLE,
        (replace("n_cols=TMEM_COLS", "n_cols=64", 2),),
        kind="tmem-alloc",
        names="tcgen05.mma",
        why="The product has 128 columns, 64 are allocated.",
    ),
    Bug(
        "alloc-too-few-columns-roles",
        7,
        **EIGHT,
        edits=(replace("n_cols=TMEM_COLS", "n_cols=64", 2),),
        kind="tmem-alloc",
        names="tcgen05.mma",
        why="The same in the roles of step 7.",
    ),
    Bug(
        "dealloc-for-one-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace(
                "dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=CTA_GROUP)",
                "dealloc(tmem_addr[0], n_cols=TMEM_COLS, cta_group=1)",
            ),
        ),  # fmt: skip
        kind="build",
        names="cta_group=1",
        why="What was allocated with cta_group 2 is freed with cta_group 2.",
    ),
    Bug(
        "alloc-for-one-cta",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("n_cols=TMEM_COLS, cta_group=CTA_GROUP", "n_cols=TMEM_COLS, cta_group=1", 2),),
        kind="build",
        names="cta_group=1",
        why="The MMA of a pair of CTAs needs columns that were allocated with cta_group 2.",
    ),
    Bug(
        "registers-before-wait-ld",
        1,
        SINGLE,
        (ASYNC_READ, after("Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])", WAIT_LD)),
        kind="async-pending",
        names="tcgen05.ld",
        why="The registers of tcgen05.ld have no value before its wait.",
        severity="review",  # ptxas makes the reader wait
    ),
    Bug(
        "registers-before-wait-ld-grid",
        3,
        ONE_TILE,
        (ASYNC_READ, after("Tx.copy(D[m_st + warp_id * 32 + lane_id,", WAIT_LD)),
        kind="async-pending",
        names="tcgen05.ld",
        why="The same on a grid.",
        severity="review",
    ),
    Bug(
        "no-wait-ld-step-1",
        1,
        SINGLE,
        (ASYNC_READ,),
        kind="race",
        names="tcgen05.wait::ld",
        why="Nothing waits for tcgen05.ld: TMEM is freed while it is read.",
        severity="review",  # chips have read the columns once a register was read
    ),
    Bug(
        "no-wait-ld-pair",
        9,
        **EIGHT_OF_PAIR,
        edits=(ASYNC_READ,),
        kind="race",
        names="tcgen05.wait::ld",
        why="Nothing waits for tcgen05.ld in either CTA.",
        severity="review",  # chips have read the columns once a register was read
    ),
    Bug(
        "arrive-before-wait-ld-pair",
        9,
        **EIGHT_OF_PAIR,
        edits=(ASYNC_READ, after("ld2mma.arrive(0, cta_id=0)", WAIT_LD)),
        kind="race",
        names="tensor memory",
        why="ld2mma is signalled before the wait for the loads.",
        severity="review",  # chips have read the columns once a register was read
    ),
)

OVERLAPS = (
    Bug(
        "dsmem-over-asmem-4-stages",
        8,
        **EIGHT,
        edits=(
            replace(
                "            Dsmem = pool", "            pool.move_base_to(1024)\n            Dsmem = pool"
            ),
        ),
        kind="race",
        names="Asmem",
        why="Dsmem overlaps the first stage of A, which TMA fills for the next tile.",
    ),
    Bug(
        "consumers-overlap-by-half",
        10,
        **FOUR_OF_PAIR,
        edits=(
            replace(
                "tmem[:, warp_id * MMA_N : warp_id * MMA_N + MMA_N]",
                "tmem[:, warp_id * BLK_N : warp_id * BLK_N + MMA_N]",
            ),
        ),  # fmt: skip
        kind="race",
        names="tensor memory",
        why="The second consumer's product starts in the middle of the first one's.",
    ),
    Bug(
        "consumers-multiply-same-a",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("Asmem[stage, warp_id, :, :]", "Asmem[stage, 0, :, :]"),),
        kind="result",
        names="row",
        why="Both consumers multiply the first block of A.",
    ),
    Bug(
        "coordinates-swapped-roles",
        7,
        **EIGHT,
        edits=(
            replace("A[m_st : m_st + BLK_M, k_st", "A[n_st : n_st + BLK_M, k_st"),
            replace("B[n_st : n_st + BLK_N, k_st", "B[m_st : m_st + BLK_N, k_st"),
        ),
        kind="result",
        names="row",
        why="A is loaded with B's coordinates and B with A's.",
    ),
)
