"""Mistakes with mbarriers: init, counts, arrivals, phases, pipeline states, K loops, transaction bytes."""

from __future__ import annotations

from corpus import Bug, after, before, drop, guard, head, instead, replace

ONE_TILE = (128, 128, 192)  # steps 2, 4, 5: three K tiles
EIGHT = {"size": (512, 512, 192), "ctas": 2}  # steps 6-8: eight tiles per CTA, three K tiles each
EIGHT_OF_PAIR = {"size": (1024, 512, 192), "ctas": 2}  # step 9: eight tiles of one cluster
FOUR_OF_PAIR = {"size": (1024, 512, 192), "ctas": 2}  # step 10: four tiles of one cluster

INIT = (
    Bug(
        "init-in-warpgroup-1",
        7,
        **EIGHT,
        edits=(guard("ld2mma.init(128)", "if wg_id == 1:"),),
        kind="mbarrier",
        names="ld2mma[0]",
        why=".init() acts in thread 0 of the CTA, which is in warpgroup 0: nobody initialises ld2mma.",
    ),
    Bug(
        "init-in-tma-warp",
        8,
        **EIGHT,
        edits=(guard("mma2tma.init(1)", "if wg_id == 1:", "if warp_id == 3:"),),
        kind="mbarrier",
        names="mma2tma[0]",
        why="Initialising a barrier in the warp that waits on it: thread 0 never enters the guard.",
    ),
    Bug(
        "init-in-cta-1-only",
        9,
        **EIGHT_OF_PAIR,
        edits=(guard("tma2mma.init(1)", "if cbx == 1:"),),
        kind="mbarrier",
        names="tma2mma[0]",
        why="Both CTAs' loads report to CTA 0, whose barriers are never initialised.",
    ),
    Bug(
        "init-stage-0-only",
        5,
        size=ONE_TILE,
        edits=(head("for i in Tx.unroll(PIPE_DEPTH):", "for i in Tx.unroll(1):"),),
        kind="mbarrier",
        names="tma_bar[1]",
        why="Each stage has its own barrier; the second one is used without init.",
    ),
    Bug(
        "init-half-the-stages",
        8,
        **EIGHT,
        edits=(
            instead(
                "tma2mma.init(1)",
                "if wg_id == 0:",
                "    if warp_id == 0:",
                "        if lane_id == 0:",
                "            for s in Tx.unroll(2):",
                "                Tx.ptx.mbarrier.init(tma2mma.ptr_to([s]), 1)",
            ),
        ),
        kind="mbarrier",
        names="tma2mma[2]",
        why="The depth went from 2 to 4, the init loop did not.",
    ),
    Bug(
        "init-per-tile",
        6,
        **EIGHT,
        edits=(before("for i in Tx.unroll(PRE_NUM):", "Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)"),),
        kind="mbarrier",
        names="mma_bar[0]",
        why="A barrier is initialised once in a kernel; init while it is in use loses its phase.",
    ),
    Bug(
        "init-same-barrier-twice",
        4,
        size=ONE_TILE,
        edits=(replace("mbarrier.init(mma_bar.ptr_to([0]), 1)", "mbarrier.init(tma_bar.ptr_to([0]), 1)"),),
        kind="mbarrier",
        names="tma_bar[0]",
        why="Copy and paste: tma_bar is initialised twice, mma_bar never.",
    ),
    Bug(
        "init-without-sync",
        7,
        **EIGHT,
        edits=(drop("Tx.cuda.cta_sync()"),),
        kind="mbarrier",
        names="mma2tma[0]",
        why="Thread 0 initialises, the TMA warp waits; no barrier between makes the init visible to it.",
    ),
    Bug(
        "init-without-cluster-sync",
        9,
        **EIGHT_OF_PAIR,
        edits=(instead("Tx.cuda.cluster_sync()", "Tx.cuda.cta_sync()"),),
        kind="mbarrier",
        names="tma2mma[0]",
        why="CTA 1's loads report to CTA 0's barrier; cta_sync does not order CTA 0's init before them.",
    ),
)

COUNTS = (
    Bug(
        "count-too-big",
        7,
        **EIGHT,
        edits=(replace("ld2mma.init(128)", "ld2mma.init(256)"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="Warpgroup 0 has 128 threads: 128 of 256 arrivals come in a phase.",
    ),
    Bug(
        "count-of-consumers",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2ld.init(1)", "mma2ld.init(NUM_CONSUMER)"),),
        kind="deadlock",
        names="mma2ld[0]",
        why="Each slot of mma2ld gets one commit, from its own consumer.",
    ),
    Bug(
        "count-one-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace("ld2mma.init(128 * CTA_GROUP)", "ld2mma.init(128)"),),
        kind="mbarrier",
        names="ld2mma[0]",
        why="Both CTAs' threads arrive: two phases complete per tile where the MMA warp waits for one.",
    ),
    Bug(
        "count-half",
        7,
        **EIGHT,
        edits=(replace("ld2mma.init(128)", "ld2mma.init(64)"),),
        kind="mbarrier",
        names="ld2mma[0]",
        why="128 arrivals complete two phases of 64: the barrier runs ahead of the thread that waits on it.",
    ),
)

ARRIVALS = (
    Bug(
        "arrive-one-lane",
        7,
        **EIGHT,
        edits=(guard("ld2mma.arrive(0)", "if warp_id == 0:", "if lane_id == 0:"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="init(128), but one thread arrives: the MMA warp waits for its second tile forever.",
    ),
    Bug(
        "arrive-one-warp",
        9,
        **EIGHT_OF_PAIR,
        edits=(guard("ld2mma.arrive(0, cta_id=0)", "if warp_id == 0:"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="32 of 128 threads of each CTA arrive.",
    ),
    Bug(
        "arrive-twice",
        7,
        **EIGHT,
        edits=(after("ld2mma.arrive(0)", "ld2mma.arrive(0)"),),
        kind="mbarrier",
        names="ld2mma[0]",
        why="Two arrivals per thread and tile complete two phases where the MMA warp waits for one.",
    ),
    Bug(
        "arrive-twice-with-bytes",
        4,
        size=ONE_TILE,
        edits=(
            after(
                "Tx.ptx.mbarrier.arrive.expect_tx(",
                "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([0]), 0)",
            ),
        ),
        kind="mbarrier",
        names="tma_bar[0]",
        why="init(1) and two arrivals per K tile.",
    ),
    Bug(
        "arrive-on-wrong-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace("ld2mma.arrive(0, cta_id=0)", "ld2mma.arrive(0, cta_id=1)"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="The MMA warp of CTA 0 waits on its own barrier; all threads arrive on CTA 1's.",
    ),
    Bug(
        "arrive-on-own-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace("ld2mma.arrive(0, cta_id=0)", "ld2mma.arrive(0, cta_id=cbx)"),),
        kind="deadlock",
        names="ld2mma[0]",
        why="CTA 1 arrives on its own barrier, so that CTA 0's gets 128 of 256 arrivals.",
    ),
    Bug(
        "arrive-slot-from-stage",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("ld2mma.arrive(wg_id, cta_id=0)", "ld2mma.arrive(wb_phase.stage, cta_id=0)"),),
        kind="deadlock",
        names="ld2mma[1]",
        why="The slot is the consumer's number; the stage of a depth-1 state is always 0.",
    ),
    Bug(
        "commit-slot-from-stage",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2ld.arrive(warp_id, cta_group", "mma2ld.arrive(mma_phase.stage, cta_group"),),
        kind="deadlock",
        names="commits to it",
        why="After three K tiles the stage is 3: the commit goes past the end of mma2ld, onto ld2mma.",
    ),
    Bug(
        "mask-one-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace(
                "mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=3)",
                "mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=1)",
            ),
        ),  # fmt: skip
        kind="deadlock",
        names="mma2tma[0]",
        why="cta_mask=1 signals CTA 0 only; CTA 1's TMA warp never learns that its stage is free.",
    ),
    Bug(
        "mask-one-cta-result",
        10,
        **FOUR_OF_PAIR,
        edits=(
            replace(
                "mma2ld.arrive(warp_id, cta_group=CTA_GROUP, cta_mask=3)",
                "mma2ld.arrive(warp_id, cta_group=CTA_GROUP, cta_mask=1)",
            ),
        ),  # fmt: skip
        kind="deadlock",
        names="mma2ld[0]",
        why="CTA 1's write-back warpgroups never learn that the product is ready.",
    ),
)
