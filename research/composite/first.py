"""The first half of the mistakes: examined before the second half ran."""

from __future__ import annotations

from corpus import after, before, drop, guard, head, instead, replace, unwrap

from research.composite.mistakes import BEFORE, BOTH, EXPECT, MMA2LD, NEXT, PROXY, of

FIRST = (
    of(
        3,
        "B always from column 0",
        "Bsmem|B ",
        replace("B[n_st : n_st + BLK_N, k_st : k_st + BLK_K]", "B[n_st : n_st + BLK_N, 0:BLK_K]"),
    ),
    of(
        3,
        "rows and columns of the grid exchanged",
        "bounds|cta_id|tile",
        replace("Tx.meta_var(bx * BLK_M)", "Tx.meta_var(by * BLK_M)"),
        replace("Tx.meta_var(by * BLK_N)", "Tx.meta_var(bx * BLK_N)"),
    ),
    of(
        4,
        "one announcement for the whole loop",
        "tma_bar",
        drop(EXPECT),
        before("for k in range(K_TILES):", EXPECT),
    ),
    of(
        4,
        "proxy fence behind the barrier",
        "fence.proxy",
        drop(PROXY, 1),
        after("Tx.cuda.cta_sync()  # Dsmem", PROXY),
    ),
    of(
        5,
        "load into the stage before its MMA is done",
        "Asmem|Bsmem|mma_bar",
        drop("if k + PIPE_DEPTH < K_TILES:"),
        before(
            "Tx.ptx.mbarrier.try_wait(",
            "if k + PIPE_DEPTH < K_TILES:",
            "    tma_load(k + PIPE_DEPTH, stage)",
            nth=1,
        ),
    ),
    of(
        5,
        "phase flips with every tile, as in step 4",
        "tma_bar",
        instead("if stage == 0:", "phase_tma = phase_tma ^ 1"),
    ),
    of(
        6, "stage starts anew with each tile", "tma_bar|stage", before("if warp_id == 0:", "stage = 0", nth=1)
    ),
    of(
        6,
        "next tile before the store",
        "D|tile|unwritten",
        drop(NEXT),
        before("if warp_id == 0:", NEXT, nth=2),
    ),
    of(
        6,
        "tiles of the grid exchanged",
        "bounds|tile|n_m_tiles|scheduler",
        replace("num_m_tiles=M // BLK_M", "num_m_tiles=N // BLK_N"),
        replace("num_n_tiles=N // BLK_N,", "num_n_tiles=M // BLK_M,"),
    ),
    of(
        6,
        "one CTA's stride for all",
        "both store|same tile",
        replace("num_clusters=SM_COUNT", "num_clusters=1"),
    ),
    of(
        7,
        "write-back waits for the stage",
        "tma2mma|mma2ld",
        replace("mma2ld.wait(0, wb_phase.phase)", "tma2mma.wait(0, wb_phase.phase)"),
    ),
    of(
        7,
        "product announced after every K tile",
        "mma2ld",
        drop(MMA2LD),
        after("mma_phase.move_to_next_stage()", MMA2LD),
    ),
    of(7, "bytes of A alone", "tma2mma", replace(BOTH, "TILE_BYTES = BLK_M * BLK_K * F16_BYTES")),
    of(
        7,
        "producer's state anew with each tile",
        "mma2tma|tma2mma|Asmem|Bsmem",
        before("for k in range(K_TILES):", "tma_phase.init(is_producer=True)"),
    ),
    of(
        7,
        "roles in the write-back's warpgroup",
        "ld2mma|mma2ld|warp",
        head("if wg_id == 1:", "if wg_id == 0:"),
    ),
    of(
        7,
        "TMEM handed back before it is read",
        "ld2mma|tensor memory",
        drop("ld2mma.arrive(0)"),
        before("for i in Tx.unroll(BLK_N // EPI_N):", "ld2mma.arrive(0)"),
    ),
    of(
        7,
        "before_thread_sync behind the arrival",
        "before_thread_sync",
        drop(BEFORE),
        after("ld2mma.arrive(0)", BEFORE),
    ),
    of(7, "both roles in warp 0", "tma2mma|mma2tma|warp 0", head("if warp_id == 3:", "if warp_id == 0:")),
    of(
        7,
        "next tile after every chunk",
        "tile|mma2ld|bounds",
        drop(NEXT, 2),
        after("Tx.cuda.warpgroup_sync(1)  # Dsmem may", NEXT),
    ),
    of(
        7,
        "an arrival instead of a commit",
        "mma2ld",
        instead(MMA2LD, "Tx.ptx.mbarrier.arrive(mma2ld.ptr_to([0]))"),
    ),
    of(
        8,
        "two stages for the MMA, four for TMA",
        "tma2mma",
        replace('PipelineState("mma", PIPE_DEPTH)', 'PipelineState("mma", 2)'),
    ),
    of(
        8,
        "the TMA warp's state in the MMA warp",
        "tma2mma",
        replace(
            "tma2mma.wait(mma_phase.stage, mma_phase.phase)", "tma2mma.wait(tma_phase.stage, tma_phase.phase)"
        ),
    ),
    of(
        8,
        "commit to the next stage",
        "mma2tma",
        replace(
            "mma2tma.arrive(stage, cta_group=1, cta_mask=1)",
            "mma2tma.arrive((stage + 1) % PIPE_DEPTH, cta_group=1, cta_mask=1)",
        ),
    ),
    of(
        8,
        "waits for the store of the last chunk only",
        "Dsmem|wait_group",
        guard("Tx.ptx.cp_async.bulk.wait_group(0)", "if i == BLK_N // EPI_N - 1:"),
    ),
    of(
        9,
        "rows of D without the CTA's rank",
        "both store|same tile|bounds",
        replace(
            "(tile_scheduler.m_idx * CTA_GROUP + cbx) * BLK_M", "tile_scheduler.m_idx * CTA_GROUP * BLK_M"
        ),
    ),
    of(
        9,
        "expects the bytes of one CTA, twice",
        "tma2mma",
        unwrap("if cbx == 0:"),
        replace("tma2mma.init(1)", "tma2mma.init(2)"),
    ),
    of(
        10,
        "the other consumer's accumulator",
        "tensor memory|mma2ld",
        replace("wg_id * MMA_N + i * EPI_N)", "(1 - wg_id) * MMA_N + i * EPI_N)"),
    ),
    of(
        10,
        "one Dsmem for both consumers",
        "Dsmem",
        replace("Dsmem[wg_id, warp_id", "Dsmem[0, warp_id"),
        replace("Dsmem[wg_id, :, :]", "Dsmem[0, :, :]"),
    ),
    of(
        10,
        "one commit for both consumers",
        "mma2tma|Asmem|Bsmem",
        guard("mma2tma.arrive(stage", "if warp_id == 0:"),
        replace("mma2tma.init(NUM_CONSUMER)", "mma2tma.init(1)"),
    ),
    of(
        10,
        "both consumers store the same rows",
        "D|rows|both store",
        replace("Tx.meta_var(m_st + wg_id * BLK_M)", "Tx.meta_var(m_st)"),
    ),
    of(
        10,
        "TMEM free after the first chunk",
        "ld2mma|tensor memory",
        head("if i == MMA_N // EPI_N - 1:", "if i == 0:"),
    ),
)
