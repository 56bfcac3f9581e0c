"""Slips of research/advice, third list: barriers with two uses, diverging ring walks, consumers' columns."""

from __future__ import annotations

from corpus import Bug, after, drop, instead, replace
from slips import ONE_PAIR, TWO_CTAS, TWO_PAIRS

BARRIERS = (  # two uses, two arrivals, none at one of two
    Bug(
        "one-barrier-for-loads-and-mma",
        6,
        **TWO_CTAS,
        edits=(
            replace("tcgen05.commit(mma_bar.ptr_to([0])", "tcgen05.commit(tma_bar.ptr_to([0])"),
            replace("mma_bar.ptr_to([0]), phase_mma", "tma_bar.ptr_to([0]), phase_mma"),
        ),
        kind="deadlock",
        names="gets both the bytes of loads",
        why="Both loads and MMAs complete phases of tma_bar[0]; no flip of a phase fixes that.",
    ),
    Bug(
        "bytes-announced-with-each-copy",
        6,
        **TWO_CTAS,
        edits=(
            after(
                "Tx.copy_async(Asmem[stage, :, :]",
                "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([stage]), TILE_BYTES // 2)",
            ),
            instead(
                "Tx.ptx.mbarrier.arrive.expect_tx(",
                "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([stage]), TILE_BYTES // 2)",
                nth=1,
            ),
        ),
        kind="mbarrier",
        names="with no wait in between, but it has init(1)",
        why="Two arrivals per round, init counts one; that nobody waits for mma_bar yet is not the cause.",
    ),
    Bug(
        "both-consumers-announce-at-slot-0",
        10,
        **TWO_PAIRS,
        edits=(replace("mma2ld.arrive(warp_id,", "mma2ld.arrive(0,"),),
        kind="mbarrier",
        names="mma2ld[1] is waited for, but",
        why="Both MMA warps are meant to commit, each to its own slot: neither is one too many.",
    ),
    Bug(
        "stage-handed-back-by-one-of-two",
        10,
        **TWO_PAIRS,
        edits=(replace("mma2tma.init(NUM_CONSUMER)", "mma2tma.init(1)"),),
        kind="mbarrier",
        names="each for MMAs to its own columns, but it has init(1)",
        why="Both MMA warps release the stage: the count is wrong, not the number of threads.",
    ),
)
WALKS = (  # the same way for a while
    Bug(
        "stage-wraps-one-early",
        6,
        (384, 256, 320),
        ctas=2,
        edits=(
            replace("PIPE_DEPTH = 2", "PIPE_DEPTH = 4"),
            replace("stage = (stage + 1) % PIPE_DEPTH", "stage = (stage + 1) % (PIPE_DEPTH - 1)"),
        ),
        kind="deadlock",
        names="wait number 4 of its array is for tma_bar[0], signal number 4",
        why="The loads ahead fill four stages, the waits cycle through three.",
    ),
    Bug(
        "loads-ahead-from-stage-0-in-every-tile",
        6,
        (256, 256, 64),
        ctas=2,
        edits=(replace("tma_load(i, (stage + i) % PIPE_DEPTH)", "tma_load(i, i)"),),
        kind="deadlock",
        names="wait number 2 of its array is for tma_bar[1], signal number 2",
        why="The second tile is loaded from stage 0 on, while the waits continue from stage 1.",
    ),
    Bug(
        "tmem-waited-for-with-every-k-tile",
        7,
        **TWO_CTAS,
        edits=(
            drop("ld2mma.wait(0, ld_phase.phase)"),
            drop("ld_phase.move_to_next_stage()"),
            instead(
                "tma2mma.wait(mma_phase.stage, mma_phase.phase)",
                "ld2mma.wait(0, ld_phase.phase)",
                "ld_phase.move_to_next_stage()",
                "tma2mma.wait(mma_phase.stage, mma_phase.phase)",
            ),
        ),
        kind="deadlock",
        names="and signalled mma2ld 0 times, and waits again",
        why="The first wait passes as it should; the second K tile's is one too many.",
    ),
    Bug(
        "one-warp-writes-back",
        9,
        **ONE_PAIR,
        edits=(
            replace(
                "while tile_scheduler.valid():\n                    mma2ld.wait",
                "while tile_scheduler.valid() and warp_id == 0:\n                    mma2ld.wait",
            ),
        ),
        kind="deadlock",
        names="32 of 128 threads arrived, and no other thread can reach",
        why="No count of ld2mma would help: the barrier of the write-back lacks three warps, too.",
    ),
)
PLACES = (  # two things in one place, or one past the end
    Bug(
        "loads-ahead-to-one-stage",
        6,
        **TWO_CTAS,
        edits=(replace("tma_load(i, (stage + i) % PIPE_DEPTH)", "tma_load(i, stage)"),),
        kind="race",
        names="the thread loads both to one place in one round",
        why="No wait is missing between loads that are meant for two stages.",
    ),
    Bug(
        "operands-share-memory",
        8,
        **TWO_CTAS,
        edits=(
            replace(
                "            Bsmem = pool.alloc((PIPE_DEPTH,",
                "            pool.move_base_to(1024)\n            Bsmem = pool.alloc((PIPE_DEPTH,",
            ),
        ),
        kind="race",
        names="the thread loads both to one place in one round",
        why="B overlaps A: the loads of a round collide there, whatever is waited for.",
    ),
    Bug(
        "buffers-over-the-barriers",
        4,
        size=(256, 384, 192),
        edits=(replace("pool.move_base_to(1024)", "pool.move_base_to(0)"),),
        kind="mbarrier",
        names="lies in Asmem",
        why="What TMA loads overwrites the barriers and the address of tensor memory.",
    ),
    Bug(
        "warpgroup-as-consumer",
        10,
        **TWO_PAIRS,
        edits=(
            replace("if wg_id == NUM_CONSUMER:", "if wg_id == 0:"),
            replace("if wg_id < NUM_CONSUMER:", "if wg_id >= 1:"),
        ),
        kind="mbarrier",
        names="stage 2 of mma2ld, a barrier array of 2",
        why="Warpgroups 1 and 2 write back, and their numbers are no longer those of consumers.",
    ),
)
EARLY = (  # waits that come too early
    Bug(
        "tensor-memory-waited-for-at-the-end-of-the-tile",
        7,
        **TWO_CTAS,
        edits=(
            drop("ld2mma.wait(0, ld_phase.phase)"),
            drop("ld_phase.move_to_next_stage()"),
            instead(
                "mma2ld.arrive(0, cta_group=1, cta_mask=1)",
                "mma2ld.arrive(0, cta_group=1, cta_mask=1)",
                "ld2mma.wait(0, ld_phase.phase)",
                "ld_phase.move_to_next_stage()",
            ),
        ),
        kind="race",
        names="passed in the phase before the first",
        why="The wait behind the first tile passes at once: it is meant for that in front of it.",
    ),
)
COLUMNS = (
    Bug(
        "both-consumers-write-the-same-columns",
        10,
        **TWO_PAIRS,
        edits=(replace("tmem[:, warp_id * MMA_N : warp_id * MMA_N + MMA_N]", "tmem[:, :MMA_N]"),),
        kind="race",
        names="with different operands, and all write columns 0 to 255",
        why="Two warps are meant to multiply, each its own rows of A.",
    ),
    Bug(
        "product-of-each-stage-in-columns-of-its-own",
        7,
        **TWO_CTAS,
        edits=(replace("tmem[:, :BLK_N],", "tmem[:, stage * BLK_N : stage * BLK_N + BLK_N],"),),
        kind="uninitialized",
        names="the columns change from MMA to MMA",
        why="The first MMA overwrites; the second adds to columns that none has written.",
    ),
)
SEVENTH = (  # of the seventh list
    Bug(
        "product-announced-in-front-of-its-loop",
        7,
        **TWO_CTAS,
        edits=(
            drop("mma2ld.arrive(0,"),
            after("ld_phase.move_to_next_stage()", "mma2ld.arrive(0, cta_group=1, cta_mask=1)"),
        ),
        kind="race",
        names="was committed to",
        why="The first commit covers no MMA at all: these are of the same product, not of the next one.",
    ),
    Bug(
        "load-of-b-reports-to-the-barrier-of-the-mma",
        5,
        size=(256, 384, 192),
        edits=(
            instead(
                "Tx.copy_async(Bsmem[stage, :, :]",
                'other = Tx.meta_var({"dispatch": "tma", "cta_group": 1, "mbar": mma_bar.ptr_to([0])})',
                "Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **other)",
            ),
        ),
        kind="tx-count",
        names="mma_bar[0] of CTA 0 got 32768 B that nobody announced",
        why="The missing bytes arrived elsewhere, from both loads ahead.",
    ),
    Bug(
        "mma-waited-for-before-it-is-issued",
        4,
        size=(256, 384, 192),
        edits=(
            drop("Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0])"),
            instead("mma(k != 0)", "Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), phase)", "mma(k != 0)"),
        ),
        kind="deadlock",
        names="what would end this wait comes after it",
        why="One role alone, and no loop for each half of it: the order of the two is wrong.",
    ),
    Bug(
        "bytes-announced-before-room-is-waited-for",
        7,
        **TWO_CTAS,
        edits=(
            drop("tma2mma.arrive(stage, TILE_BYTES)"),
            instead(
                "mma2tma.wait(tma_phase",
                "tma2mma.arrive(tma_phase.stage, TILE_BYTES)",
                "mma2tma.wait(tma_phase.stage, tma_phase.phase)",
            ),
        ),
        order="adverse",
        kind="mbarrier",
        names="arrives again before the phase is over",
        why="It announces the next round's bytes in this phase; no copy is missing.",
    ),
    Bug(
        "one-buffer-for-all-stages",
        5,
        size=(256, 384, 192),
        edits=(replace("[stage, :, :]", "[0, :, :]", times=4),),
        kind="race",
        names="which was waited for, fill this place too",
        why="Each slot is signalled and waited for as it should be; both use one place.",
    ),
)

GROUPS = (BARRIERS, WALKS, PLACES, EARLY, COLUMNS, SEVENTH)
