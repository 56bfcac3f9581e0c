"""Causes in products of tensor cores: their operands, D, and when they are over."""

from __future__ import annotations

from ptxsim.causes.cause import Cause

OF_PRODUCTS = (
    Cause(
        "operand-type",
        70,
        "the type of A and B in the instruction (wgmma: its name; tcgen05: its descriptor) must be that of "
        "the data",
        text="the product takes {buffer} as {side} of {read}, but the tensor map by which TMA loaded it "
        "holds {held}",
    ),
    Cause(
        "operand-repeats",
        70,
        "are the leading and stride byte offsets, in units of 16 B, those of the tile, and is the operand "
        "transposed only if it is stored so? Offsets of 0 repeat rows on purpose",
        text="different elements of {side} are the same bytes of {buffer}: {again} of {size} B are read "
        "again",
    ),
    Cause(
        "operand-axis",
        70,
        "is the operand transposed only if it is stored so, do the loads advance along K, and does the first "
        "product of each tile overwrite D?",
        text="products add up what TMA loads from {reach} elements along axis {axis} of the map (0 is "
        "innermost), which is the axis of {side}'s rows, not its K, as they read {buffer}",
    ),
    Cause(
        "operand-part",
        70,
        "the products of a stage must read each part of it once: are their starts one K step apart, the "
        "offsets in the descriptor those of the tile, and is the operand transposed only if it is stored so?",
        text="of the {size} B that TMA loads to {buffer}, products read {again} B more than once for the "
        "same D, and no product reads {never} B",
    ),
    Cause(
        "operand-negated",
        90,
        "is the bit of the instruction descriptor that negates it meant (13 for A, 14 for B)?",
        text="all products that make this D negate {side}: it is -A*B",
    ),
    Cause(
        "matrix-rows",
        90,
        "lane i gives the address of row i % 8 of matrix i / 8: are the row, and the step to the other half "
        "of K, those of the lane (lane % 16, and lane / 16 for .x4), and is the pitch that of the tile?",
        text="one ldmatrix reads rows of {buffer} more than once, and {unread} rows of 16 B that were "
        "written there are never read",
    ),
    Cause(
        "starts-anew",
        80,
        "the predicate that adds to D must be false only for the first product of a tile: does it count from "
        "the tile's first part on, and over all steps of all parts of K?",
        text="this tcgen05.mma overwrites D (from column {column}), and what {what} is lost: nobody has "
        "read it",
    ),
    Cause(
        "freed-before",
        45,
        "the last wait before the dealloc must be for the phase of the last commit: does its phase bit flip "
        "with each wait, and do the waits come in as many rounds as the commits?",
        text="{name}, which tells that the MMAs are done, has completed {phases} phases, but the waits for "
        "it ({lines}) have passed {how}",
    ),
)
