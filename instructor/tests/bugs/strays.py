"""Slips of list 11 of research/advice: stages that stay, consumers that never wait, stores far outside."""

from __future__ import annotations

from corpus import Bug, guard, head, replace
from slips import TWO_PAIRS

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
GROUPS = (STAGES, WAITS, OUTSIDE)
