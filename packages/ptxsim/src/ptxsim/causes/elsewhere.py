"""Causes that lie in instructions and their threads, in fences, in places and in what is never written."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

ELSEWHERE = (
    Cause(
        "endless",
        0,
        "nothing that the loop's condition depends on changes any more: does every path through the loop "
        "advance it, by more than 0, and does the condition ask for what is advanced?",
    ),
    Cause(
        "endless-outside",
        0,
        "the loop goes on behind the last tile: does it ask whether there is another one, and are the "
        "numbers of tiles those of the tensors, their sizes divided by a tile's?",
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
        "is the grid one CTA (or cluster) for each tile of the output?",
    ),
    Cause(
        "shared-id",
        10,
        "a barrier id has one number of threads, that of all who come to it, those who wait included: is one "
        "of the two wrong? Or are these two barriers: then give each warpgroup an id of its own, and keep 0 "
        "for the whole CTA",
        explains=ERRORS,
    ),
    Cause(
        "not-all-threads",
        10,
        "a barrier of all threads must not stand under a condition on the warp or warpgroup",
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
        "before a warp arrives again (bar.arrive), or uses an id that others use, it must wait for those "
        "who came before",
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
        "past-shared",
        80,
        "an index into a shared buffer is too large: does the stage wrap at the depth of the buffers, and is "
        "the rest counted in the buffer's elements?",
    ),
    Cause(
        "no-rank",
        20,
        "a CTA's rank in its cluster is meant, from 0 to the cluster's size - 1: not its number in the grid",
        explains=ERRORS,
    ),
    Cause(
        "own-alloc",
        20,
        "every CTA allocates tensor memory of its own: no condition may keep one away; and alloc comes "
        "first, then a barrier of the threads, then all read the address",
        explains=ERRORS,
    ),
    Cause(
        "no-pair",
        20,
        "launch the kernel with clusters of two CTAs; and both take their rank in the cluster from it",
        explains=ERRORS,
    ),
    Cause(
        "early-exit",
        90,
        "end with a barrier of the cluster: no CTA may leave, or free TMEM, while its peer works with it",
    ),
    Cause(
        "lanes",
        100,
        "all lanes that the instruction names must come to it: no divergent guard around it",
        text="{waits} for {wants}, which {others}",
    ),
    Cause(
        "elect",
        100,
        "elect.sync needs the whole warp: it may stand under a condition on the warp, never on the lane",
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
        text="{waits} for {wants}: its warps have {now} a thread, and the pool of the CTA {free} of the "
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
        "wgmma.commit_group stands behind the products, then comes wgmma.wait_group, then the barrier that "
        "hands their operands back",
        text="no wgmma.wait_group has waited for it: it was in no committed group, or in one of the newest",
    ),
    Cause(
        "overwritten",
        170,
        "before a place is filled again, wait until what was there has been read",
        text="loads that report to {other}, which was waited for, fill this place too, and {name} is for a "
        "later one: it came before this read",
    ),
    Cause(
        "exchanged",
        160,
        "fill the buffer before it is read: are source and destination of a copy swapped?",
    ),
    Cause(
        "no-sync",
        170,
        "to hand data to the tensor core or TMA, every thread that writes runs fence.proxy.async; then "
        "comes a barrier of the CTA, then the MMA or the store",
        text="threads write, the {unit} reads, and no bar.sync 0 stands between",
    ),
    Cause(
        "cleared-unordered",
        170,
        "threads that write a buffer before a load fills it run fence.proxy.async; then comes a barrier of "
        "all of them and of the thread that loads, then the load",
        text="{who} writes there ({line}) before it waits for anything, and nothing makes the load wait for "
        "that",
    ),
    Cause(
        "no-group-sync",
        170,
        "to hand data to the tensor core or TMA, every thread that writes runs fence.proxy.async; then "
        "comes a barrier of these warps alone (bar.sync id, count), then the MMA or the store; bar.sync 0 "
        "would wait for warps with other roles, too",
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
        "a commit covers the MMAs before it: commit once, behind the last of the product, or of the stage",
        text="{name} was committed to{line} before this MMA was issued",
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
        "who reads a buffer waits in every round until it is full: does the wait stand in front of the loop, "
        "or under a condition?",
        text="who reads it has signalled {back} {times} and waited for {name} {passed}",
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
        "each thread stores a row of its own: does the row depend on the warp as well as on the lane?",
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
        "set all of the array before it is read: local memory holds anything when a launch begins",
        text="a thread loads {size} B from its local memory ({name}), not all of which it has written",
    ),
    Cause(
        "accumulate",
        210,
        "the first MMA of a tile must overwrite the accumulator (enable-input-d false), where K begins",
    ),
    Cause(
        "copy-fence",
        260,
        "cp.async writes like a thread: the threads that wait for it (wait_group or its mbarrier) run "
        "fence.proxy.async; then comes the barrier, then TMA or the MMA",
    ),
    Cause(
        "proxy-fence",
        260,
        "every thread that writes runs fence.proxy.async after its writes; then comes the barrier, then "
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
        text="{threads} each issue this MMA, of other operands, and all write {columns}",
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
        "acquire what the counter stands for: a fence (__threadfence) after the atomic, or atom.acquire.gpu",
        text="the atomic by which its CTA learns of it acquires nothing, though chips that we know read "
        "right",
    ),
    Cause(
        "guess",
        230,
        "to keep to the text, read it by ld.relaxed (cuda::atomic_ref) or as volatile",
        text="by the text a race, as a plain read stands beside atomics; but its value is only a guess: "
        "atomicCAS compares it, and stores nothing where it was wrong",
    ),
    Cause(
        "by-exchange",
        230,
        "to keep to the text, __syncwarp() (bar.warp.sync) after the exchange: it alone orders memory",
        text="only an exchange between the lanes of the warp (shfl, vote, redux) hands on what orders one "
        "of them, though chips that we know take it in order",
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
        text="no cp.async.wait_group or wait_all stands in the program: nothing waits for the copies",
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
        "tcgen05.dealloc comes once, behind the last use of tensor memory, with a barrier of the CTA in "
        "front of it: is that missing, or does it stand in a loop, or in front of this use?",
    ),
    Cause(
        "useless-loads",
        80,
        "does the loop over K run past its end? K / BLK_K iterations read all there is",
    ),
    Cause(
        "gaps",
        80,
        "each load begins where the one before it ends: are coordinates counted in elements, and scaled "
        "only once?",
    ),
    Cause(
        "sync",
        240,
        "every thread of the CTA (every CTA of the cluster) must come to the same barrier: none may skip it",
        text="{waits} at {wants}: {state}{others}",
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
)
