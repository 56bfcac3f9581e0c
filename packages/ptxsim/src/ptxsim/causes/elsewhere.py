"""Causes in instructions and their threads, in fences, in memory, and in what is never written."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

ELSEWHERE = (
    Cause(
        "endless",
        0,
        "nothing that the loop's condition depends on changes any more: does every path through the loop "
        "advance it, by more than 0, and does the condition test what is advanced?",
    ),
    Cause(
        "endless-outside",
        0,
        "the loop continues past the last tile: does it test whether there is another one, and are the "
        "numbers of tiles the tensors' sizes divided by a tile's?",
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
        "does the grid have one CTA (or cluster) for each tile of the output?",
    ),
    Cause(
        "shared-id",
        10,
        "a barrier id has one thread count, that of all threads that arrive at it, including those that "
        "wait: is one of the two counts wrong? Or are these two barriers? Then give each warpgroup an id of "
        "its own, and keep 0 for the whole CTA",
        explains=ERRORS,
    ),
    Cause(
        "not-all-threads",
        10,
        "a barrier of all threads must not be under a condition on the warp or warpgroup",
        explains=ERRORS,
    ),
    Cause(
        "aligned",
        10,
        "all 32 lanes must execute it: no elect.sync, lane or divergent guard around it",
    ),
    Cause(
        "left-over",
        20,
        "before a warp arrives again (bar.arrive), or uses an id that others use, it must wait for the "
        "threads that arrived before",
    ),
    Cause(
        "mma-lanes",
        30,
        "only one elected thread may issue it: elect.sync, or threadIdx.x == 0",
    ),
    Cause(
        "outside",
        80,
        "check the index, and the grid, against the size of the buffer",
    ),
    Cause(
        "past-shared",
        80,
        "an index into a shared buffer is too large: does the stage wrap at the depth of the buffers, and is "
        "the rest of the index counted in the buffer's elements?",
    ),
    Cause(
        "no-rank",
        20,
        "this must be a CTA's rank in its cluster, from 0 to the cluster's size - 1, not its number in the "
        "grid",
        explains=ERRORS,
    ),
    Cause(
        "own-alloc",
        20,
        "every CTA must allocate its own tensor memory: no condition may keep one away; alloc comes first, "
        "then a CTA barrier, then the threads read the address",
        explains=ERRORS,
    ),
    Cause(
        "no-pair",
        20,
        "launch the kernel with clusters of two CTAs, and let both take their rank from the cluster",
        explains=ERRORS,
    ),
    Cause(
        "early-exit",
        90,
        "end with a cluster barrier: no CTA may exit, or free TMEM, while its peer still works with it",
    ),
    Cause(
        "lanes",
        100,
        "all lanes that the instruction names must reach it: no divergent guard around it",
        text="{waits} for {wants}, which {others}",
    ),
    Cause(
        "elect",
        100,
        "elect.sync needs the whole warp: it may be under a condition on the warp, but never on the lane",
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
        "with cta_group::2 one warp in each CTA of the pair must execute alloc: no condition on the CTA "
        "around it",
        text="{waits} in {what} for {wants}",
    ),
    Cause(
        "registers",
        100,
        "setmaxnreg: warps that need few registers run dec first; all threads together may have no more "
        "than the CTA has at launch (65536 at most)",
        text="{waits} for {wants}: its warps have {now} a thread, and the pool of the CTA has {free} of the "
        "{more} that a warp asks for",
    ),
    Cause(
        "warpgroup",
        100,
        "all four warps of a warpgroup must execute every wgmma: no condition on the warp or lane around it",
        text="{waits} for a wgmma that {absent} never {issues} ({others})",
    ),
    Cause(
        "products-pending",
        170,
        "after the products comes wgmma.commit_group, then wgmma.wait_group, then the barrier that hands "
        "their operands back",
        text="no wgmma.wait_group has waited for it: it was in no committed group, or in one of the newest, "
        "which may be pending",
    ),
    Cause(
        "overwritten",
        170,
        "before a place is filled again, wait until its previous contents have been read",
        text="loads that report to {other}, which was waited for, fill this place too; the load that reports "
        "to {name} is a later one, and came before this read",
    ),
    Cause(
        "exchanged",
        160,
        "fill the buffer before it is read: are source and destination of a copy swapped?",
    ),
    Cause(
        "no-sync",
        170,
        "to hand data to the tensor core or TMA, every thread that writes must run fence.proxy.async; then "
        "comes a CTA barrier, then the MMA or the store",
        text="threads write, the {unit} reads, and no bar.sync 0 stands between",
    ),
    Cause(
        "cleared-unordered",
        170,
        "threads that write a buffer before a load fills it must run fence.proxy.async; then comes a barrier "
        "of all of them and the thread that loads, then the load",
        text="{who} writes there ({line}) before it waits for anything, and nothing makes the load wait for "
        "it",
    ),
    Cause(
        "no-group-sync",
        170,
        "to hand data to the tensor core or TMA, every thread that writes must run fence.proxy.async; then "
        "comes a barrier of these warps alone (bar.sync id, count), then the MMA or the store; bar.sync 0 "
        "would also wait for warps with other roles",
        text="threads write, the {unit} reads, and no barrier of {group} stands between",
    ),
    Cause(
        "overlap",
        130,
        "the columns of one warp's MMA must end where the other's begin: how far apart are they?",
        text="{threads} each issue this MMA, one to {one}, the other to {other}: they overlap",
    ),
    Cause(
        "others-columns",
        170,
        "read the columns that the MMA of this consumer writes: compare both offsets",
        text="{name}, to which warp {theirs} commits, was waited for, and {back}, for which that warp "
        "waits, is handed back; but the columns are those of warp {mine}'s MMA",
    ),
    Cause(
        "early-commit",
        170,
        "a commit covers the MMAs before it: commit once, after the last MMA of the product or of the stage",
        text="{name} was committed to{line} before this {work} was issued",
    ),
    Cause(
        "fewer-waits",
        170,
        "the loop with the wait must run as often as the one that signals: compare what advances them",
        text="{name} has completed {phases} phases and been waited for {waits}",
    ),
    Cause(
        "stores-pending",
        170,
        "first the copies, then commit_group, then wait_group, all by one thread; then a barrier with the "
        "threads that write the buffer again",
    ),
    Cause(
        "waits-less",
        170,
        "a thread that reads a buffer must wait in every round until it is full: is the wait before the "
        "loop, or under a condition?",
        text="its reader has signalled {back} {times} and waited for {name} {passed}",
    ),
    Cause(
        "early",
        170,
        "hand a buffer back (arrive) only after the last read of it (for TMEM, tcgen05.wait::ld)",
        text="{name} was signalled{line} before the read by {reader} was done",
    ),
    Cause(
        "same-row",
        170,
        "each thread must store a row of its own: does the row depend on the warp as well as on the lane?",
    ),
    Cause(
        "all-write",
        230,
        "let one thread write it, or each thread a part of its own",
        text="no barrier between them, but both write the same value, by the same statement",
    ),
    Cause(
        "unset",
        210,
        "fill the registers before they are stored: the read of the result is missing",
    ),
    Cause(
        "unwritten-local",
        210,
        "set the whole array before it is read: local memory has arbitrary contents when a launch begins",
        text="a thread loads {size} B from its local memory ({name}), not all of which it has written",
    ),
    Cause(
        "accumulate",
        210,
        "the first MMA of a tile, where K begins, must overwrite the accumulator (enable-input-d false)",
    ),
    Cause(
        "copy-fence",
        260,
        "cp.async writes like a thread: the threads that wait for it (wait_group or its mbarrier) must run "
        "fence.proxy.async; then comes the barrier, then TMA or the MMA",
    ),
    Cause(
        "proxy-fence",
        260,
        "every thread that writes must run fence.proxy.async after its writes; then comes the barrier, then "
        "TMA or the MMA",
    ),
    Cause(
        "moved-columns",
        210,
        "the MMAs of one product must all write the same columns, and the first must overwrite "
        "(enable-input-d false)",
        text="{issuer} has begun its product in columns {first}..{last} ({line}): the columns change from "
        "MMA to MMA",
    ),
    Cause(
        "accumulate-part",
        210,
        "where the product has several parts, the first MMA of each must overwrite (enable-input-d false)",
        text="{issuer} has begun another part of the product, in columns {first}..{last} ({line}), by an MMA "
        "that overwrites; this one adds",
    ),
    Cause(
        "same-columns",
        130,
        "each MMA warp must write columns of its own: does the first column depend on the warp?",
        text="{threads} each issue this MMA with different operands, and all write {columns}",
    ),
    Cause(
        "tcgen05-fence",
        230,
        "to hand tensor memory over: tcgen05.fence::before_thread_sync, then the barrier, then "
        "tcgen05.fence::after_thread_sync",
    ),
    Cause(
        "unacquired",
        230,
        "acquire the data that the counter guards: a fence (__threadfence) after the atomic, or "
        "atom.acquire.gpu",
        text="the atomic that tells its CTA of it does not acquire, though chips that we know read right",
    ),
    Cause(
        "guess",
        230,
        "to conform to the PTX memory model, read it by ld.relaxed (cuda::atomic_ref) or as volatile",
        text="formally a race, as a plain read meets atomics; but its value is only a guess: atomicCAS "
        "compares it, and stores nothing if it was wrong",
    ),
    Cause(
        "by-exchange",
        230,
        "to conform to the PTX memory model, put __syncwarp() (bar.warp.sync) after the exchange: only that "
        "orders memory",
        text="the order between them reaches one of them only by an exchange between the lanes of its warp "
        "(shfl, vote, redux), which orders no memory, although chips that we know keep the order",
    ),
    Cause(
        "tried",
        230,
        "read it as the others write it: ld.relaxed (cuda::atomic_ref, memory_order_relaxed) or volatile; "
        "then the compare-and-swap decides",
        text="a plain load beside atomics: by the text a race, whatever an atom.cas does with it later",
    ),
    Cause(
        "groups",
        230,
        "wait_group(n) returns when at most the n newest groups are pending: 0 for the last tile",
    ),
    Cause(
        "no-wait-at-all",
        230,
        "cp.async.commit_group, then cp.async.wait_group 0 by the threads that copied, then a barrier; only "
        "then may others read",
        text="the program has no cp.async.wait_group or wait_all: nothing waits for the copies",
    ),
    Cause(
        "group-late",
        225,
        "the thread that stored must wait for its group; then comes a barrier; only then may others write "
        "the buffer",
        text="its thread has waited for it (wait_group), but no barrier stands between that and this write",
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
        "wait for it, and read the product, before tensor memory is freed",
        text="no thread waits for {name}",
    ),
    Cause(
        "freed-early",
        50,
        "tcgen05.dealloc must come once, after the last use of tensor memory and a CTA barrier: is that "
        "barrier missing, or is the dealloc in a loop, or before this use?",
    ),
    Cause(
        "useless-loads",
        80,
        "does the loop over K run past its end? K / BLK_K iterations read it all",
    ),
    Cause(
        "gaps",
        80,
        "each load must begin where the one before it ends: are coordinates counted in elements, and scaled "
        "only once?",
    ),
    Cause(
        "sync",
        240,
        "every thread of the CTA (every CTA of the cluster) must reach the same barrier: none may skip it",
        text="{waits} at {wants}: {state}{others}",
    ),
    Cause(
        "few",
        175,
        "all threads that the barrier counts must reach it: does a condition on the warp keep the others "
        "away, or is the count too large?",
        text="{waits} at {wants}: {state}, and no other thread can reach {line} any more",
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
)
