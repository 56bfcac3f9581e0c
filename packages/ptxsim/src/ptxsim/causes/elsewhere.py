"""Causes that lie in instructions and their threads, in fences, in places and in what is never written."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

ELSEWHERE = (
    Cause(
        "endless",
        0,
        "nothing that the loop's condition depends on changes any more: does every way round advance it?",
    ),
    Cause(
        "endless-wait",
        0,
        "nothing in the loop changes what its condition reads: every role must advance it",
        text="{waits} for {name} once too often: nothing lets {them} leave the loop at {where}",
    ),
    Cause(
        "grid",
        0,
        "does the grid count tiles of the output, one CTA (or cluster) for each?",
    ),
    Cause(
        "shared-id",
        10,
        "give each warpgroup a barrier id of its own, and 0 to the whole CTA alone",
        explains=ERRORS,
    ),
    Cause(
        "not-all-threads",
        10,
        "a barrier of all threads stands under no condition on the warp or warpgroup",
        explains=ERRORS,
    ),
    Cause(
        "aligned",
        10,
        "all 32 lanes must execute it: no elect.sync, lane or divergent guard around it",
    ),
    Cause(
        "two-roles",
        10,
        "lanes that loop in a role of their own come to no work of the whole warp: a condition on the"
        " warpgroup and the warp keeps roles apart",
        text="{what}: it {does} ({line}), in a role of its own",
    ),
    Cause(
        "left-over",
        20,
        "who arrives again (bar.arrive), or uses the id of others, waits first for who was there before",
    ),
    Cause(
        "mma-lanes",
        30,
        "one elected thread issues it: elect.sync, or threadIdx.x == 0",
    ),
    Cause(
        "outside",
        80,
        "check the index, and the grid, against the size of the buffer",
    ),
    Cause(
        "useless-stores",
        80,
        "is the grid too large for the output, or the number of tiles that a CTA runs through?",
    ),
    Cause(
        "early-exit",
        90,
        "end with a barrier of the cluster: no CTA may leave, or free TMEM, while its peer works with it",
    ),
    Cause(
        "lanes",
        100,
        "all lanes named by the instruction must come to it: no divergent guard around it",
        text="{waits} for {wants}, which {others}",
    ),
    Cause(
        "elect",
        100,
        "elect.sync elects one lane of a warp that is all there: a condition on the warp may stand around "
        "it, none on the lane",
        text="{waits} for {wants}, which {others}",
    ),
    Cause(
        "alloc",
        100,
        "one warp of the CTA allocates, once",
        text="{waits} for {wants}: all are allocated, nobody frees them",
    ),
    Cause(
        "pair",
        100,
        "with cta_group::2 one warp of each CTA of the pair executes alloc: no condition on the CTA"
        " around it",
        text="{waits} in {what} for {wants}",
    ),
    Cause(
        "registers",
        100,
        "setmaxnreg: who needs few registers runs dec first; the counts of all threads are together"
        " no more than the CTA has at launch (65536 at most)",
        text="{waits} for {wants}: its warps have {now} a thread, and the pool of the CTA {free} of the "
        "{more} that a warp asks for",
    ),
    Cause(
        "warpgroup",
        100,
        "all four warps of a warpgroup execute every wgmma: no condition on the warp or lane around it",
        text="{waits} for a wgmma that {absent} never {issues} ({others})",
    ),
    Cause(
        "exchanged",
        160,
        "fill the buffer before it is read: are source and destination of a copy exchanged?",
    ),
    Cause(
        "no-sync",
        170,
        "who writes for the tensor core or TMA: fence.proxy.async by every thread that writes, then"
        " a barrier of the CTA, then the MMA or the store",
        text="threads write, the {unit} reads, and no bar.sync 0 stands between",
    ),
    Cause(
        "no-group-sync",
        170,
        "who writes for the tensor core or TMA: fence.proxy.async by every thread that writes, then"
        " a barrier of these warps alone (bar.sync id, count), then the MMA or the store; bar.sync 0 would"
        " wait for warps with other roles, too",
        text="threads write, the {unit} reads, and no barrier of {group} stands between",
    ),
    Cause(
        "overlap",
        130,
        "the columns of one warp's MMA end where those of the other's begin: how far are they apart?",
        text="{threads} each issue this MMA, one to {one}, the other to {other}: they overlap",
    ),
    Cause(
        "others-columns",
        170,
        "read the columns that the MMA of this consumer writes: compare both offsets",
        text="{name} was waited for, to which warp {theirs} commits, and {back} is handed back, for which it "
        "waits, too; but the columns are those of warp {mine}'s MMA",
    ),
    Cause(
        "early-commit",
        170,
        "a commit covers the MMAs before it: announce the product behind the last one, once",
        text="{name} was committed to{line} before this MMA was issued",
    ),
    Cause(
        "fewer-waits",
        170,
        "the loop with the wait must run as often as the one that signals: compare what advances them",
        text="{name} has completed {phases} phases and been waited for {waits} times",
    ),
    Cause(
        "early",
        170,
        "hand a buffer back (arrive) only after the last read of it (for TMEM, tcgen05.wait::ld)",
        text="{name} was signalled{line} before the read by {reader} was done",
    ),
    Cause(
        "same-tile",
        170,
        "the tile's row and column must differ for all that store: do they depend on every index of the CTA?",
    ),
    Cause(
        "same-row",
        170,
        "each thread stores a row of its own: does the row depend on the warp as well as on the lane?",
    ),
    Cause(
        "all-write",
        230,
        "one thread writes it, or each thread a part of its own",
        text="no barrier between them, but both write the same value, by the same statement",
    ),
    Cause(
        "unset",
        210,
        "fill the registers before they are stored: the read of the result is missing",
    ),
    Cause(
        "accumulate",
        210,
        "the first MMA of a tile must overwrite the accumulator (enable-input-d false), where K begins",
    ),
    Cause(
        "copy-fence",
        260,
        "cp.async writes like a thread: who waits for it (wait_group or its mbarrier) runs "
        "fence.proxy.async; then the barrier, then TMA or MMA",
    ),
    Cause(
        "proxy-fence",
        260,
        "every thread that writes runs fence.proxy.async after its writes; then the barrier, then TMA or MMA",
    ),
    Cause(
        "moved-columns",
        210,
        "the MMAs of one product all go to the same columns, and the first of them overwrites (enable-input-d"
        " false)",
        text="{issuer} has begun its product in columns {first}..{last} ({line}): the columns change from "
        "MMA to MMA",
    ),
    Cause(
        "same-columns",
        130,
        "each MMA warp writes columns of its own: the first one depends on the warp",
        text="{threads} each issue this MMA, of other operands, and all write {columns}",
    ),
    Cause(
        "tcgen05-fence",
        230,
        "tensor memory is handed over by tcgen05.fence::before_thread_sync, the barrier, after_thread_sync",
    ),
    Cause(
        "unacquired",
        230,
        "acquire what the counter stands for: a fence (__threadfence) behind the atomic, or atom.acquire.gpu",
        text="the atomic that its CTA knows it by acquires nothing, though known chips read right",
    ),
    Cause(
        "groups",
        230,
        "wait_group(n) returns when at most the n newest groups are pending: 0 for the last tile",
    ),
    Cause(
        "group-late",
        230,
        "the thread that stored waits for its group, then comes a barrier, then others write the buffer",
        text="its thread has waited for it (wait_group), and no barrier stands between that and this write",
    ),
    Cause(
        "not-ready",
        230,
        "before reading it, wait until it is written: __syncthreads(), or the mbarrier of the copy",
    ),
    Cause(
        "not-free",
        230,
        "before overwriting it, wait until its readers are done: __syncthreads(), or the mbarrier "
        "that says so",
    ),
    Cause(
        "freed",
        230,
        "threads wait for it and read the product before tensor memory is freed: that is missing",
        text="no thread waits for {name}",
    ),
    Cause(
        "freed-early",
        50,
        "a barrier of the CTA stands between the last read of tensor memory and tcgen05.dealloc",
    ),
    Cause(
        "useless-loads",
        80,
        "does the loop over K run past its end? K / BLK_K iterations read all there is",
    ),
    Cause(
        "gaps",
        80,
        "a load begins where the one before it ends: are coordinates counted in elements, and scaled once?",
    ),
    Cause(
        "others-waited",
        230,
        "one thread's wait is not the others': a barrier of the CTA after it, or every thread waits itself",
        text="{name} was not waited for by {absent}: only {waiter} did{line}{bare}",
    ),
    Cause(
        "sync",
        240,
        "every thread of the CTA (every CTA of the cluster) must come to the same barrier: none may skip it",
        text="{waits} at {wants}: {state}{others}",
    ),
    Cause(
        "role-sync",
        240,
        "bar.sync 0 is for all threads of the CTA: where one role alone comes, a barrier with its number of "
        "threads (bar.sync id, count); where all are meant, under no condition",
        text="{waits} at {wants}: {state}, and nobody else comes to {line}",
    ),
    Cause(
        "few",
        175,
        "all threads that the barrier counts must come to it: does a condition on the warp keep the others "
        "away, or is the number too large?",
        text="{waits} at {wants}: {state}, and no other thread can come to {line} any more",
    ),
    Cause(
        "standstill",
        240,
        "",
        text="{waits} for {wants} forever",
    ),
    Cause(
        "late",
        250,
        "",
    ),
    Cause(
        "unseen-load",
        270,
        "every load must be waited for: do the loop that loads and the loop that waits run equally often?",
    ),
    Cause(
        "incomplete-output",
        280,
        "do the tiles of all CTAs, and the columns that each thread stores, cover the whole output?"
        " Does the loop over tiles count them all?",
    ),
)
