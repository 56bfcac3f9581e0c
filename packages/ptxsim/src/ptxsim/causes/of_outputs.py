"""Causes in what a kernel stores: tiles that overlap, lie outside the output, or leave parts of it out."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

OF_OUTPUTS = (
    Cause(
        "useless-stores",
        80,
        "is the grid too large for the output, or does a CTA go through too many tiles?",
    ),
    Cause(
        "groups-allowed",
        170,
        "wait_group N lets the newest N groups stay pending: before the barrier that precedes the next write "
        "to a part, N must be one less than the number of parts in the buffer, so 0 for a single part. Or is "
        "one part used twice in a row, where the next one is meant?",
        text="its thread's wait_group{line} leaves {count} pending, and this is one of them",
    ),
    Cause(
        "only-read",
        170,
        "cp.async.bulk.wait_group.read lets the source be written again; before the destination is read or "
        "written, the thread must wait by wait_group, without .read",
        text="its thread's wait_group.read{line} waits for reads alone, not for what the copy writes",
    ),
    Cause(
        "same-tile",
        170,
        "the tile's row and column must differ for every CTA that stores: do they depend on every index of "
        "the CTA?",
    ),
    Cause(
        "same-tile-of-warps",
        170,
        "what each of these threads stores needs its own place in the output: do its rows depend on the "
        "warp, as its part of the buffer does? Or should one thread store the whole tile? Then elect one "
        "thread of one warp",
    ),
    Cause(
        "one-word",
        170,
        "use an atomic (atomicAdd; atom, red), let one thread do it, or give each thread a place of its own "
        "(does the index depend on the thread, and on blockIdx?): between one thread's read and its write, "
        "others read the old value, and of two writes one is lost",
        text="{threads} use one word without an atomic",
    ),
    Cause(
        "shared-word",
        94,
        "what each thread counts for itself (a phase, a stage, its rounds) belongs in a register of its own; "
        "what all threads share must be written by one thread, with barriers before and after, or by atomics",
        text="{threads} both store this variable, which all threads of the CTA share",
        explains=ERRORS,
    ),
    Cause(
        "word-moves-on",
        95,
        "put a barrier of all threads that use it between the write and the reads, and another between the "
        "reads and the next write; or let each thread count for itself, in a register of its own",
        text="all threads of the CTA share this variable, and what a thread reads there depends on which "
        "thread comes first: threads may go on with different numbers",
        explains=ERRORS,
    ),
    Cause(
        "variable-of-all",
        170,
        "all CTAs of a grid share a variable: does the index depend on blockIdx? CTAs are ordered only by "
        "atomics with fences, a barrier of the whole grid (a cooperative launch) or the end of the kernel",
    ),
    Cause(
        "other-cta",
        170,
        "should each CTA use places of its own: does the index depend on blockIdx? CTAs are ordered only by "
        "atomics with fences, a barrier of the whole grid (a cooperative launch) or the end of the kernel",
    ),
    Cause(
        "hands-nothing-on",
        170,
        "to hand data to another CTA: after the writes __threadfence() (membar.gl), a barrier of the "
        "CTA if several threads wrote, then the flag or the atomic; the reader needs a __threadfence() after "
        "the flag or the atomic, before the data. Or st.release.gpu and ld.acquire.gpu, or atom.acq_rel.gpu",
        text="they are in different clusters of the grid, and the flag or counter that may tell one of the "
        "other ({line}) hands nothing on: {missing}",
    ),
    Cause(
        "unordered-value",
        230,
        "put a barrier between them, __syncwarp() among lanes of one warp, __syncthreads() among threads of "
        "a CTA: volatile and relaxed accesses order nothing",
        text="both are volatile or relaxed, and nothing orders them: what is loaded is luck",
    ),
    Cause(
        "lanes-differ",
        170,
        "does the index tell the lanes apart? Or should one lane store, or an atomic (atomicAdd, atomicMax) "
        "or a reduction of the warp put their values together?",
        text="lanes of one warp store different values there in one instruction{line}, and which of them "
        "remains is undefined",
    ),
    Cause(
        "tiles-too-many",
        170,
        "does every CTA check whether there is a tile left before it takes one? Are there more CTAs, or more "
        "rounds, than tiles? Or is what one CTA stores larger than its tile?",
    ),
    Cause(
        "same-tile-again",
        170,
        "the coordinates of the store must follow the tile of each round: does its row depend on the row of "
        "the tile, and its column on the column?",
    ),
    Cause(
        "tiles-overlap",
        170,
        "tiles of the output must be a whole tile apart: is the tile's index multiplied by the rows, or "
        "columns, of the whole tile, including both CTAs of a pair?",
    ),
    Cause(
        "parts-apart",
        170,
        "the parts of a tile must be contiguous: part i begins i times its width after the start of the "
        "tile. Or are the parts divided among CTAs, or warps, that have rows of their own? Then each must "
        "store all of them",
        text="{who} stores parts of {size} {unit} that lie {step} apart, and so reaches into its next tile",
    ),
    Cause(
        "boxes-overlap",
        170,
        "each of these parts must begin a whole height (or width) of a part after the one before: is its "
        "number multiplied by the rows, or columns, of one part?",
        text="{who} {stores} {size} {unit} each, and these begin only {step} apart",
    ),
    Cause(
        "same-part",
        170,
        "each warpgroup must store to a part of its own: does the index of the part depend on the warpgroup, "
        "and on nothing that both warpgroups have in common?",
    ),
    Cause(
        "other-group",
        170,
        "let a thread of each warpgroup store what that warpgroup writes, or put a barrier of both "
        "(bar.sync id, 256) between the writes and the store",
        text="{writer} writes {buffer} and a thread of {reader} stores it: no barrier of both stands between",
    ),
    Cause(
        "left-blocks",
        280,
        "does the loop over the parts of a tile reach the last of them, and does every CTA of a cluster, "
        "every warpgroup and every warp store its own part? Look for a condition around the store, then at "
        "what its row and its column depend on",
    ),
    Cause(
        "stores-outside",
        280,
        "stores went past the end of the output instead: is their row or column taken from an index of the "
        "grid where the CTA's rank in its cluster is meant, or scaled twice? Or are there more tiles along "
        "an axis, for the scheduler or the grid, than the output has?",
    ),
    Cause(
        "stores-diagonal",
        280,
        "the CTAs of a cluster share rows or columns of the output, and a tile is one rectangle: the CTA's "
        "rank belongs in only one coordinate of the store. Is the other taken from a load, where each CTA "
        "has its own rows?",
    ),
    Cause(
        "stores-past",
        80,
        "the only stores are for a tile past the last one: are they in the loop over the tiles, before the "
        "step to the next tile? Is a coordinate scaled twice?",
    ),
    Cause(
        "first-tiles",
        280,
        "is the number of tiles along this axis right, in the grid and in the scheduler? Does every CTA take "
        "its next tile along this axis, too, and from which index? Is the store as wide as the tile?",
    ),
    Cause(
        "first-left-out",
        280,
        "does the loop over tiles advance to the next one before the first is stored, or begin after it? "
        "Does a condition keep the first CTA or the first tile out?",
    ),
    Cause(
        "last-left-out",
        280,
        "is the last tile stored, too? If each tile is stored a round later, beside the next one's work, the "
        "last one's store must come after the loop. Or does the loop over tiles end one tile too early?",
    ),
    Cause(
        "adds-to-nothing",
        280,
        "to overwrite the output, store without a reduction (cp.async.bulk.tensor, st); to add to it, clear "
        "it first: every add must come after the clear",
        text="{name}: cp.reduce.async.bulk adds to what {name} holds, and nothing has written it before",
    ),
    Cause(
        "incomplete-output",
        280,
        "do the tiles of all CTAs, and the columns that each thread stores, cover the whole output?"
        " Does the loop over tiles count them all?",
    ),
)
