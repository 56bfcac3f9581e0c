"""Mistakes with proxies, tcgen05 fences and waits, bulk groups, and buffers that overlap.

A fault that PTX forbids and known chips forgive is a `review`: no proxy fence between a thread's stores to
shared memory and tcgen05.mma after a barrier, no tcgen05.fence around a hand-over of tensor memory that is
otherwise complete.
"""

from __future__ import annotations

from barriers import EIGHT, EIGHT_OF_PAIR, FOUR_OF_PAIR, ONE_TILE
from corpus import Bug, after, before, drop, guard, instead, replace
from memory import ELECTED, SINGLE
from waits import FOUR_TILES

PROXY_FENCE = 'Tx.ptx.fence.proxy_async("shared::cta")'
LAST = -1  # every kernel's last proxy fence is the one before its MMA (steps 1-3) or TMA store


def _proxy(
    name: str, step: int, where: dict, edits: tuple, names: str, why: str, severity: str = "error"
) -> Bug:
    return Bug(name, step, **where, edits=edits, kind="proxy-fence", names=names, why=why, severity=severity)


def _tcgen05(name: str, step: int, where: dict, edits: tuple, why: str) -> Bug:
    return Bug(
        name, step, **where, edits=edits, kind="race", names="tcgen05.fence", why=why, severity="review"
    )


PROXIES = (
    _proxy(
        "no-fence-before-store",
        4,
        {"size": FOUR_TILES},
        (drop(PROXY_FENCE, LAST),),
        "Dsmem",
        "The threads' writes to Dsmem need not be visible to TMA.",
    ),
    _proxy(
        "no-fence-before-store-persistent",
        6,
        EIGHT,
        (drop(PROXY_FENCE, LAST),),
        "Dsmem",
        "The same in a loop.",
    ),
    _proxy(
        "no-fence-before-store-roles",
        7,
        EIGHT,
        (drop(PROXY_FENCE, LAST),),
        "Dsmem",
        "The same, in the epilogue.",
    ),
    _proxy(
        "no-fence-before-store-two-consumers",
        10,
        FOUR_OF_PAIR,
        (drop(PROXY_FENCE, LAST),),
        "Dsmem",
        "The same, twice.",
    ),
    _proxy(
        "fence-for-global",
        4,
        {"size": FOUR_TILES},
        (instead(PROXY_FENCE, 'Tx.ptx.fence.proxy_async("global")', nth=LAST),),
        "Dsmem",
        "The fence names the wrong state space.",
    ),
    _proxy(
        "fence-for-global-roles",
        8,
        EIGHT,
        (instead(PROXY_FENCE, 'Tx.ptx.fence.proxy_async("global")', nth=LAST),),
        "Dsmem",
        "The same in the epilogue of step 8.",
    ),
    _proxy(
        "fence-by-one-warp",
        7,
        EIGHT,
        (guard(PROXY_FENCE, "if warp_id == 0:", nth=LAST),),
        "Dsmem",
        "Each writing thread needs its own fence; three warps have none.",
    ),
    _proxy(
        "fence-before-writes",
        9,
        EIGHT_OF_PAIR,
        (drop(PROXY_FENCE, LAST), before("ld2mma.arrive(0, cta_id=0)", PROXY_FENCE)),
        "Dsmem",
        "A fence covers what was written before it.",
    ),
    _proxy(
        "fence-after-barrier",
        4,
        {"size": FOUR_TILES},
        (drop(PROXY_FENCE, LAST), before("Tx.copy_async(D[", PROXY_FENCE)),
        "Dsmem",
        "Only the issuing thread fences, behind the barrier; PTX asks the writing threads.",
        "review",
    ),
    _proxy(
        "no-fence-after-copies-1",
        1,
        {"size": SINGLE},
        (drop(PROXY_FENCE, LAST),),
        "smem",
        "MMA reads through the async proxy what threads wrote through the generic one.",
        "review",
    ),
    _proxy(
        "no-fence-after-copies-2",
        2,
        {"size": ONE_TILE},
        (drop(PROXY_FENCE, LAST),),
        "smem",
        "The same per K tile.",
        "review",
    ),
    _proxy(
        "no-fence-after-copies-3",
        3,
        {"size": FOUR_TILES},
        (drop(PROXY_FENCE, LAST),),
        "smem",
        "The same on a grid.",
        "review",
    ),
)

TCGEN05 = (
    _tcgen05(
        "no-after-fence-before-read",
        1,
        {"size": SINGLE},
        (drop("Tx.ptx.tcgen05.fence.after_thread_sync()", 1),),
        "tcgen05.ld is asynchronous itself: without the fence it is not ordered after the wait.",
    ),
    _tcgen05(
        "no-after-fence-in-epilogue",
        7,
        EIGHT,
        (drop("Tx.ptx.tcgen05.fence.after_thread_sync()", 1),),
        "The same behind mma2ld.wait.",
    ),
    _tcgen05(
        "no-after-fence-before-mma",
        7,
        EIGHT,
        (drop("Tx.ptx.tcgen05.fence.after_thread_sync()", 0),),
        "The MMA that overwrites TMEM is not ordered after ld2mma.wait.",
    ),
    _tcgen05(
        "no-after-fence-in-epilogue-pair",
        9,
        EIGHT_OF_PAIR,
        (drop("Tx.ptx.tcgen05.fence.after_thread_sync()", 1),),
        "The same in both CTAs.",
    ),
    _tcgen05(
        "no-before-fence",
        7,
        EIGHT,
        (drop("Tx.ptx.tcgen05.fence.before_thread_sync()"),),
        "The reads of TMEM are not ordered before the arrival on ld2mma.",
    ),
    _tcgen05(
        "no-before-fence-persistent",
        6,
        EIGHT,
        (drop("Tx.ptx.tcgen05.fence.before_thread_sync()"),),
        "The reads of TMEM are not ordered before cta_sync.",
    ),
    Bug(
        "no-wait-ld",
        7,
        **EIGHT,
        edits=(replace("Tx.copy(Dreg_wg[:, :], tmem[", "Tx.copy_async(Dreg_wg[:, :], tmem["),),
        kind="race",
        names="tcgen05.wait::ld",
        why="Nothing waits for tcgen05.ld: TMEM is released while it is read.",
        severity="review",  # chips have read the columns once a register was read
    ),
    Bug(
        "arrive-before-wait-ld",
        7,
        **EIGHT,
        edits=(
            replace("Tx.copy(Dreg_wg[:, :], tmem[", "Tx.copy_async(Dreg_wg[:, :], tmem["),
            after("ld2mma.arrive(0)", "Tx.ptx.tcgen05.wait.ld()"),
        ),
        kind="race",
        names="tensor memory",
        why="ld2mma is signalled before the wait for the loads.",
        severity="review",  # chips have read the columns once a register was read
    ),
)

GROUPS = (
    Bug(
        "no-commit-group-in-loop",
        7,
        **EIGHT,
        edits=(drop("Tx.ptx.cp_async.bulk.commit_group()"),),
        kind="race",
        names="Dsmem",
        why="wait_group waits for committed groups only: Dsmem is overwritten under TMA.",
    ),
    Bug(
        "no-wait-group-in-loop",
        7,
        **EIGHT,
        edits=(drop("Tx.ptx.cp_async.bulk.wait_group(0)"),),
        kind="race",
        names="Dsmem",
        why="The next chunk is written into Dsmem while TMA reads this one.",
    ),
    Bug(
        "no-wait-group-persistent",
        6,
        **EIGHT,
        edits=(drop("Tx.ptx.cp_async.bulk.wait_group(0)"),),
        kind="race",
        names="Dsmem",
        why="The same, tile by tile.",
    ),
    Bug(
        "wait-group-1",
        9,
        **EIGHT_OF_PAIR,
        edits=(replace("Tx.ptx.cp_async.bulk.wait_group(0)", "Tx.ptx.cp_async.bulk.wait_group(1)"),),
        kind="race",
        names="Dsmem",
        why="The group that reads Dsmem may be the one that is allowed to be pending.",
    ),
    Bug(
        "wait-group-by-other-thread",
        7,
        **EIGHT,
        edits=(
            drop("Tx.ptx.cp_async.bulk.wait_group(0)"),
            before(
                "Tx.cuda.warpgroup_sync(1)",
                "if warp_id == 1:",
                f"    {ELECTED}",
                "        Tx.ptx.cp_async.bulk.wait_group(0)",
                nth=1,
            ),
        ),
        kind="race",
        names="Dsmem",
        why="A bulk group belongs to the thread that committed it; warp 1 waits for nothing.",
    ),
)

OVERLAPS = (
    Bug(
        "dsmem-over-asmem",
        7,
        **EIGHT,
        edits=(before("Dsmem = pool.alloc(", "pool.move_base_to(1024)"),),
        kind="race",
        names="Asmem",
        why="Dsmem overlaps the first stage of A, which TMA fills for the next tile.",
    ),
    Bug(
        "asmem-over-bsmem",
        4,
        size=ONE_TILE,
        edits=(before("Bsmem = pool.alloc(", "pool.move_base_to(1024)"),),
        kind="race",
        names="Asmem",
        why="Both loads of a K tile go to the same memory.",
    ),
    Bug(
        "consumers-share-columns",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("tmem[:, warp_id * MMA_N : warp_id * MMA_N + MMA_N]", "tmem[:, 0 : MMA_N]"),),
        kind="race",
        names="tensor memory",
        why="Both consumers accumulate into the same columns.",
    ),
    Bug(
        "consumers-share-dsmem",
        10,
        **FOUR_OF_PAIR,
        edits=(
            replace("Dsmem[wg_id, warp_id * 32 + lane_id, :]", "Dsmem[0, warp_id * 32 + lane_id, :]"),
            replace("Dsmem[wg_id, :, :]", "Dsmem[0, :, :]"),
        ),
        kind="race",
        names="Dsmem",
        why="Both write-back warpgroups use the first half of Dsmem.",
    ),
    Bug(
        "consumers-share-a",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("Asmem[stage, c, :, :], A[a_st", "Asmem[stage, 0, :, :], A[a_st"),),
        kind="race",
        names="Asmem",
        why="Both blocks of A are loaded into the first consumer's part.",
    ),
)

# In these nothing is out of order: the checks report nothing, D is wrong. `names`: in verify's message.
WRONG_RESULTS = (
    Bug(
        "both-consumers-same-rows",
        10,
        **FOUR_OF_PAIR,
        edits=(replace("a_st = Tx.meta_var(m_st + c * BLK_M)", "a_st = Tx.meta_var(m_st)"),),
        kind="result",
        names="row",
        why="Both consumers multiply the first block of A's rows.",
    ),
    Bug(
        "coordinates-swapped",
        4,
        size=FOUR_TILES,
        edits=(
            replace("A[m_st : m_st + BLK_M, k_st", "A[n_st : n_st + BLK_M, k_st"),
            replace("B[n_st : n_st + BLK_N, k_st", "B[m_st : m_st + BLK_N, k_st"),
        ),
        kind="result",
        names="row",
        why="A is loaded with B's coordinates and B with A's.",
    ),
    Bug(
        "consumer-reads-other-half",
        10,
        **FOUR_OF_PAIR,
        edits=(
            replace("t_st = Tx.meta_var(wg_id * MMA_N + i * EPI_N)", "t_st = Tx.meta_var(wg_id * MMA_N)"),
        ),
        kind="result",
        names="column",
        why="Every chunk of the epilogue reads the first 64 columns.",
    ),
)

BUGS = PROXIES + TCGEN05 + GROUPS + OVERLAPS + WRONG_RESULTS
