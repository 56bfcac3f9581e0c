"""Slips of list 21 of research/advice at other steps: memory of two buffers, a load before the MMA that reads
what it overwrites, and what is reported if no cause is proven.
"""

from __future__ import annotations

from corpus import Bug, after, before, drop, guard, instead, replace
from slips import TWO_CTAS, TWO_PAIRS

RELINQUISH = "                Tx.ptx.tcgen05.relinquish_alloc_permit"

MEMORY = (
    Bug(
        "result-over-the-stages-of-the-loads",
        8,
        **TWO_CTAS,
        edits=(
            before("Dsmem = pool.alloc", "pool.move_base_to(1024)"),
            after("Dsmem = pool.alloc", "pool.move_base_to(1024 + PIPE_DEPTH * TILE_BYTES)"),
        ),
        kind="race",
        names="Asmem and Dsmem share this memory (Dsmem begins 0 B after the start of Asmem)",
        why="The loads are in the next tile when this one is written back.",
    ),
    Bug(
        "stage-loaded-in-front-of-its-mma",
        5,
        size=(256, 384, 320),
        edits=(
            drop("if k + PIPE_DEPTH < K_TILES:"),
            instead(
                "mma(stage, k != 0)",
                "if k + PIPE_DEPTH < K_TILES:",
                "    tma_load(k + PIPE_DEPTH, stage)",
                "mma(stage, k != 0)",
            ),
        ),
        kind="race",
        names="this load is issued after the wait for tma_bar[0] (line ",
        why="The data was waited for, but is overwritten before an MMA reads it: no wait is missing.",
    ),
)

EVIDENCE = (
    Bug(
        "second-mma-warp-relies-on-the-first-for-tensor-memory",
        10,
        **TWO_PAIRS,
        edits=(
            guard("ld2mma.wait(warp_id, ld_phase", "if warp_id == 0:"),
            after("if warp_id == 0:", "if warp_id == 0:", "    ld2mma.wait(1, ld_phase.phase)", nth=-1),
        ),
        kind="race",
        names="which issued it, never waits for ld2mma[1]",
        why="Its MMAs overwrite what is still read; the commits of both warps count together, rightly.",
    ),
    Bug(
        "copies-in-front-of-the-wait-for-the-mma-before",
        3,
        size=(128, 256, 192),
        edits=(
            drop("Tx.ptx.mbarrier.try_wait(mma_bar"),
            drop("phase_mma = phase_mma ^ 1"),
            before(
                "Tx.ptx.fence.proxy_async",
                "if k > 0:",
                "    Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase_mma)",
                "    phase_mma = phase_mma ^ 1",
                nth=1,
            ),
            before("Dreg = ", "Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase_mma)"),
        ),
        kind="race",
        names="only afterwards",
        why="The wait is there, but after the operation that it should precede.",
    ),
    Bug(
        "second-write-back-never-waits-for-its-product",
        10,
        **TWO_PAIRS,
        edits=(guard("mma2ld.wait(wg_id, wb_phase", "if wg_id == 0:"),),
        kind="race",
        names="waited for no mbarrier before",
        why="There is nobody to take another slot: no slot is wrong.",
    ),
)

UNWAITED = (
    Bug(
        "no-mma-waits-for-its-data",
        9,
        size=(512, 512, 320),
        ctas=2,
        edits=(drop("tma2mma.wait(mma_phase"),),
        order=1,
        kind="race",
        names="is issued with no wait for tma2mma before it; nobody has one in this run",
        why="The load comes over what an MMA read too early: the slot that the load waits for is right.",
    ),
    Bug(
        "first-mma-of-a-tile-waits-for-no-data",
        9,
        size=(768, 512, 320),
        ctas=4,
        edits=(guard("tma2mma.wait(mma_phase", "if k != 0:"),),
        order="adverse",
        kind="race",
        names="is issued with no wait for tma2mma before it; other rounds have one (line ",
        why="Only every other K tile is waited for.",
    ),
    Bug(
        "store-waited-for-at-the-barrier-of-the-loads",
        5,
        size=(256, 384, 192),
        edits=(
            instead(
                "Tx.ptx.cp_async.bulk.wait_group(0)",
                "Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase_mma)",
            ),
        ),
        kind="deadlock",
        names="each of the 3 phases of mma_bar has been waited for already (line ",
        why="A store reports to its group; the loop that signals the barrier is not too short.",
    ),
)

FREED = (
    Bug(
        "tensor-memory-freed-with-every-tile",
        6,
        **TWO_CTAS,
        edits=(
            replace(
                "            if warp_id == 0:\n" + RELINQUISH,
                "                if warp_id == 0:\n    " + RELINQUISH,
            ),
            replace("    Tx.ptx.tcgen05.dealloc(", "        Tx.ptx.tcgen05.dealloc("),
        ),
        kind="tmem-alloc",
        names="which warp 0 has freed by then (line ",
        why="There are barriers before it, but the next tile has no tensor memory any more.",
    ),
)

GROUPS = (MEMORY, EVIDENCE, UNWAITED, FREED)
