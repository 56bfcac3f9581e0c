"""The arguments of compiled look-ups as one row of words: arrays by address and length, then numbers.

One row per space, renewed when an array is replaced. Passing the arrays themselves costs more than most
look-ups take: numba unpacks each of them at every call, and needs 0.1 ms to find the types in a tuple.
"""

from __future__ import annotations

import numpy as np
from numba.np.numpy_support import carray

from ptxsim.checks.race.other_clusters import TAG
from ptxsim.checks.race.shadow_bytes import READ, READERS, Shadow
from ptxsim.checks.race.shadow_order import AGAIN, CONFLICT, OPEN, SAME, STRONG, Actor
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import LOG_AGAIN, LOG_OPEN, LOG_SAME
from ptxsim.jit.intrinsics import pointer

ARRAYS = (*Shadow._fields, "others", "events", "fences", "counts", "out", "kinds", "segments", "copied")
(
    LEVEL, START, REGION, RECORDS, SIZES, SHEET, LINKS, PASTS, HEAD,
    OTHERS, EVENTS, FENCE_EPOCHS, FENCE_COUNTS, OUT, KINDS, SEGMENTS, COPIED,
) = range(0, 2 * len(ARRAYS), 2)  # fmt: skip
NOW, THREADS, LANES, AGENTS_PER_CTA, FENCE_ROOM, WINDOW, DONE, STORES, FIRST_COPY, WORDS = range(
    2 * len(ARRAYS), 2 * len(ARRAYS) + 10
)
# DONE: rows of this log already looked up; STORES: stores of threads, in all logs of this cluster


def describe(words: np.ndarray, first: int, arrays) -> None:
    """Writes the addresses and lengths of these arrays into a row of words, from column `first` on."""
    for at, array in enumerate(arrays):
        words[first + 2 * at : first + 2 * at + 2] = array.ctypes.data, len(array)


@inner(forceinline=True)
def _row(words, at, kind):
    return carray(pointer(words[at]), (words[at + 1],), kind)


@inner(forceinline=True)
def rows(words, at, columns, kind):
    return carray(pointer(words[at]), (words[at + 1], columns), kind)


@inner(forceinline=True)
def shadow_at(words):
    return Shadow(
        _row(words, LEVEL, np.int8), _row(words, START, np.int64), _row(words, REGION, np.int32),
        rows(words, RECORDS, READ + READERS, np.int64), rows(words, SIZES, 2, np.int64),
        rows(words, SHEET, 4, np.int64), rows(words, LINKS, 3, np.int64), rows(words, PASTS, 5, np.int64),
        _row(words, HEAD, np.int64),
    )  # fmt: skip


@inner(forceinline=True)
def actor_at(words, me, epoch, row, flags, clock, lanes):
    return Actor(
        words[NOW], me, epoch, row, flags, clock, words[THREADS], lanes, words[AGENTS_PER_CTA],
        _row(words, OTHERS, np.int32), rows(words, EVENTS, TAG + 1, np.int64),
        rows(words, FENCE_EPOCHS, words[FENCE_ROOM], np.int32),
        _row(words, FENCE_COUNTS, np.int32), rows(words, OUT, CONFLICT, np.int64),
        words[FIRST_COPY], _row(words, COPIED, np.int32), _row(words, KINDS, np.int64),
    )  # fmt: skip


@inner(forceinline=True)
def kind_of(words, row):
    """Flags of an instruction."""
    return _row(words, KINDS, np.int64)[row]


@inner(forceinline=True)
def flags_in(code, flags):
    """The flags of a store in the log, for an instruction with these flags."""
    same, again = SAME if code & LOG_SAME else 0, AGAIN if code & LOG_AGAIN else 0
    return same | again | (OPEN if code & LOG_OPEN and not flags & STRONG else 0)
