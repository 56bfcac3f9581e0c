"""Causes that lie in what a kernel stores: tiles that overlap, lie outside, or leave something out."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

OF_OUTPUTS = (
    Cause(
        "useless-stores",
        80,
        "is the grid too large for the output, or the number of tiles that a CTA runs through?",
    ),
    Cause(
        "groups-allowed",
        170,
        "wait_group N lets the last N groups go on: N is one less than the buffer has parts, and 0 where it "
        "has one, in front of the barrier behind which a part is written again. Or is a part taken twice in "
        "a row, where the next one is meant?",
        text="its thread's wait_group{line} lets {count} be pending, and this is one of them",
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
        "what each of these threads stores needs a place of its own in the output: do its rows name the "
        "warp, as its part of the buffer does? Or is one thread meant to store the whole tile: then elect "
        "one of one warp",
    ),
    Cause(
        "one-word",
        170,
        "let one thread do it, or use an atomic (atomicAdd; atom, red): between the read of one thread and "
        "its write others read the old value, and of two writes one is lost",
        text="{threads} use one word, and not by an atomic",
    ),
    Cause(
        "shared-word",
        94,
        "what each thread counts for itself (a phase, a stage, its rounds) belongs in a register of its own; "
        "what all share one thread writes, and a barrier stands before and behind",
        text="{threads} both store this one variable, of which the CTA has one for all of them",
        explains=ERRORS,
    ),
    Cause(
        "word-moves-on",
        95,
        "a barrier of all its threads stands between the write and the reads, and another one between the "
        "reads and the next write; or each thread counts for itself, in a register of its own",
        text="it is one variable of the CTA, and what is read there depends on who comes first: threads may "
        "go on with different numbers",
        explains=ERRORS,
    ),
    Cause(
        "variable-of-all",
        170,
        "all CTAs of a grid share a variable: does the index depend on blockIdx? Nothing orders CTAs but "
        "atomics with fences, a barrier of the whole grid (a cooperative launch) or the end of the kernel",
    ),
    Cause(
        "tiles-too-many",
        170,
        "does every CTA ask whether there is a tile left before it takes one? Are there more CTAs, or more "
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
        "tiles of the output must lie as far apart as a tile is large: is the index of the tile scaled by "
        "the rows, or columns, that the whole tile has, those of a pair of CTAs included?",
    ),
    Cause(
        "parts-apart",
        170,
        "the parts of a tile follow one another: part i begins i times its width behind the start of the "
        "tile. Or are they shared out to CTAs, or warps, that have rows of their own: then each stores all "
        "of them",
        text="{who} stores parts of {size} {unit} that lie {step} apart, and so reaches into its next tile",
    ),
    Cause(
        "boxes-overlap",
        170,
        "what each of them stores begins as far from the next one as it is high (or wide): is its number "
        "multiplied by the rows, or columns, of one part?",
        text="{who} store {size} {unit} each, and these begin only {step} apart",
    ),
    Cause(
        "same-part",
        170,
        "each warpgroup stores to a part of its own: does the index of the part name the warpgroup, and "
        "nothing that the others have, too?",
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
        "every warpgroup and every warp store its own? Look for a condition around the store, then at what "
        "its row and its column depend on",
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
        "rank belongs into one coordinate of the store. Is the other taken from that of a load, whose rows "
        "each CTA has of its own?",
    ),
    Cause(
        "stores-past",
        80,
        "the only stores are for a tile past the last one: do they stand in the loop over the tiles, in "
        "front of the step to the next tile? Is a coordinate scaled twice?",
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
        "does the loop over tiles go on to the next one before the first is stored, or begin behind it? Does "
        "a condition keep the first CTA or the first tile out?",
    ),
    Cause(
        "last-left-out",
        280,
        "is the last tile stored, too? Where a tile is stored a round later, beside the next one's work, the "
        "last one's store comes behind the loop. Or does the loop over tiles end one tile too early?",
    ),
    Cause(
        "adds-to-nothing",
        280,
        "to overwrite the output, store without a reduction (cp.async.bulk.tensor, st); to add to it, let it "
        "be cleared first, and all who add come behind that",
        text="{name}: cp.reduce.async.bulk adds to what {name} holds, and nothing has written it before",
    ),
    Cause(
        "incomplete-output",
        280,
        "do the tiles of all CTAs, and the columns that each thread stores, cover the whole output?"
        " Does the loop over tiles count them all?",
    ),
)
