"""The second half of the mistakes."""

from __future__ import annotations

from corpus import after, before, drop, guard, replace, unwrap

from research.composite.mistakes import ALLOC, EXPECT, NEXT, of

SECOND = (
    of(
        3,
        "tile of D transposed",
        "D|bounds|transposed",
        replace(
            "D[m_st + warp_id * 32 + lane_id, n_st : n_st + BLK_N]",
            "D[n_st + warp_id * 32 + lane_id, m_st : m_st + BLK_N]",
        ),
    ),
    of(
        3,
        "commit outside the loop",
        "mma_bar",
        drop("Tx.ptx.tcgen05.commit"),
        before(
            "Tx.ptx.tcgen05.fence.after_thread_sync()",
            "if warp_id == 0:",
            '    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:',
            "        Tx.ptx.tcgen05.commit(mma_bar.ptr_to([0]), cta_group=1)",
            nth=1,
        ),
    ),
    of(
        4,
        "every warp writes the first 32 rows",
        "Dsmem|rows",
        replace("Dsmem[warp_id * 32 + lane_id, :]", "Dsmem[lane_id, :]"),
    ),
    of(
        4,
        "MMA waits, then the load is announced",
        "tma_bar",
        drop(EXPECT),
        after("Tx.ptx.mbarrier.try_wait(tma_bar", EXPECT),
    ),
    of(
        5,
        "loads one tile ahead instead of PIPE_DEPTH",
        "tile|K|tma_load|B |A ",
        replace("tma_load(k + PIPE_DEPTH, stage)", "tma_load(k + 1, stage)"),
    ),
    of(
        5,
        "first loads whether or not there are tiles",
        "tma_bar|in flight|Asmem",
        replace("PRE_NUM = min(PIPE_DEPTH, K_TILES)", "PRE_NUM = PIPE_DEPTH"),
    ),
    of(
        6,
        "phases start anew with each tile",
        "tma_bar|mma_bar",
        before("if warp_id == 0:", "phase_tma = 0", "phase_mma = 0", nth=1),
    ),
    of(
        6,
        "store not waited for before Dsmem is written",
        "Dsmem|wait_group|committed",
        drop("Tx.ptx.cp_async.bulk.wait_group(0)"),
        before("if warp_id == 0:", "Tx.ptx.cp_async.bulk.wait_group(0)", nth=3),
    ),
    of(
        6,
        "every CTA starts with tile 0",
        "both store|same tile",
        replace("tile_scheduler.init(bx)", "tile_scheduler.init(0)"),
    ),
    of(
        6,
        "allocates TMEM anew for each tile",
        "tcgen05.alloc|tensor memory",
        before("with Tx.warpgroup():", "if warp_id == 0:", "    " + ALLOC + "TMEM_COLS, cta_group=1)"),
    ),
    of(
        7,
        "consumer's state anew with each tile",
        "tma2mma",
        before("for k in range(K_TILES):", "mma_phase.init(is_producer=False)", nth=1),
    ),
    of(7, "one lane arrives for the warpgroup", "ld2mma", guard("ld2mma.arrive(0)", "if lane_id == 0:")),
    of(
        7,
        "announces the bytes before the stage is free",
        "tma2mma|mma2tma",
        drop("tma2mma.arrive(stage, TILE_BYTES)"),
        before("mma2tma.wait(tma_phase.stage", "tma2mma.arrive(tma_phase.stage, TILE_BYTES)"),
    ),
    of(
        7,
        "B of stage 0 for every MMA",
        "Bsmem",
        replace(
            "Asmem[stage, :, :],\n                    Bsmem[stage, :, :]",
            "Asmem[stage, :, :],\n                    Bsmem[0, :, :]",
        ),
    ),
    of(
        7,
        "both chunks from the first columns",
        "column|chunk|half|repeated",
        replace("tmem[:, i * EPI_N : i * EPI_N + EPI_N]", "tmem[:, 0:EPI_N]"),
    ),
    of(
        7,
        "a quarter of the columns that are used",
        "tensor memory|tcgen05",
        replace(ALLOC + "TMEM_COLS", ALLOC + "32"),
    ),
    of(
        7,
        "cta_sync in the write-back",
        "cta_sync|bar.sync|barrier 0",
        replace("Tx.cuda.warpgroup_sync(1)", "Tx.cuda.cta_sync()", 3),
    ),
    of(
        7,
        "barrier initialised behind the sync",
        "tma2mma",
        drop("tma2mma.init(1)"),
        after("Tx.cuda.cta_sync()", "tma2mma.init(1)"),
    ),
    of(7, "MMA role stays on its tile", "tile|mma2ld|ld2mma|tma2mma|next_tile", drop(NEXT, 1)),
    of(
        8,
        "stage moves before its MMA",
        "tma2mma|Asmem|Bsmem|mma2tma",
        drop("mma_phase.move_to_next_stage()"),
        before("mma(mma_phase.stage, k != 0)", "mma_phase.move_to_next_stage()"),
    ),
    of(
        8,
        "B always into stage 0",
        "Bsmem",
        replace("Tx.copy_async(Bsmem[stage, :, :]", "Tx.copy_async(Bsmem[0, :, :]"),
    ),
    of(
        8,
        "store of the chunk before may still read",
        "Dsmem|wait_group",
        replace("Tx.ptx.cp_async.bulk.wait_group(0)", "Tx.ptx.cp_async.bulk.wait_group(1)"),
    ),
    of(
        9,
        "columns of D by the CTA's rows of B",
        "both store|D|column|bounds",
        replace("d_st = Tx.meta_var(d_n_st + i * EPI_N)", "d_st = Tx.meta_var(n_st + i * EPI_N)"),
    ),
    of(
        9,
        "both CTAs load the first half of B",
        "B|half|Bsmem|column",
        replace(
            "(tile_scheduler.n_idx * CTA_GROUP + cbx) * BLK_N", "tile_scheduler.n_idx * CTA_GROUP * BLK_N"
        ),
    ),
    of(9, "both CTAs multiply", "CTA 1|cta_group|tcgen05.mma|even", unwrap("if cbx == 0:", 1)),
    of(
        10,
        "waits for the other consumer's product",
        "mma2ld",
        replace("mma2ld.wait(wg_id, wb_phase.phase)", "mma2ld.wait(1 - wg_id, wb_phase.phase)"),
    ),
    of(
        10,
        "one barrier id for both warpgroups",
        "barrier id 1|barrier 1",
        replace("warpgroup_sync(1 + wg_id)", "warpgroup_sync(1)", 2),
    ),
    of(
        10,
        "TMEM handed back in its own CTA",
        "ld2mma",
        replace("ld2mma.arrive(wg_id, cta_id=0)", "ld2mma.arrive(wg_id, cta_id=cbx)"),
    ),
    of(10, "bytes of one CTA", "tma2mma", replace("TILE_BYTES = CTA_GROUP * (", "TILE_BYTES = (")),
    of(
        10,
        "stage handed back to CTA 0 alone",
        "mma2tma",
        replace(
            "mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=3)",
            "mma2tma.arrive(stage, cta_group=CTA_GROUP, cta_mask=1)",
        ),
    ),
    of(
        10,
        "each CTA counts as a cluster",
        "bounds|tile|scheduler|both store",
        replace("tile_scheduler.init(bx // CTA_GROUP)", "tile_scheduler.init(bx)"),
    ),
    of(
        10,
        "both consumers multiply the first rows",
        "rows|Asmem|repeated|tile",
        replace("Asmem[stage, warp_id, :, :]", "Asmem[stage, 0, :, :]"),
    ),
    of(
        10,
        "both consumers wait for the first one's TMEM",
        "ld2mma",
        replace("ld2mma.wait(warp_id, ld_phase.phase)", "ld2mma.wait(0, ld_phase.phase)"),
    ),
)
