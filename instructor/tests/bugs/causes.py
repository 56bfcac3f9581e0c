"""Mistakes whose first finding must name the cause, not a consequence; here the order of findings matters.

test_causes.py looks at the first finding; `names` is in its first line, as in the rest of the corpus.
"""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, after, drop, guard, instead, replace

SYNCS = (
    Bug(
        "two-warpgroups-one-barrier",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("warpgroup_sync(1 + wg_id)", "warpgroup_sync(1)", 2),),
        kind="collective",
        names="WG0 and WG1 meet at the same barrier id 1 (128 threads",
        why="Both write-back warpgroups use CTA barrier 1: each is let through by the other's arrivals.",
    ),
    Bug(
        "barrier-0-with-two-counts",
        7,
        **EIGHT,
        edits=(replace("warpgroup_sync(1)  # Dsmem is complete", "warpgroup_sync(0)  # Dsmem is complete"),),
        kind="collective",
        names="barrier 0 is used with all 256 threads",
        why="warpgroup_sync(0) is the barrier of cta_sync: 128 of its arrivals come from WG0 alone.",
    ),
    Bug(
        "cta-sync-in-warp-0-alone",
        4,
        ONE_TILE,
        (guard("Tx.cuda.cta_sync()  # the product", "if warp_id == 0:"),),
        kind="collective",
        names="only warp 0 comes to this cta_sync",
        why="Warp 0 meets the others at their next cta_sync: they read TMEM before the product is there.",
    ),
)

SIGNALS = (
    Bug(
        "commit-by-the-tma-warp",
        7,
        **EIGHT,
        edits=(
            drop("mma2tma.arrive(stage, cta_group=1"),
            after("tma_load(k, tma_phase.stage)", "mma2tma.arrive(tma_phase.stage, cta_group=1, cta_mask=1)"),
        ),
        kind="mbarrier",
        names="covers no MMA",
        why="A commit covers the MMAs of its own thread: the TMA thread has issued none, it signals at once.",
    ),
    Bug(
        "arrival-in-place-of-commit",
        7,
        **EIGHT,
        edits=(
            instead("mma2tma.arrive(stage, cta_group=1", "Tx.ptx.mbarrier.arrive(mma2tma.ptr_to([stage]))"),
        ),
        kind="race",
        names="mma2tma[0] was signalled by a thread",
        why="The arrival comes when the MMA is issued, not when it has read its operands.",
    ),
    Bug(
        "consumers-signal-each-other",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2ld.arrive(warp_id, cta_group", "mma2ld.arrive(1 - warp_id, cta_group"),),
        kind="race",
        names="mma2ld[1] of CTA 0, to which warp 8 commits, was waited for",
        why="Each consumer's product is announced to the other one's write-back.",
    ),
    Bug(
        "both-wait-for-consumer-0",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2ld.wait(wg_id,", "mma2ld.wait(0,"),),
        kind="race",
        names="mma2ld[0] of CTA 0, to which warp",
        why="WG1 waits for the product of consumer 0 and reads that of consumer 1.",
    ),
    Bug(
        "stage-past-the-array",
        5,
        ONE_TILE,
        (replace("stage = (stage + 1) % PIPE_DEPTH", "stage = (stage + 1) % (PIPE_DEPTH + 1)"),),
        kind="mbarrier",
        names="stage 2 of tma_bar, a barrier array of 2",
        why="Three stages of a ring of two: tma_bar[2] is mma_bar[0].",
    ),
    Bug(
        "loads-report-to-own-cta",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace('"mbar": tma2mma_cta0.ptr_to([stage])', '"mbar": tma2mma.ptr_to([stage])'),),
        kind="deadlock",
        names="the loads of CTA 1",
        why="CTA 0 expects the bytes of both CTAs on its own barrier; CTA 1's go to CTA 1's.",
    ),
    Bug(
        "stage-is-the-phase",
        7,
        **EIGHT,
        edits=(replace("mma(mma_phase.stage, k != 0)", "mma(mma_phase.phase, k != 0)"),),
        kind="mbarrier",
        names="mma2tma[0]",
        why="The stage is released with the phase as its index.",
    ),
)

PARITIES = (
    Bug(
        "consumer-starts-as-producer",
        7,
        **EIGHT,
        edits=(replace("mma_phase.init(is_producer=False)", "mma_phase.init(is_producer=True)"),),
        kind="uninitialized",
        names="the wait for tma2mma[0]",
        why="Parity 1 of a fresh barrier passes at once: the first MMA reads a stage that nobody has loaded.",
    ),
    Bug(
        "phase-starts-at-1",
        5,
        ONE_TILE,
        (replace("phase_tma = 0", "phase_tma = 1"),),
        kind="deadlock",
        names="waited for the wrong parity",
        why="The data arrives in phase 0.",
    ),
)

TILES = (
    Bug(
        "both-ctas-store-one-tile",
        9,
        **EIGHT_OF_PAIR,
        edits=(
            replace(
                "(tile_scheduler.m_idx * CTA_GROUP + cbx) * BLK_M",
                "(tile_scheduler.m_idx * CTA_GROUP) * BLK_M",
            ),
        ),
        kind="race",
        names="both store it",
        why="m_st does not tell the CTAs apart: half of D is stored twice, half never.",
    ),
    Bug(
        "every-cta-row-0",
        3,
        (256, 256, 64),
        (replace("m_st = Tx.meta_var(bx * BLK_M)", "m_st = Tx.meta_var(0 * BLK_M)"),),
        kind="race",
        names="of the grid (cta_id) both store it",
        why="All CTAs of a column store the first tile.",
    ),
    Bug(
        "both-consumers-store-the-same-rows",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("Tx.meta_var(m_st + wg_id * BLK_M)", "Tx.meta_var(m_st)"),),
        kind="race",
        names="threads 0 and 128 of CTA 0 both store it: their tile coordinates",
        why="Each consumer stores its own Dsmem, and both to the rows of the first consumer.",
    ),
)
STAGES = (  # the index of a buffer, of a wait and of a signal: each is reported by itself
    Bug(
        "one-buffer-one-stage-on-in-the-copy",
        5,
        ONE_TILE,
        (replace("Tx.copy_async(Bsmem[stage, :, :]", "Tx.copy_async(Bsmem[(stage + 1) % PIPE_DEPTH, :, :]"),),
        kind="race",
        names="Bsmem differs, in its index or its address",
        why="B is loaded into the next stage, its bytes go to the barrier of the stage that the MMA reads.",
    ),
    Bug(
        "one-buffer-one-stage-on-in-the-mma",
        5,
        ONE_TILE,
        (
            replace(
                "                    Asmem[stage, :, :],",
                "                    Asmem[(stage + 1) % PIPE_DEPTH, :, :],",
            ),
        ),
        kind="race",
        names="Asmem differs, in its index or its address",
        why="The MMA takes A from the stage after the one that it has waited for.",
    ),
    Bug(
        "waits-one-stage-on",
        8,
        **EIGHT,
        edits=(
            replace(
                "tma2mma.wait(mma_phase.stage, mma_phase.phase)",
                "tma2mma.wait((mma_phase.stage + 1) % PIPE_DEPTH, mma_phase.phase)",
            ),
        ),
        kind="mbarrier",
        names="so on round the ring, always 1 apart",
        why="Every MMA waits for the data of the next stage.",
    ),
    Bug(
        "hands-back-one-stage-on",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("mma2tma.arrive(stage, cta", "mma2tma.arrive((stage + 1) % PIPE_DEPTH, cta"),),
        kind="mbarrier",
        names="so on round the ring, always 1 apart",
        why="The commit releases the stage after the one that the MMA has read.",
    ),
    Bug(
        "loads-without-waiting-for-a-free-stage",
        9,
        **EIGHT_OF_PAIR,
        edits=(drop("mma2tma.wait("),),
        kind="mbarrier",
        names="nobody ever waits for mma2tma[0]",
        why="The loads run ahead: no count is wrong, a wait is missing.",
    ),
    Bug(
        "waits-for-the-first-product-alone",
        8,
        **EIGHT,
        edits=(
            drop("mma2ld.wait(0, wb_phase.phase)"),
            after("Dreg_wg = Dreg.view(128, EPI_N, layout=ROW_PER_THREAD)", "mma2ld.wait(0, 0)"),
        ),
        kind="race",
        names="its reader has signalled ld2mma[0] 8 times and waited for mma2ld[0] 1 time",
        why="It continues without waiting; the early release of tensor memory is a consequence.",
    ),
    Bug(
        "multiplies-wait-for-their-own-product",
        7,
        **EIGHT,
        edits=(replace("ld2mma.wait(0, ld_phase.phase)", "mma2ld.wait(0, ld_phase.phase)"),),
        kind="race",
        names="WG1 warp 0 waits for mma2ld (line 824), as another line does",
        why="It waits for a barrier that it signals itself; the starving write-back is not at fault.",
    ),
)
_MMA_WAIT = "tma2mma.wait(mma_phase.stage, mma_phase.phase)"
_TMA_WAIT = "mma2tma.wait(tma_phase.stage, tma_phase.phase)"

REPAIRS = (
    Bug(
        "mma-before-its-wait",
        7,
        **EIGHT,
        edits=(drop(_MMA_WAIT), after("mma(mma_phase.stage, k != 0)", _MMA_WAIT)),
        kind="uninitialized",
        names="tma2mma[0] is waited for",
        why="The wait for the data comes after the MMA that reads them.",
    ),
    Bug(
        "load-before-its-wait",
        7,
        **EIGHT,
        edits=(drop(_TMA_WAIT), after("tma_load(k, tma_phase.stage)", _TMA_WAIT)),
        kind="race",
        names="mma2tma[0] is waited for",
        why="The stage is filled before the wait until it is free.",
    ),
    Bug(
        "one-wait-more-than-loads",
        6,
        **EIGHT,
        edits=(replace("range(K_TILES)", "range(K_TILES + 1)"),),
        kind="deadlock",
        names="has been waited for",
        why="The loop with the waits runs once more than there are loads.",
    ),
    Bug(
        "one-buffer-loaded-ahead",
        8,
        **EIGHT,
        edits=(replace("Tx.copy_async(Bsmem[stage,", "Tx.copy_async(Bsmem[(stage + 1) % PIPE_DEPTH,"),),
        kind="race",
        names="Bsmem differs, in its index or its address",
        why="A and the barriers use the stage, B is loaded to the next one, which may still be read.",
    ),
    Bug(
        "slot-1-of-one-barrier",
        6,
        **EIGHT,
        edits=(replace("mma_bar.ptr_to([0]), phase_mma", "mma_bar.ptr_to([1]), phase_mma"),),
        kind="mbarrier",
        names="mma_bar[1] (it has 1)",
        why="mma_bar has one element.",
    ),
    Bug(
        "loads-report-to-the-next-slot",
        7,
        size=(384, 256, 320),  # an odd number of loads
        ctas=2,
        edits=(
            replace('"mbar": tma2mma.ptr_to([stage])', '"mbar": tma2mma.ptr_to([(stage + 1) % PIPE_DEPTH])'),
        ),
        kind="tx-count",
        names="B that nobody announced",
        why="The bytes of a stage are announced at its barrier and reported to the next one.",
    ),
    Bug(
        "no-wait-for-the-product-of-a-pair",
        10,
        **FOUR_OF_PAIR,
        edits=(drop("mma2ld.wait(wg_id,"),),
        kind="race",
        names="was not waited for",
        why="Nobody waits for the product; the MMA warp's waits for stages are unrelated.",
    ),
    Bug(
        "no-alloc",
        4,
        ONE_TILE,
        (instead("Tx.ptx.tcgen05.alloc(", "pass"),),
        kind="tmem-alloc",
        names="at an address that nothing has written",
        why="Nobody allocates tensor memory: the word that should hold its address is unchanged.",
    ),
    Bug(
        "dealloc-without-sync",
        2,
        ONE_TILE,
        (drop("Tx.cuda.cta_sync()  # nobody reads TMEM any more"),),
        kind="tmem-alloc",
        names="which warp 0 has freed by then (line ",
        why="Warp 0 frees tensor memory while the others still read it.",
    ),
)

GROUPS = (SYNCS, SIGNALS, PARITIES, TILES, STAGES, REPAIRS)
