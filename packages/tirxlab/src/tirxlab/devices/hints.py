"""What to do about each cause that the simulator names, in the words of TIRX: the table that `sim` hands in.

Keyed by the ids of ptxsim.CAUSES; a cause that is not here keeps the hint in PTX and CUDA C++.
"""

from __future__ import annotations

import ptxsim

_COUNT = (
    "init(count) is the number of arrivals per round: all threads that arrive, of both CTAs, or 1 per commit"
)
_FLIP = (
    "move on to the next phase after each wait (move_to_next_stage, or phase ^ 1), and start it once; a "
    "PipelineState has as many stages as the barriers that it walks through"
)
_FRESH = (
    "who waits for data starts with phase 0 (PipelineState: is_producer=False); parity 1 passes at once, "
    "which is for who waits for a free buffer"
)
_SLOT = "signal and wait for the same slot: the pipeline's stage, or the consumer's number, on both sides"
_ONE = (
    "elect one thread of one warp: a test of warp_id, and of wg_id where there are several, around the "
    "elected thread keeps the other warps out"
)
_BYTES = (
    "the bytes given to arrive are the sum of all copies that signal this barrier in a phase: every buffer, "
    "bytes and not elements, and the loads of both CTAs where both report to one barrier"
)

OF_CAUSES = {
    "endless": (
        "nothing that its condition depends on changes any more: is the tile scheduler (or the state) "
        "initialised, and does every way round call next_tile() (or advance it)?"
    ),
    "endless-wait": (
        "nothing in the loop changes what its condition reads: a loop over tiles ends with next_tile(), "
        "in every role"
    ),
    "grid": (
        "does the grid count tiles of D, one CTA (or cluster) for each? Compare Tx.cta_id with the shape of D"
    ),
    "shared-id": "give each warpgroup its own barrier id: warpgroup_sync(1 + wg_id), and 0 to cta_sync alone",
    "not-all-threads": (
        "cta_sync() is for all threads of the CTA: it stands under no condition on the warp or warpgroup"
    ),
    "aligned": "all 32 lanes must execute it: no elect_sync, lane or divergent guard around it",
    "mma-lanes": 'one elected thread issues it: with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]',
    "uninitialised": (
        ".init() acts in thread 0 of the CTA: it must not stand under a condition that thread 0 does not "
        "meet; every stage needs its own init"
    ),
    "no-init": ".init() acts in thread 0 of the CTA; every stage needs its own",
    "init-fence": (
        "after the inits fence.mbarrier_init, by the thread that made them; then cta_sync or cluster_sync"
    ),
    "init-order": (
        "between init and use: fence.mbarrier_init and cta_sync, or cluster_sync for another CTA's barrier"
    ),
    "outside": "check the tile's coordinates, and the extents of cta_id, against the buffer's shape",
    "useless-stores": (
        "one CTA, or one turn of the scheduler, for each tile of the output: is the grid too large, or "
        "the number of tiles?"
    ),
    "all-write": (
        "each thread does the whole copy: `with Tx.cta():` shares it among the threads, and an elected thread"
        " does it alone"
    ),
    "two-roles": (
        "a warp that loads or multiplies comes to nothing else: is there a test of wg_id (and of warp_id) "
        "around this code, and around that role?"
    ),
    "role-ended": (
        "one role a warp: whoever loops over the tiles twice finds none left the second time. Is each role "
        "under a warp_id of its own?"
    ),
    "early-exit": (
        "end with cluster_sync(): no CTA may leave, or free TMEM, while its peer still works with it"
    ),
    "elect": (
        "elect_sync elects one lane of a warp that is all there: put it under `if warp_id == ..`, not under a"
        " test of lane_id"
    ),
    "alloc": "one warp of the CTA allocates, once: warp_id counts within a warpgroup, so name wg_id too",
    "pair": (
        "with cta_group 2 one warp of each CTA of the pair executes alloc: no condition on the CTA around it"
    ),
    "own-barrier": (
        "mbar=bar.remote_view(0).ptr_to([stage]) for the loads of both CTAs: one barrier counts all bytes"
    ),
    "issuers": _ONE,
    "ahead-issuers": _ONE,
    "stale": "flip the phase after each wait: phase ^= 1, or move_to_next_stage()",
    "again": _FLIP,
    "again-ahead": _FLIP,
    "not-flipped": (
        "flip the phase after each wait, keep it from tile to tile, and start it once; a PipelineState has "
        "as many stages as the barriers that it walks through"
    ),
    "parity": "flip the phase after each wait: phase = phase ^ 1",
    "fresh": _FRESH,
    "wait-phase": (
        "who waits for data starts with phase 0, who waits for a free buffer with 1 (PipelineState: "
        "is_producer), and the phase flips once a round"
    ),
    "wait-late": "the wait comes before the first use of what it waits for: move it up",
    "fresh-read": _FRESH,
    "fresh-wait": "who has to wait for data first starts with phase 0: PipelineState.init(is_producer=False)",
    "exchanged": (
        "a copy writes its first argument, Tx.copy(dst, src): are they exchanged? If not, fill the buffer"
        " first"
    ),
    "no-sync": (
        'who writes for the tensor core or TMA: fence.proxy_async("shared::cta") by every thread that '
        "writes, then cta_sync(), then the MMA or the store"
    ),
    "no-group-sync": (
        'who writes for the tensor core or TMA: fence.proxy_async("shared::cta") by every thread that '
        "writes, then warpgroup_sync(1), then the MMA or the store (cta_sync would wait for the other roles)"
    ),
    "slot": _SLOT,
    "ahead-slots": _SLOT,
    "shifted": _SLOT,
    "buffer": "copies and MMA use the stage of the barrier as the index of every buffer: look at this one's",
    "gaps": "k_st counts elements and goes up by BLK_K: is it scaled by something else, too?",
    "overlap": "the columns of the MMA warps begin MMA_N apart: look at the slice of tmem in Tx.gemm_async",
    "others-columns": (
        "each consumer reads the columns of tmem that its own MMA warp writes: compare the offsets in the MMA"
        " and in the write-back"
    ),
    "same-columns": (
        "each MMA warp writes columns of its own: tmem[:, warp_id * MMA_N : ..] in Tx.gemm_async"
    ),
    "moved-columns": (
        "all MMAs of a tile go to the same columns of tmem, and the first of them overwrites (accum=False)"
    ),
    "few": (
        "all threads that the barrier counts must come to it: warpgroup_sync is for all four warps, under no "
        "condition on the warp"
    ),
    "early-commit": (
        "a commit covers the MMAs before it: announce the product once for each tile, behind the loop over K"
    ),
    "fewer-waits": (
        "both sides of a barrier must run the same number of rounds: one next_tile() for each tile, in every "
        "role"
    ),
    "bytes-elsewhere": "the loads and the arrive that announces their bytes name the same slot: the stage",
    "group-late": (
        "the thread that stored executes wait_group(0), then comes the barrier, then the buffer is written"
    ),
    "one-slot": "signal the slot of this round: the pipeline's stage, which changes with each round",
    "role-sync": (
        "cta_sync() is for all threads of the CTA: where one role alone comes, warpgroup_sync(id); where all "
        "are meant, under no condition"
    ),
    "role-later": (
        "one role a warp: is each role under a warp_id of its own? Who loops over the tiles in one role "
        "comes to the other too late"
    ),
    "load-apart": "all loads of a stage name the barrier of that stage: look at the mbar of this one",
    "ahead-silent": _SLOT,
    "parted": (
        "both sides go to the next stage after each round, from the same first one, modulo the same depth: "
        "look at both stages where the rounds begin"
    ),
    "other-issuer": (
        "each MMA warp commits to its own slot: the consumer's number, in the commit and in the wait"
    ),
    "too-many": _COUNT,
    "same-tile": (
        "m_st, n_st and the row must differ for all that store: look at them, at the extents of cta_id, and "
        "at the scheduler's number of clusters and the number given to init"
    ),
    "bytes-announced": _BYTES,
    "bytes": _BYTES,
    "bytes-only": "after issuing the copies, the same thread executes arrive(bytes) once per phase",
    "arrivals": _COUNT,
    "left-open": _COUNT,
    "partial": _COUNT,
    "ahead-count": _COUNT,
    "ahead-commits": (
        "init(count) counts 1 per commit: where both MMA warps hand back one stage, init(NUM_CONSUMER)"
    ),
    "several-lines": (
        "init(count) is the number of arrivals per round: one arrive announces the bytes of all copies, or "
        "each arrive is counted"
    ),
    "partial-apart": ("look at the slot index, and at cta_id, of the arrivals that went elsewhere"),
    "two-uses": (
        "loads report to one barrier, commits of MMAs to another, and who needs both waits for both"
    ),
    "one-cta": (
        "a barrier that init(1) counts for the whole cluster is arrived on by one of its CTAs: put the "
        "arrive under a condition on the CTA's rank, as in `if cbx == 0:`, or count both in init"
    ),
    "announced-apart": (
        "both CTAs announce the bytes, and one barrier counts them: `if cbx == 0:` around the arrive with "
        "bytes"
    ),
    "both-multiply": (
        "with cta_group=2 one MMA computes for both CTAs: `if cbx == 0:` around the loop that waits for the"
        " operands and multiplies"
    ),
    "misrouted": "look at the slot index, at cta_id, and at cta_mask (one bit per CTA that is to hear it)",
    "ahead-unwaited": (
        "who signals a barrier round after round waits, in each round, for the one that answers it"
    ),
    "unset": (
        "fill the registers before they are stored: the read of the result, or its cast (Tx.cast), is missing"
    ),
    "accumulate": (
        "the first MMA of a tile must overwrite: accum=False, or accum=(k != 0) in a loop that begins with 0"
    ),
    "copy-fence": (
        "cp.async writes like a thread: who waits for it (wait_group or its mbarrier) runs "
        "fence.proxy_async; then the barrier, then TMA or MMA"
    ),
    "proxy-fence": (
        "every thread that writes runs fence.proxy_async after its writes; then the barrier, then TMA or MMA"
    ),
    "tcgen05-fence": "tensor memory is handed over by before_thread_sync, the barrier, after_thread_sync",
    "not-ready": "before reading, wait on the barrier that signals that the data has arrived",
    "not-free": "before overwriting a buffer, wait on the barrier that marks it free",
    "freed": (
        "threads wait for it and read the product before tensor memory is freed (the write-back): that is"
        " missing"
    ),
    "others-waited": (
        "one thread's wait is not the others': cta_sync() after it, or every thread waits itself"
    ),
    "ended": (
        "both sides of a barrier must run the same number of rounds: compare their loops over K and over "
        "tiles (each role needs its own next_tile())"
    ),
    "sync": "every thread of the CTA (every CTA of the cluster) must come to the same sync: none may skip it",
    "nobody-starts": "one side must start: PipelineState.init(is_producer=True) lets the first wait pass",
    "incomplete-output": (
        "do the tiles of all CTAs, and the columns that each thread stores, cover the whole output? With "
        "a scheduler: its numbers of tiles and of clusters, the number given to init, and `while valid()`"
    ),
}

HINTS = ptxsim.Hints(
    OF_CAUSES,
    {
        "bar.sync 0": "cta_sync",
        "elect.sync": "elect_sync",
        "barrier.cluster": "cluster_sync",
        "the barrier of the cluster (cluster_sync)": "the cluster barrier (cluster_sync)",
    },
)
