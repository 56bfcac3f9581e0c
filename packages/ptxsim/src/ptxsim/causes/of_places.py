"""Causes in the place where two accesses meet, and in the barrier phase waited for in between."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

OF_PLACES = (
    Cause(
        "wrong-peer",
        165,
        "data go to the CTA whose threads have handed the place back: map the address and its mbarrier to "
        "that CTA (mapa)",
        text="{what}{line} sends to CTA {cta}, but {name}, which its thread has waited for, is signalled by "
        "CTA {other}",
    ),
    Cause(
        "place-stays",
        165,
        "the destination must depend on the stage, as the barrier does",
        text="in rounds that report to {names}, {buffer} is written at one place{line}",
    ),
    Cause(
        "within-warp",
        230,
        "put __syncwarp() (bar.warp.sync) between the two: lanes of a warp need not run together, and only "
        "that makes what one lane stores visible to another (PTX ISA 9.7.13.2)",
        text="no __syncwarp() between these two lanes of one warp",
    ),
    Cause(
        "freed-in-use",
        230,
        "free tensor memory after its last use: every warp that uses it waits (tcgen05.wait::ld, or the "
        "mbarrier of the commit), then comes a barrier of these warps and the one that frees, then "
        "tcgen05.dealloc",
    ),
    Cause(
        "cleared-by-owner",
        170,
        "what the threads of a CTA write before another CTA stores there comes before a barrier of the "
        "cluster that releases (cluster.sync()), or they arrive on an mbarrier of the CTA that stores",
        text="no barrier of the cluster stands between the write by {who} and the store by another CTA",
    ),
    Cause(
        "stored-early",
        170,
        "tcgen05.st is asynchronous: tcgen05.wait::st comes before the arrival that hands its columns on",
        text="{name} was signalled{line} before tcgen05.wait::st",
    ),
    Cause(
        "swizzle-start",
        60,
        "swizzled buffers start where their pattern does: declare them with __align__(1024), and round the "
        "base of dynamic shared memory up",
    ),
    Cause(
        "two-swizzles",
        60,
        "the tensor map and the matrix descriptor must name the same swizzle (PTX ISA 5.5.6, 9.7.16.4), and "
        "the box is as wide as its span",
        text="the product reads {buffer} with {read}, but TMA wrote it with {written}: it takes the 16-byte "
        "pieces of a row for those of other columns",
    ),
    Cause(
        "dynamic-short",
        80,
        "does the launch ask for all bytes of dynamic shared memory that the kernel uses (the third argument "
        "of <<<..>>>, in bytes, not elements)? Or is an index too large?",
    ),
    Cause(
        "null",
        80,
        "this pointer is null: was its memory allocated (malloc in a kernel may fail), and do the arguments "
        "of the launch come in the order of the kernel's parameters?",
    ),
    Cause(
        "past-local",
        80,
        "an array of a thread is too small, or an index into it too large: does a loop run one round "
        "too many?",
    ),
    Cause(
        "load-outside",
        160,
        "loads must end with the last part of their tensor: how many rounds does the loop before this load "
        "run, does the condition around the load end in time, and does its coordinate count elements? Or, if "
        "the load is intended, which thread waits for it before its place is used again?",
        text="this load lies entirely past the end of {tensor}, which has {end} columns: it brings zeros",
    ),
    Cause(
        "one-memory",
        165,
        "give each buffer memory of its own; if they are meant to share it, a thread that uses it as one "
        "buffer must wait for those that use it as the other",
        text="{one} and {other} share this memory ({other} begins {apart} B after the start of {one}), and "
        "nothing makes one use wait for the other",
    ),
    Cause(
        "loaded-too-soon",
        165,
        "load into a place only when the MMA that reads it has been waited for: move the load after that "
        "wait, or give it a buffer of its own",
        text="this load is issued after the wait for {name}{waited}, but before the MMA{issued} that should "
        "use what is there",
    ),
    Cause(
        "other-columns",
        165,
        "columns and slot must go together on both sides: take both from the same index, before it advances",
        text="the MMAs that {name} announces, which was waited for, write columns {first} to {last}; those "
        "that write column {column} are announced by {other}",
    ),
    Cause(
        "read-unawaited",
        205,
        "in each round, before this operation is issued, wait for every barrier on which its data arrive",
    ),
    Cause(
        "columns-stay",
        165,
        "products that are announced on different barriers by turns need columns of their own: alternate the "
        "columns as the barriers alternate, on both sides; or give the barrier one element, and wait for its "
        "reader before each product",
        text="the products that {names} announce are all written to columns {first} to {last}",
    ),
    Cause(
        "phase-of-many",
        170,
        "wait for each phase, also before what the MMAs read is overwritten; or commit once, after the last "
        "MMA",
        text="{name} is committed to with each MMA{line}, {phases} so far, and this reader has waited for "
        "it {waits}: that wait{at} may pass in an earlier phase",
    ),
    Cause(
        "answers-more",
        170,
        "each wait must be answered by one arrival per thread: is the arrive in a loop of its own, or before "
        "the work that it reports?",
        text="its reader has signalled {back} {times}{line} and waited for {name} {passed}",
    ),
    Cause(
        "waits-first",
        240,
        "first issue all copies of a phase and the arrival that announces their bytes, then wait: one "
        "barrier reports all of them together",
        text="{waits} for {name} before the line that announces the bytes to come there ({line})",
    ),
    Cause(
        "product-unwaited",
        165,
        "wait for the data of every MMA, in each round, the first one included",
        text="this {work}{product} is issued with no wait for {name} before it; {where}",
    ),
    Cause(
        "awaited-elsewhere",
        185,
        "is this wait for something that reports elsewhere: a bulk store to its group (wait_group), MMAs to "
        "the barrier of their commit? Or is it one too many?",
        text="{waits} for {wants}, and each of the {phases} of {name} has been waited for already ({at}): "
        "nothing signals it again",
    ),
    Cause(
        "written-again",
        230,
        "put a barrier of all threads that read it between the reads and the next write: the one between "
        "write and read lets each thread continue as soon as its own read is done",
        text="a barrier stands between the write and the read, but none between the read{read} and the next "
        "write{write}",
    ),
    Cause(
        "bytes-again",
        180,
        "the thread that copies must wait, in each round, until the previous use of that place and of its "
        "barrier is over",
        text="{name} expects {announced} B in phase {phase} and gets {delivered} B, since each of its copies "
        "came {each} before the phase could end",
    ),
    Cause(
        "group-unguarded",
        225,
        "the thread that stored waits for its group; then comes a barrier; only then may others write the "
        "buffer",
        text="no barrier stands between its thread's wait_group{line} and this write",
    ),
    Cause(
        "past-stage",
        165,
        "a copy must stay within its stage: do its size and its start agree with the bytes of one?",
        text="the load of {size} B for {name}{line} runs {over} B into the place of the load for "
        "{other}{behind}",
    ),
    Cause(
        "loads-shifted",
        165,
        "a stage starts at its index times its bytes: what does the address of this load add to that?",
        text="the loads of {size} B{line} follow one another from {before} B into {buffer}, whose first "
        "{before} B no load fills: each lies in two stages",
    ),
    Cause(
        "arrival-unwaited",
        90,
        "each barrier.cluster.arrive needs a barrier.cluster.wait before what the other CTAs must have done "
        "by then, and before the end",
        text="the arrival at the barrier of the cluster{line} is not waited for before {what}",
    ),
    Cause(
        "relaxed-meeting",
        170,
        "let the arrival release (cluster.sync(), cute::cluster_arrive()), or put fence.acq_rel.cluster "
        "before it; inside a CTA, __syncthreads() does as well. fence.mbarrier_init hands on the inits of "
        "mbarriers alone",
        text="the barrier of the cluster that stands between them orders no memory, as its arrival{line} is "
        ".relaxed",
    ),
    Cause(
        "arrival-weak",
        165,
        "arrive with .release, and at .cluster scope on a barrier of another CTA "
        "(mbarrier.arrive.release.cluster)",
        text="the arrival on {name}{line} orders no memory for who waits there: it is .relaxed, or its scope "
        "is .cta and the barrier is another CTA's",
    ),
    Cause(
        "overtaken",
        165,
        "before the load, wait for the barrier of the commit that follows the last reader of what it "
        "overwrites",
        text="this load did not wait for {name}: the {work} still reads what another load{loaded} brought "
        "there",
    ),
    Cause(
        "beside-tile",
        230,
        "nothing to mend if the instruction has more rows or columns than the tile; else look for what "
        "should store these",
        text="this part of the operand lies beside the tile: no thread stores what comes of it",
    ),
    Cause(
        "phase-lost",
        185,
        "whoever signals for the next phase must have waited for these warps: if one lane arrives for its "
        "warpgroup, put wgmma.wait_group or a barrier of the warpgroup before it",
        text="{waits} for phase {phase} of {name}, which is already in phase {now}: nothing made those who "
        "signal it wait for these warps, and the parity no longer tells",
    ),
    Cause(
        "before-shared",
        20,
        "an index into a shared buffer is negative: which of its parts can be, a difference, a remainder, or "
        "a variable without a value?",
        explains=ERRORS,
    ),
)
