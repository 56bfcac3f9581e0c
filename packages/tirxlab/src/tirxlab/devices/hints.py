"""What to do about each cause that the simulator names, in terms of TIRX: the table that `sim` passes to it.

Keyed by the ids of ptxsim.CAUSES; a cause that is not here keeps its hint in terms of PTX and CUDA C++.
"""

from __future__ import annotations

import ptxsim

from .place_hints import OF_PLACES

_COUNT = (
    "init(count) must equal the number of arrivals in a phase: all threads that arrive, of both CTAs, or 1 "
    "per commit"
)
_FLIP = (
    "advance to the next phase once for each wait (move_to_next_stage, or phase ^ 1), and start it once; a "
    "PipelineState needs as many stages as the barriers that it walks through"
)
_FRESH = (
    "to wait for data, start with phase 0 (PipelineState: is_producer=False); phase 1 passes at once, and "
    "is for waiting for a free buffer"
)
_SLOT = "signal and wait for the same slot: the pipeline's stage, or the consumer's number, on both sides"
_ONE = (
    "is one thread meant to? Then elect one of one warp: around the elected thread, a test of warp_id (and "
    "of wg_id where there are several) keeps the other warps out"
)
_BYTES = (
    "arrive must announce the bytes of all copies that signal this barrier in a phase: every buffer, in "
    "bytes and not elements, and the loads of both CTAs where both report to one barrier"
)

OF_CAUSES = {
    "endless": (
        "nothing that its condition depends on changes any more: is the tile scheduler (or the state) "
        "initialised, does every path through the loop call next_tile() (or advance it, by more than 0), and "
        "does the condition ask whether there is a tile: valid()?"
    ),
    "endless-outside": (
        "the loop continues past the last tile: does its condition ask for one, valid(), and are num_m_tiles "
        "and num_n_tiles the rows and columns of D divided by those of a tile (of the pair's tile)?"
    ),
    "endless-wait": (
        "nothing in the loop changes what its condition reads: in every role a loop over tiles must end "
        "with next_tile()"
    ),
    "grid": ("is the grid one CTA (or cluster) for each tile of D? Compare Tx.cta_id with the shape of D"),
    "shared-id": (
        "a barrier id has one number of threads, all that take part, those that wait included: is one "
        "of the two wrong? Or are these two barriers? Then give each warpgroup its own id, "
        "warpgroup_sync(1 + wg_id), and keep 0 for cta_sync"
    ),
    "not-all-threads": (
        "cta_sync() is for all threads of the CTA: it must not be under a condition on the warp or warpgroup"
    ),
    "aligned": "all 32 lanes must execute it: no elect_sync, lane or divergent guard around it",
    "mma-lanes": 'one elected thread issues it: with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]',
    "uninitialised": (
        ".init() acts in thread 0 of the CTA: it must not be under a condition that thread 0 does not "
        "meet; every stage needs its own init"
    ),
    "init-fence": (
        "after the inits, the thread that made them runs fence.mbarrier_init; then comes cta_sync or "
        "cluster_sync"
    ),
    "init-order": (
        "between init and use, run fence.mbarrier_init and cta_sync, or cluster_sync for another CTA's "
        "barrier"
    ),
    "outside": "check the tile's coordinates, and the extents of cta_id, against the buffer's shape",
    "all-write": (
        "each thread does the whole copy: `with Tx.cta():` shares it among the threads, and an elected thread"
        " does it alone"
    ),
    "two-roles": (
        "a warp that loads or multiplies must do nothing else: is there a test of wg_id (and of "
        "warp_id) around this code, and around that role?"
    ),
    "role-ended": (
        "give each warp one role: a warp that loops over the tiles twice finds none left the second time. "
        "Is each role under a warp_id of its own?"
    ),
    "early-exit": (
        "end with cluster_sync(): no CTA may leave, or free TMEM, while its peer still works with it"
    ),
    "elect": (
        "elect_sync needs the whole warp: put it under `if warp_id == ..`, not under a test of lane_id"
    ),
    "alloc": "one warp of the CTA allocates, once: warp_id counts within a warpgroup, so name wg_id too",
    "pair": (
        "with cta_group 2 one warp in each CTA of the pair must execute alloc: no condition on the CTA "
        "around it"
    ),
    "own-barrier": (
        "give the loads of both CTAs mbar=bar.remote_view(0).ptr_to([stage]): one barrier counts all bytes"
    ),
    "issuers": _ONE,
    "ahead-issuers": _ONE,
    "stale": "flip the phase after each wait: phase ^= 1, or move_to_next_stage()",
    "again": _FLIP,
    "again-ahead": _FLIP,
    "not-flipped": (
        "flip the phase once for each wait, carry it from tile to tile, and start it once; a PipelineState "
        "needs as many stages as the barriers that it walks through"
    ),
    "parity": "flip the phase after each wait: phase = phase ^ 1",
    "fresh": _FRESH,
    "wait-phase": (
        "to wait for data, start with phase 0; to wait for a free buffer, with 1 (PipelineState: "
        "is_producer); flip the phase once a round"
    ),
    "wait-late": (
        "is the wait meant to come first? Then move it up, before the first use of what it waits for"
    ),
    "fresh-read": _FRESH,
    "fresh-wait": "to wait for data, start with phase 0: PipelineState.init(is_producer=False)",
    "exchanged": (
        "a copy writes its first argument, Tx.copy(dst, src): are they swapped? If not, fill the buffer first"
    ),
    "no-sync": (
        "to hand data to the tensor core or TMA, every thread that writes runs "
        'fence.proxy_async("shared::cta"); then comes cta_sync(), then the MMA or the store'
    ),
    "cleared-unordered": (
        'threads that write a buffer before a load fills it run fence.proxy_async("shared::cta"); then comes '
        "cta_sync(), then the load"
    ),
    "strange-commit": (
        "a commit is one arrival: is it meant for another barrier, the one at which the product (mma2ld) or "
        "the free stage (mma2tma) is waited for?"
    ),
    "no-group-sync": (
        "to hand data to the tensor core or TMA, every thread that writes runs "
        'fence.proxy_async("shared::cta"); then comes warpgroup_sync(1), then the MMA or the store '
        "(cta_sync would wait for the other roles)"
    ),
    "slot": _SLOT,
    "ahead-slots": _SLOT,
    "shifted": _SLOT,
    "buffer": "copies and MMA must use the stage of the barrier as the index of every buffer: check this "
    "one's",
    "gaps": "k_st counts elements and goes up by BLK_K: is it also scaled by something else?",
    "overlap": "the columns of the MMA warps begin MMA_N apart: check the slice of tmem in Tx.gemm_async",
    "others-columns": (
        "each consumer must read the columns of tmem that its own MMA warp writes: compare the offsets in "
        "the MMA and in the write-back"
    ),
    "same-columns": (
        "each MMA warp must write columns of its own: tmem[:, warp_id * MMA_N : ..] in Tx.gemm_async"
    ),
    "moved-columns": (
        "all MMAs of a tile must write the same columns of tmem, and the first must overwrite (accum=False)"
    ),
    "accumulate-part": (
        "where the product has several parts, the first MMA of each must overwrite: accum=False, or accum=(k "
        "!= 0), in all of them"
    ),
    "no-wait-at-all": (
        "Tx.ptx.cp_async.commit_group(), then Tx.ptx.cp_async.wait_group(0), by all threads that copied; "
        "then the proxy fence and cta_sync()"
    ),
    "past-buffer": (
        "does the stage wrap at the depth of this buffer, and has it a stage for each slot of its barriers: "
        "pool.alloc((PIPE_DEPTH, ..))?"
    ),
    "moved-first": (
        "move_to_next_stage() comes after the wait and the work of a round, not before: the first round "
        "is for stage 0, with the phase that the state begins with"
    ),
    "leaves-ring": (
        "a load must go to the stage whose MMA has just been waited for: is it given another stage, "
        "does the stage advance before it, or begin anew with each tile?"
    ),
    "ring-short": (
        "give the barrier a slot for each stage (PIPE_DEPTH), and use the stage's; or let its signaller wait "
        "for an answer in every round, at all slots of the answer if each is signalled by other threads"
    ),
    "few": (
        "all threads that the barrier counts must reach it: warpgroup_sync is for all four warps, under no "
        "condition on the warp"
    ),
    "early-commit": (
        "a commit covers the MMAs before it: hand a stage back after the last MMA that reads it, and "
        "announce a product once for each tile, after the loop over K"
    ),
    "fewer-waits": (
        "both sides of a barrier must run the same number of rounds: one next_tile() for each tile, in every "
        "role"
    ),
    "bytes-elsewhere": "the loads and the arrive that announces their bytes must name the same slot: the "
    "stage",
    "cluster-parted": (
        "both CTAs of a pair take the same tiles: is the scheduler given the number of the cluster "
        "(init(bx // CTA_GROUP), num_clusters=SM_COUNT // CTA_GROUP), and do the loops and conditions of the "
        "loads depend on nothing that differs between the two? Then look at the bytes that arrive announces"
    ),
    "group-late": (
        "the thread that stored must execute wait_group(0); then comes the barrier; only then may the "
        "buffer be written"
    ),
    "one-slot": "signal the slot of the current round: the pipeline's stage, which changes with each round",
    "own-arrival": (
        "signal the barrier of the CTA whose thread waits: arrive(.., cta_id=0), and count the threads of "
        "both CTAs in init; or let a thread of this CTA wait, too"
    ),
    "no-work": (
        "all roles must take the same tiles, in some CTAs none: put `while tile_scheduler.valid()` around "
        "each, or give all the same number of rounds"
    ),
    "role-sync": (
        "cta_sync() is for all threads of the CTA: for one role alone, use warpgroup_sync(id); for all "
        "threads, take it out of the condition"
    ),
    "role-later": (
        "give each warp one role: is each role under a warp_id of its own? A warp that loops over the "
        "tiles in one role reaches the other too late"
    ),
    "role-twice": (
        "a role belongs to one warp of one warpgroup: put it under both, as in `if wg_id == 1:` and `if "
        "warp_id == 3:`, and let in no more warps than the barriers count (warp_id < NUM_CONSUMER)"
    ),
    "out-of-turn": (
        "a loop that continues a ring must begin at the stage and with the phase where the loop before it "
        "ended: keep both, and advance them after each wait"
    ),
    "loads-first": (
        "load, try_wait and MMA belong to one round of one K loop; to load ahead, give each load a stage of "
        "its own, as step 5 does"
    ),
    "load-apart": "all loads of a stage must name the barrier of that stage: check the mbar of this one",
    "ahead-silent": _SLOT,
    "loaded-twice": (
        "each load of a round must fill a place of its own: check the stage that tma_load is given, and that "
        "no two buffers share memory (pool.move_base_to)"
    ),
    "shared-place": (
        "no buffer may lie where a barrier is: check pool.move_base_to, and that all barriers come before it"
    ),
    "parted": (
        "both sides must advance to the next stage after each round, from the same first one, modulo the "
        "same depth: check both stages where the rounds begin"
    ),
    "other-issuer": (
        "each MMA warp must commit to its own slot: the consumer's number, in the commit and in the wait"
    ),
    "phase-of-many": (
        "try_wait in every round, which also keeps A and B until they are read, and flip the phase there; or "
        "commit once, after the loop"
    ),
    "too-many": _COUNT,
    "no-pair": (
        'cta_group=2 needs clusters of two CTAs: cbx comes from Tx.cta_id([CTA_GROUP, 1], parent="cluster")'
    ),
    "silent-here": (
        "is its role under a condition on bx, the CTA's number in the grid, where cbx, its rank in "
        "the cluster, is meant? Or is the arrive, the commit or the load under another condition that "
        "no thread meets here?"
    ),
    "bytes-announced": _BYTES,
    "bytes": _BYTES,
    "bytes-only": "the thread that issues the copies must also execute arrive(bytes), once per phase",
    "arrivals": _COUNT,
    "left-open": _COUNT,
    "partial": _COUNT,
    "ahead-count": _COUNT,
    "ahead-commits": (
        "init(count) must count 1 per commit: where both MMA warps hand back one stage, init(NUM_CONSUMER)"
    ),
    "elements-meet": (
        "give each line slots of its own: where an array has two for each stage, these are 2 * stage and "
        "2 * stage + 1; or use two arrays"
    ),
    "several-lines": (
        "init(count) is the number of arrivals per round; each arrive counts as one, even of 0 bytes, and so "
        "does each commit: is one too many, or meant for another barrier? Announce the bytes of all copies "
        "in one arrive"
    ),
    "partial-apart": "check the slot index, and cta_id, of the arrivals that went elsewhere",
    "two-uses": (
        "loads must report to one barrier, commits of MMAs to another: a thread that needs both "
        "waits for both"
    ),
    "announced-apart": (
        "both CTAs announce the bytes, but one barrier counts them: put `if cbx == 0:` around the arrive "
        "with bytes"
    ),
    "both-multiply": (
        "with cta_group=2 one MMA computes for both CTAs: put `if cbx == 0:` around the loop that waits "
        "for the operands and multiplies"
    ),
    "misrouted": "check the slot index, cta_id, and cta_mask (one bit for each CTA that receives the signal)",
    "ahead-unwaited": (
        "a thread that signals a barrier in every round must wait, in every round, for the barrier that "
        "answers"
    ),
    "unset": (
        "fill the registers before they are stored: the read of the result, or its cast, is missing, or the "
        "cast's two arguments are swapped: Tx.cast(dst, src)"
    ),
    "accumulate": (
        "the first MMA of a tile must overwrite: accum=False, or accum=(k != 0) in a loop that begins with 0"
    ),
    "copy-fence": (
        "cp.async writes like a thread: the threads that wait for it (wait_group or its mbarrier) run "
        "fence.proxy_async; then comes the barrier, then TMA or the MMA"
    ),
    "proxy-fence": (
        "every thread that writes runs fence.proxy_async after its writes; then comes the barrier, then "
        "TMA or the MMA"
    ),
    "tcgen05-fence": "to hand tensor memory over: before_thread_sync, then the barrier, then "
    "after_thread_sync",
    "written-again": (
        "put a cta_sync (or warpgroup_sync) after the reads, too, before the next write: with only the one "
        "between write and read, a thread goes on as soon as it has done its own reads"
    ),
    "within-warp": (
        "the lanes of a warp need not run together: put a cta_sync (or warpgroup_sync) between the two"
    ),
    "not-ready": "before reading, wait on the barrier that signals that the data has arrived",
    "not-free": "before overwriting a buffer, wait on the barrier that marks it free",
    "freed": ("wait for it, and read the product (the write-back), before tensor memory is freed"),
    "stays": (
        "advance the stage in every round, whichever branch it takes: stage = (stage + 1) % PIPE_DEPTH, and "
        "flip the phase where it wraps to 0; carry both from tile to tile"
    ),
    "arrives-alone": (
        "every thread that reads must arrive, and init counts them all (init(128) for a warpgroup); or "
        "warpgroup_sync comes before the one arrive"
    ),
    "leaves-it-to-others": (
        "every warp whose MMAs read a stage must hand it back: each commits, and init counts them "
        "(init(NUM_CONSUMER))"
    ),
    "never-waits": (
        "each thread that reads the data must wait for it, in every round: another thread's wait counts only "
        "with cta_sync() after it"
    ),
    "others-waited": (
        "one thread's wait does not count for the others: put cta_sync() after it, or let every thread "
        "wait itself"
    ),
    "ended": (
        "both sides of a barrier must run the same number of rounds: compare their loops over K and over "
        "tiles (each role needs its own next_tile())"
    ),
    "sync": "every thread of the CTA (every CTA of the cluster) must reach the same sync: none may skip it",
    "nobody-starts": (
        "is one side meant to start? PipelineState.init(is_producer=True) lets its first wait pass"
    ),
}

HINTS = ptxsim.Hints(
    OF_CAUSES | OF_PLACES,
    {
        "bar.sync 0": "cta_sync",
        "elect.sync": "elect_sync",
        "barrier.cluster": "cluster_sync",
        "the barrier of the cluster (cluster_sync)": "the cluster barrier (cluster_sync)",
    },
)
