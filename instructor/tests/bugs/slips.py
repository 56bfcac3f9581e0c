"""Slips that research/advice plants: the first finding names the cause, or says no more than is known."""

from __future__ import annotations

from barriers import EIGHT_OF_PAIR
from corpus import Bug, drop, guard, instead, replace

TWO_CTAS = {"size": (384, 256, 320), "ctas": 2}  # three tiles of five K tiles
ONE_PAIR = {"size": (768, 512, 320), "ctas": 4}  # step 9
TWO_PAIRS = {"size": (1024, 512, 320), "ctas": 4}  # step 10

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
        names="Asmem differs, in its index or its address",
        why="A is loaded into the next stage; a tile begins at the stage where the one before it ended.",
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
        names="Bsmem differs, in its index or its address",
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

RINGS = (  # signals to one stage only, missing waits, arrays that are too short
    Bug(
        "commit-to-slot-0",
        8,
        **TWO_CTAS,
        edits=(replace("mma2tma.arrive(stage,", "mma2tma.arrive(0,"),),
        kind="mbarrier",
        names="in turn, and commits to mma2tma[0] each time",
        why="The MMA walks through all stages but releases the first one each time.",
    ),
    Bug(
        "loads-to-slot-0",
        9,
        **ONE_PAIR,
        edits=(replace("tma_load(k, tma_phase.stage)", "tma_load(k, 0)"),),
        kind="mbarrier",
        names="in turn, and loads to tma2mma[0] each time",
        why="The loads fill and announce stage 0, whatever stage they have waited for.",
    ),
    Bug(
        "bytes-announced-at-slot-0",
        10,
        **TWO_PAIRS,
        edits=(replace("tma2mma_cta0.arrive(stage,", "tma2mma_cta0.arrive(0,"),),
        kind="tx-count",
        names="B that nobody announced",
        why="The bytes of every stage are announced at the barrier of the first.",
    ),
    Bug(
        "no-wait-for-the-last-k-tile",
        8,
        **TWO_CTAS,
        edits=(guard("tma2mma.wait(", "if k != K_TILES - 1:"),),
        kind="mbarrier",
        names="but waited for its answer, tma2mma,",
        why="The MMA of the last K tile does not wait for its data: the stage is released too soon.",
    ),
    Bug(
        "no-wait-in-the-first-round",
        7,
        **TWO_CTAS,
        edits=(guard("mma2tma.wait(", "if k > 0:"),),
        kind="race",
        names="mma2tma was not waited for between them",
        why="A tile's first load takes a stage that the tile before may still use; tma2mma is not the cause.",
    ),
    Bug(
        "one-barrier-for-all-stages",
        10,
        **TWO_PAIRS,
        edits=(replace("TCGen05Bar(pool, PIPE_DEPTH, ", "TCGen05Bar(pool, 1, "),),
        kind="mbarrier",
        names="stage 1 of mma2tma, a barrier array of 1",
        why="mma2tma has one element: the other indices are barriers after it.",
    ),
    Bug(
        "loads-ahead-beyond-k",
        6,
        size=(256, 256, 64),
        ctas=2,
        edits=(replace("PRE_NUM = min(PIPE_DEPTH, K_TILES)", "PRE_NUM = PIPE_DEPTH"),),
        kind="race",
        names="this load lies entirely past the end of A, which has 64 columns",
        why="More K tiles are loaded ahead than there are; nobody waits for them.",
    ),
    Bug(
        "one-load-ahead-too-few",
        5,
        size=(256, 384, 192),
        edits=(replace("PRE_NUM = min(PIPE_DEPTH, K_TILES)", "PRE_NUM = min(PIPE_DEPTH - 1, K_TILES)"),),
        kind="deadlock",
        names="nobody signals tma_bar[1]",
        why="The second stage is never loaded: that a role has ended is unrelated.",
    ),
    Bug(
        "flips-one-stage-before-the-wrap",
        5,
        size=(256, 384, 192),
        edits=(replace("if stage == 0:", "if stage == PIPE_DEPTH - 1:"),),
        kind="deadlock",
        names="the phase was flipped too early",
        why="The phase flips when the ring reaches its last stage.",
    ),
)
ROLES = (
    Bug(
        "tma-warp-multiplies-too",
        10,
        **TWO_PAIRS,
        edits=(replace("if warp_id == 3:", "if warp_id == 1:"),),
        kind="deadlock",
        names="the missing one is its own",
        why="Warp 1 loads first: its commits are the other half of what it waits for.",
    ),
    Bug(
        "cta-sync-in-the-write-back",
        9,
        **ONE_PAIR,
        edits=(
            instead(
                "Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten",
                "Tx.cuda.cta_sync()  # Dsmem may be overwritten",
            ),
        ),
        kind="deadlock",
        names="and nobody else comes to line",
        why="The write-back waits for all threads; the others have roles of their own.",
    ),
)
PRODUCTS = (  # in tensor memory
    Bug(
        "product-announced-at-the-first-k-tile",
        9,
        **ONE_PAIR,
        edits=(
            replace("mma2ld.arrive(0, cta_group=CTA_GROUP, cta_mask=3)", "pass"),
            instead(
                "mma(mma_phase.stage, k != 0)",
                "mma(mma_phase.stage, k != 0)",
                "if k == 0:",
                "    mma2ld.arrive(0, cta_group=CTA_GROUP, cta_mask=3)",
            ),
        ),
        kind="race",
        names="was committed to",
        why="The commit covers the first MMA alone; the wait for it is where it should be.",
    ),
    Bug(
        "columns-of-the-other-consumer",
        10,
        **TWO_PAIRS,
        edits=(replace("wg_id * MMA_N + i * EPI_N", "(1 - wg_id) * MMA_N + i * EPI_N"),),
        kind="race",
        names="but the columns are those of warp",
        why="Barriers are those of its own consumer, the columns are the other's.",
    ),
    Bug(
        "consumers-a-block-apart",
        10,
        **TWO_PAIRS,
        edits=(
            replace("warp_id * MMA_N : warp_id * MMA_N + MMA_N", "warp_id * BLK_N : warp_id * BLK_N + MMA_N"),
            replace("wg_id * MMA_N + i * EPI_N", "wg_id * BLK_N + i * EPI_N"),
        ),
        kind="race",
        names="one to columns 0 to 255, the other to columns 128 to 383",
        why="Each MMA writes 256 columns, and the second begins 128 after the first.",
    ),
    Bug(
        "next-tile-with-every-chunk",
        7,
        **TWO_CTAS,
        edits=(
            instead(
                "Tx.cuda.warpgroup_sync(1)  # Dsmem is complete",
                "Tx.cuda.warpgroup_sync(1)  # Dsmem is complete",
                "tile_scheduler.next_tile()",
            ),
            drop("tile_scheduler.next_tile()", nth=-1),
        ),
        kind="race",
        names="has completed",
        why="The write-back skips tiles: tensor memory is freed while the last products are computed.",
    ),
)
ROUNDS = (  # one side skips its signal, or its wait, in some rounds; another role does in between
    Bug(
        "mma-in-the-tma-warp",
        7,
        **TWO_CTAS,
        edits=(
            replace(
                'if warp_id == 0:\n                    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]'
                ":\n                        while",
                "if warp_id == 3:\n                    with "
                'Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:\n                        while',
            ),
        ),
        kind="deadlock",
        names="the missing one is its own",
        why="Warp 3 loads all tiles before it reaches the loop with the MMAs.",
    ),
    Bug(
        "stage-not-handed-back-at-the-first-k-tile",
        9,
        **ONE_PAIR,
        edits=(guard("mma2tma.arrive(stage,", "if accum:"),),
        kind="deadlock",
        names="times, and waits again",
        why="The commit of each tile's first MMA is left out.",
    ),
    Bug(
        "loads-without-an-end",
        6,
        **TWO_CTAS,
        edits=(replace("if k + PIPE_DEPTH < K_TILES:", "if k + 1 < K_TILES:"),),
        kind="race",
        names="this load lies entirely past the end of A, which has 320 columns",
        why="The ring is filled beyond the last K tile: there are more loads than waits.",
    ),
    Bug(
        "group-waited-for-behind-the-barrier",
        9,
        **ONE_PAIR,
        edits=(
            drop("Tx.ptx.cp_async.bulk.wait_group(0)"),
            instead(
                "Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten",
                "Tx.cuda.warpgroup_sync(1)  # Dsmem may be overwritten",
                "if warp_id == 0:",
                "    Tx.ptx.cp_async.bulk.wait_group(0)",
            ),
        ),
        kind="race",
        names="but no barrier stands between that and this write",
        why="The barrier comes before the store has read Dsmem.",
    ),
    Bug(
        "mma-before-tensor-memory-is-free",
        8,
        **TWO_CTAS,
        edits=(
            drop("ld2mma.wait(0, ld_phase.phase)"),
            drop("ld_phase.move_to_next_stage()"),
            instead(
                "mma(mma_phase.stage, k != 0)",
                "mma(mma_phase.stage, k != 0)",
                "if k == 0:",
                "    ld2mma.wait(0, ld_phase.phase)",
                "    ld_phase.move_to_next_stage()",
            ),
        ),
        kind="race",
        names="this MMA is of the next product",
        why="The first MMA of a tile does not wait until the product before it has been read.",
    ),
)

NAMES = (  # names of barriers, and what is reported about a store
    Bug(
        "each-mma-commits-to-the-barrier-of-the-product",
        7,
        **TWO_CTAS,
        edits=(replace("mma2tma.arrive(stage, cta_group=1", "mma2ld.arrive(stage, cta_group=1"),),
        kind="race",
        names="nobody signals mma2tma, for which WG1 warp 3 (line 817) waits",
        why="Nobody releases the stages, and the product is announced once per K tile.",
    ),
    Bug(
        "bytes-announced-with-each-block-of-a",
        10,
        **TWO_PAIRS,
        edits=(
            drop("tma2mma_cta0.arrive(stage, TILE_BYTES)"),
            drop("if cbx == 0:", nth=0),
            instead(
                "Tx.copy_async(Asmem[stage, c, :, :]",
                "Tx.copy_async(Asmem[stage, c, :, :], A[a_st : a_st + BLK_M, k_st : k_st + BLK_K], **tma)",
                "if cbx == 0:",
                "    tma2mma_cta0.arrive(stage, TILE_BYTES)",
            ),
        ),
        kind="mbarrier",
        names="announces 98304 B (line 1320) twice in a row",
        why="The arrive has slipped into the loop over the copies of A.",
    ),
    Bug(
        "store-behind-its-commit-group",
        9,
        **ONE_PAIR,
        edits=(
            drop("Tx.ptx.cp_async.bulk.commit_group()"),
            instead(
                "d_st = ", "d_st = Tx.meta_var(d_n_st + i * EPI_N)", "Tx.ptx.cp_async.bulk.commit_group()"
            ),
        ),
        kind="race",
        names="its thread has not waited for it (cp.async.bulk.commit_group, then wait_group)",
        why="The group is closed before the store: wait_group waits for an empty one.",
    ),
    Bug(
        "column-of-the-store-from-the-row-of-the-tile",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace("d_n_st = Tx.meta_var(tile_scheduler.n_idx", "d_n_st = Tx.meta_var(tile_scheduler.m_idx"),
        ),
        kind="race",
        names="stores the same tile again: its coordinates did not change",
        why="Tiles of one row are stored on top of each other.",
    ),
)

GROUPS = (INDICES, RINGS, ROLES, PRODUCTS, ROUNDS, NAMES)
