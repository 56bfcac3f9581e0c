"""Slips of lists 11 to 14 of research/advice: stages that do not advance, consumers that never wait, .."""

from __future__ import annotations

from corpus import Bug, after, before, drop, guard, head, instead, replace
from slips import TWO_CTAS, TWO_PAIRS

STAGES = (
    Bug(
        "stage-moves-on-only-where-a-load-follows",
        6,
        size=(384, 256, 64),
        ctas=2,
        edits=(
            replace(
                "                            stage = (stage + 1)",
                "                                stage = (stage + 1)",
            ),
            replace(
                "                            if stage == 0:\n    ",
                "                                if stage == 0:\n        ",
            ),
        ),
        kind="deadlock",
        names="uses tma_bar[0] again and again",
        why="With one K tile no load follows: the stage does not advance, and no flip would fix that.",
    ),
    Bug(
        "each-cta-runs-one-mma-warp",
        10,
        **TWO_PAIRS,
        edits=(head("if cbx == 0:", "if cbx == warp_id:", nth=-1),),
        kind="deadlock",
        names="CTA 1 runs the loop with the MMAs of the pair",
        why="Each consumer has a slot of mma2ld of its own: no role should walk through them.",
    ),
)
WAITS = (
    Bug(
        "second-consumer-relies-on-the-wait-of-the-first",
        10,
        **TWO_PAIRS,
        edits=(guard("tma2mma.wait(mma_phase", "if warp_id == 0:"),),
        kind="uninitialized",
        names="WG2 warp 1 did not wait for tma2mma",
        why="Its early MMAs also read stages that are refilled later: that is a consequence.",
    ),
)
HANDED_BACK = (  # released by some warps, and by none of the others
    Bug(
        "one-thread-hands-tensor-memory-back-for-all",
        8,
        **TWO_CTAS,
        edits=(
            replace("ld2mma.init(128)", "ld2mma.init(1)"),
            guard("ld2mma.arrive(0", "if warp_id == 0 and lane_id == 0:"),
        ),
        kind="race",
        names="WG0 warp 0 lane 0 arrives on ld2mma[0]",
        why="The MMA waits in each round, but its barrier says nothing about the other 127 readers.",
    ),
    Bug(
        "each-reader-hands-tensor-memory-back-for-all",
        8,
        **TWO_CTAS,
        edits=(replace("ld2mma.arrive(0)", "ld2mma.arrive(0, count=128)"),),
        kind="mbarrier",
        names="WG0 arrives with count 128 each, 16384 arrivals where init(128) expects 128",
        why="The phases run ahead because of the count, not because of extra arrivals.",
    ),
    Bug(
        "each-consumer-hands-back-what-both-have-read",
        10,
        **TWO_PAIRS,
        edits=(
            instead(
                "ld2mma.arrive(wg_id, cta_id=0)",
                "for c in Tx.unroll(NUM_CONSUMER):",
                "    ld2mma.arrive(c, cta_id=0)",
            ),
        ),
        kind="mbarrier",
        names="arrive on all elements of ld2mma, 512 threads where init(256) expects 256",
        why="Other waits take part in the deadlock as a consequence.",
    ),
    Bug(
        "one-of-two-consumers-hands-the-stage-back",
        10,
        **TWO_PAIRS,
        edits=(
            replace("mma2tma.init(NUM_CONSUMER)", "mma2tma.init(1)"),
            guard("mma2tma.arrive(stage", "if warp_id == 0:"),
        ),
        kind="race",
        names="warp 9 issued this MMA, and commits to none of these barriers",
        why="The stage has no slot per consumer: both release the same one.",
    ),
    Bug(
        "ring-filled-ahead-in-every-tile",
        9,
        size=(1024, 512, 64),
        ctas=4,
        edits=(before("for k in range(K_TILES):", "for i in Tx.unroll(PIPE_DEPTH):", "    tma_load(i, i)"),),
        kind="race",
        names="loads this tile to this place a second time",
        why="A whole stage is announced and loaded again: no copy announces bytes of its own.",
    ),
)
PARTS = (
    Bug(
        "chunk-as-the-part-of-dsmem",
        10,
        **TWO_PAIRS,
        edits=(replace("Dsmem[wg_id, warp_id * 32", "Dsmem[i % NUM_CONSUMER, warp_id * 32"),),
        kind="race",
        names="threads 0 and 128",
        why="Both warpgroups store chunk i to the same part: rows are told apart.",
    ),
)
OUTSIDE = (
    Bug(
        "row-of-the-store-scaled-twice",
        10,
        **TWO_PAIRS,
        edits=(
            replace(
                "d_m_st = Tx.meta_var(m_st + wg_id * BLK_M)", "d_m_st = Tx.meta_var((m_st + wg_id) * BLK_M)"
            ),
        ),
        kind="uninitialized",
        names="TMA stores lie outside of D, from column",
        why="A cluster whose first tile is inside D stores all others far outside.",
    ),
)
ROUNDS = (
    Bug(
        "bytes-announced-for-the-loads-ahead-alone",
        6,
        size=(384, 256, 320),
        ctas=2,
        edits=(
            drop("Tx.ptx.mbarrier.arrive.expect_tx(tma_bar"),
            after(
                "tma_load(i, (stage + i)",
                "Tx.ptx.mbarrier.arrive.expect_tx(tma_bar.ptr_to([(stage + i) % PIPE_DEPTH]), TILE_BYTES)",
            ),
        ),
        kind="deadlock",
        names="TMA has delivered 32768 B, but nobody has arrived (0/1) to expect them",
        why="The waiting thread would announce the next tile's bytes, not those that have arrived.",
    ),
    Bug(
        "tensor-memory-free-before-the-first-tile",
        10,
        size=(1024, 768, 64),
        ctas=2,
        edits=(before("while tile_scheduler.valid():", "ld2mma.arrive(wg_id, cta_id=0)", nth=2),),
        kind="mbarrier",
        names="its signaller arrives 2 times, as init(1) asks, but the barrier is waited for 0 times",
        why="The MMA warps hang before they reach all stages: none is left out.",
    ),
    Bug(
        "tensor-memory-handed-back-to-the-own-cta",
        10,
        **TWO_PAIRS,
        edits=(
            replace("ld2mma.init(128 * CTA_GROUP)", "ld2mma.init(128)"),
            replace("ld2mma.arrive(wg_id, cta_id=0)", "ld2mma.arrive(wg_id, cta_id=cbx)"),
        ),
        kind="race",
        names="of CTA 1 is signalled, but nobody waits for it: threads wait for ld2mma[",
        why="One MMA overwrites the tensor memory of both CTAs, and its thread waits for CTA 0 alone.",
    ),
    Bug(
        "all-stages-handed-back-behind-the-k-loop",
        7,
        size=(256, 384, 64),
        ctas=1,
        edits=(
            replace("PIPE_DEPTH = 2", "PIPE_DEPTH = 3"),
            drop("mma2tma.arrive(stage"),
            before(
                "mma2ld.arrive(",
                "for s in Tx.unroll(PIPE_DEPTH):",
                "    mma2tma.arrive(s, cta_group=1, cta_mask=1)",
            ),
        ),
        kind="mbarrier",
        names="which says that stages are free, but has waited for tma2mma",
        why="If K has fewer tiles than the ring has stages, stages are released that nobody has used.",
    ),
    Bug(
        "mma-warp-counts-tiles-by-itself",
        7,
        size=(128, 128, 128),
        ctas=2,
        edits=(head("while tile_scheduler.valid():", "for t in range(1):", nth=1),),
        kind="deadlock",
        names="all others have left their loops: in this cluster nobody signals any barrier",
        why="There is one tile, and the second CTA gets none.",
    ),
)
UNSET = (
    Bug(
        "phases-of-stages-in-registers-that-nobody-sets",
        6,
        size=(384, 256, 192),
        ctas=2,
        edits=(
            replace("PIPE_DEPTH = 2", "PIPE_DEPTH = 4"),
            replace(
                "            phase_tma = 0\n", '            phases = Tx.alloc_local((PIPE_DEPTH,), "int32")\n'
            ),
            replace("tma_bar.ptr_to([stage]), phase_tma", "tma_bar.ptr_to([stage]), phases[stage]"),
            replace(
                "if stage == 0:\n                                phase_tma = phase_tma ^ 1",
                "phases[stage] = phases[stage] ^ 1",
            ),
        ),
        kind="uninitialized",
        names="the parity of this wait comes from local memory",
        why="The first wait asks for whatever phase the memory holds: a deadlock, or no wait at all.",
    ),
    Bug(
        "answer-of-a-wait-that-nobody-looks-at",
        6,
        size=(384, 256, 192),
        ctas=2,
        order="adverse",
        edits=(
            replace(
                "Tx.ptx.mbarrier.try_wait(\n                                tma_bar",
                "Tx.evaluate(Tx.ptx.mbarrier.try_wait_once(\n                                tma_bar",
            ),
            replace(
                "phase_tma\n                            )", "phase_tma, 0\n                            ))"
            ),
        ),
        kind="mbarrier",
        names="is tested once, while its phase is open, and the result is ignored",
        why="try_wait may give up after a time; without a loop the thread has waited for nothing.",
    ),
)
COMMITS = (
    Bug(
        "product-is-announced-where-threads-arrive",
        8,
        **TWO_CTAS,
        edits=(
            replace(
                "mma2ld.arrive(0, cta_group=1, cta_mask=1)",
                "Tx.ptx.tcgen05.commit(ld2mma.ptr_to([0]), 1, 1)",
            ),
        ),
        kind="deadlock",
        names="it counts 128 arrivals of threads",
        why="No count would fix that: the role that waits for the product waits at another barrier.",
    ),
    Bug(
        "stage-comes-back-at-the-barrier-of-tensor-memory",
        8,
        size=(384, 256, 256),  # as many K tiles as stages: both lines are reached
        ctas=2,
        edits=(
            replace(
                "mma2tma.arrive(stage, cta_group=1, cta_mask=1)",
                "Tx.ptx.tcgen05.commit(ld2mma.ptr_to([0]), 1, 1)",
            ),
        ),
        kind="deadlock",
        names="WG1 warp 0 signals ld2mma",
        why="Of the two lines that signal it, one is run by the warp that waits there itself.",
    ),
)
SHORT = (
    Bug(
        "state-of-the-loads-moves-on-in-front-of-their-wait",
        8,
        **TWO_CTAS,
        edits=(
            replace(
                "                                tma_phase.move_to_next_stage()\n",
                "",
            ),
            replace(
                "                                mma2tma.wait(tma_phase",
                "                                tma_phase.move_to_next_stage()\n"
                "                                mma2tma.wait(tma_phase",
            ),
        ),
        kind="deadlock",
        names="its waits began at mma2tma[1]",
        why="The loading warp does start: its first waits pass, but stage 0 comes last, in the next phase.",
    ),
    Bug(
        "write-back-waits-as-if-it-were-to-start",
        8,
        **TWO_CTAS,
        edits=(replace("wb_phase.init(is_producer=False)", "wb_phase.init(is_producer=True)"),),
        kind="uninitialized",
        names="the wait for mma2ld[0]",
        why="As a consequence no MMA was issued before the deadlock.",
    ),
    Bug(
        "buffer-has-a-stage-less-than-its-ring",
        8,
        **TWO_CTAS,
        edits=(
            replace("Asmem = pool.alloc((PIPE_DEPTH, BLK_M", "Asmem = pool.alloc((PIPE_DEPTH - 1, BLK_M"),
        ),
        kind="race",
        names="fills Asmem, and after that Bsmem, which follows it in memory",
        why="The index of Bsmem is right, and so is that of its barrier.",
    ),
    Bug(
        "roles-in-the-warpgroup-that-writes-back",
        8,
        **TWO_CTAS,
        edits=(replace("if wg_id == 1:", "if wg_id == 0:"),),
        kind="deadlock",
        names="the missing ones are its own warp's and those of WG0 warp 3 lane 0",
        why="Nobody skips a barrier: two warps have a role before they reach it.",
    ),
)
GROUPS = (UNSET, STAGES, SHORT, WAITS, HANDED_BACK, PARTS, OUTSIDE, ROUNDS, COMMITS)
