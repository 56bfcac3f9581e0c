"""Slips of lists 11 and 13 of research/advice: stages that stay, consumers that never wait, and the like."""

from __future__ import annotations

from corpus import Bug, before, drop, guard, head, replace
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
        names="comes to tma_bar[0] time and again",
        why="With one K tile no load follows: the stage stays, and a flip of the phase would not mend that.",
    ),
    Bug(
        "each-cta-runs-one-mma-warp",
        10,
        **TWO_PAIRS,
        edits=(head("if cbx == 0:", "if cbx == warp_id:", nth=-1),),
        kind="deadlock",
        names="CTA 1 runs the loop with the MMAs of the pair",
        why="Each consumer has a slot of mma2ld of its own: nobody is to go round them.",
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
        why="Its early MMAs read stages that are filled anew later, too: that follows.",
    ),
)
HANDED_BACK = (  # by some, and by none of the others
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
        why="The MMA waits in each round; what it waits for says nothing of the other 127 readers.",
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
        names="warp 9 issued this MMA, and commits to none of them",
        why="The stage has no slot for each consumer: both hand back the same one.",
    ),
    Bug(
        "ring-filled-ahead-in-every-tile",
        9,
        size=(1024, 512, 64),
        ctas=4,
        edits=(before("for k in range(K_TILES):", "for i in Tx.unroll(PIPE_DEPTH):", "    tma_load(i, i)"),),
        kind="mbarrier",
        names="nothing makes it wait",
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
        why="A cluster whose first tile lies inside stores all others far outside.",
    ),
)
ROUNDS = (
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
        why="Where K has fewer tiles than the ring has stages, stages come back that nobody has used.",
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
GROUPS = (STAGES, WAITS, HANDED_BACK, PARTS, OUTSIDE, ROUNDS)
