"""Slips that research/advice plants: the first finding names the cause, or says no more than is known."""

from __future__ import annotations

from corpus import Bug, replace

TWO_CTAS = {"size": (384, 256, 320), "ctas": 2}  # three tiles of five K tiles

INDICES = (  # of one buffer, or of the barrier of one load
    Bug(
        "one-buffer-one-stage-on-in-the-copy-from-tile-to-tile",
        6,
        **TWO_CTAS,
        edits=(
            replace(
                "Tx.copy_async(Asmem[stage, :, :]", "Tx.copy_async(Asmem[(stage + 1) % PIPE_DEPTH, :, :]"
            ),
        ),
        kind="race",
        names="it is the index of Asmem that differs",
        why="A is loaded one stage on; a tile begins at the stage where the one before it ended.",
    ),
    Bug(
        "one-buffer-one-stage-on-in-the-mma-from-tile-to-tile",
        6,
        **TWO_CTAS,
        edits=(
            replace(
                "                    Bsmem[stage, :, :],",
                "                    Bsmem[(stage + 1) % PIPE_DEPTH, :, :],",
            ),
        ),
        kind="race",
        names="it is the index of Bsmem that differs",
        why="The MMA takes B from the stage after the one that it has waited for.",
    ),
    Bug(
        "one-load-reports-to-the-next-slot",
        7,
        **TWO_CTAS,
        edits=(
            replace(
                "Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], **tma)",
                "Tx.copy_async(Bsmem[stage, :, :], B[n_st : n_st + BLK_N, k_st : k_st + BLK_K], "
                'dispatch="tma", cta_group=1, mbar=tma2mma.ptr_to([(stage + 1) % PIPE_DEPTH]))',
            ),
        ),
        kind="race",
        names="the load reports to tma2mma[1], and the one issued with it",
        why="The load of B names the barrier of the next stage: no buffer's index is wrong.",
    ),
)

GROUPS = (INDICES,)
