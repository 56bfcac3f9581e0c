"""Shadow of byte-addressed memory: who wrote each granule last, and who has read it since.

A granule is 16 bytes; a page (1 KB) in which somebody touches less is refined to 4 bytes or to single bytes.
An entry packs agent (15 bits), epoch (28), strong? (1) and row of the instruction (19); 0 is "nobody". An
agent is a thread or one queue of asynchronous work (checks/race/vector_clocks.py); epoch e of agent a
happened before whoever knows a clock >= e for a. A record is [tags, last write, readers ..]; tags hold the
cluster number + 1 of the write and of the first two readers, 21 bits each. Shared memory is forgotten
between clusters, so its tags do not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ptxsim.jit import bytecode as ml

SHARED, MEMORY = "shared", "memory"  # spaces with a shadow of this kind
PAGE_BITS = 10
AGENT_SHIFT, EPOCH_SHIFT, STRONG_BIT = 48, 20, 1 << 19
EPOCH_MASK, ROW_MASK = (1 << 28) - 1, (1 << 19) - 1
TAG_BITS, TAG_MASK = 21, (1 << 21) - 1

# what a conflict is; the earlier access comes first in the name
WRITE_WRITE, WRITE_READ, READ_WRITE, NO_FENCE_READ, NO_FENCE_WRITE, NO_TCGEN05_FENCE = range(1, 7)
SAME_VALUE = 7  # WRITE_WRITE by one instruction, and both have written the same
CODE, PREVIOUS, PREVIOUS_CLUSTER, POSITION, AGENT, EPOCH, ROW = range(7)  # columns of a conflict
MAX_CONFLICTS = 64

# flags of an access. SERIAL: it comes after what its agent did before. CONSTANT: all store the same value
STRONG, ASYNC, SERIAL, CONSTANT = 1, 2, 4, 8
SAME = 16  # of a store to shared memory, which held the same bytes before
LOG_SIZE_MASK, LOG_SAME = ml.LOG_SIZE_MASK, ml.LOG_SAME
FENCES = 16  # proxy fences remembered per thread


class Shadow(NamedTuple):
    """One memory: all shared windows of a cluster, or all global segments."""

    level: np.ndarray  # int8 per page: 0 (16-byte granules), 1 (4), 2 (1)
    start: np.ndarray  # int64 per page: its first record, -1 before the first access
    records: np.ndarray  # int64 (n, 2 + readers)
    used: np.ndarray  # int64 [1]: records handed out
    tagged: int  # 1: tags count


def new_shadow(size: int, readers: int, tagged: bool) -> Shadow:
    """A shadow of `size` bytes that remembers `readers` readers per granule (two, if tagged)."""
    pages = (size >> PAGE_BITS) + 1
    records = np.zeros((64 * (pages + 64), 2 + readers), np.int64)  # memory is taken as it is touched
    return Shadow(
        np.zeros(pages, np.int8), np.full(pages, -1, np.int64), records, np.zeros(1, np.int64), tagged
    )


def grown(s: Shadow) -> Shadow:
    """The same shadow with room for half as many records more, at least 1024."""
    old, columns = s.records.shape
    records = np.zeros((old + max(old // 2, 1024), columns), np.int64)
    records[: s.used[0]] = s.records[: s.used[0]]
    return s._replace(records=records)


def cleared(s: Shadow) -> Shadow:
    """Forgets everything, for the next cluster."""
    s.start[:] = -1
    s.level[:] = 0
    s.records[: s.used[0]] = 0
    s.used[0] = 0
    return s


@njit(cache=True)
def refine(level_of, start, records, used, page, level):
    """Gives a page records of at most that granule; False while there is no room for them."""
    count = (1 << PAGE_BITS) >> (4 - 2 * level)
    first = used[0]
    if first + count > len(records):
        return False
    old = start[page]
    if old >= 0:
        step = 2 * (level - level_of[page])
        for i in range(count):
            for k in range(records.shape[1]):
                records[first + i, k] = records[old + (i >> step), k]
    used[0] += count
    start[page] = first
    level_of[page] = level
    return True


@njit(cache=True)
def fenced(fences, counts, thread, epoch, limit):
    """Did a thread execute a proxy fence after `epoch`, that whoever knows it up to `limit` knows of?"""
    count = counts[thread]
    for i in range(count - 1, max(count - FENCES, 0) - 1, -1):
        at = fences[thread, i % FENCES]
        if at <= limit:
            return at > epoch
    return count > FENCES


@njit(cache=True)
def note(out, code, previous, tag, position, me, epoch, row):
    n = out[0, 0]
    out[0, 0] += 1
    if n + 1 < len(out):
        line = out[n + 1]
        line[0], line[1], line[2], line[3] = code, previous, tag, position
        line[4], line[5], line[6] = me, epoch, row


@njit(cache=True)
def known_epoch(clock, agent):
    return clock[agent] if agent < len(clock) else 0


@njit(cache=True)
def excused(previous, tag, now, me, row, flags, threads, others):
    """Is an earlier access that the clock does not cover no conflict all the same?"""
    agent = previous >> AGENT_SHIFT
    if flags & STRONG and previous & STRONG_BIT:
        return True
    if flags & CONSTANT and agent < threads and previous & ROW_MASK == row:
        return True  # whichever store comes last, the memory holds the same value
    if tag != now:
        return others[tag] != 0
    if agent == me and flags & SERIAL:
        return True
    # lanes of one warp in one instruction: which of them ends up in memory is open, but it is no race
    return agent < threads and me < threads and agent >> 5 == me >> 5 and previous & ROW_MASK == row


@njit(cache=True)
def look(
    code, previous, tag, position, now, me, epoch, row, flags, clock, threads, others, fences, counts, out
):
    """Notes a conflict with one earlier access, if there is one."""
    agent, at = previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK
    if tag != now or at > known_epoch(clock, agent):
        if not excused(previous, tag, now, me, row, flags, threads, others):
            if code == WRITE_WRITE and flags & SAME and agent < threads and previous & ROW_MASK == row:
                code = SAME_VALUE
            note(out, code, previous, tag, position, me, epoch, row)
        return
    if code == READ_WRITE or not flags & ASYNC or agent >= threads:
        return
    if not fenced(fences, counts, agent, at, clock[agent]):
        fence = NO_FENCE_READ if code == WRITE_READ else NO_FENCE_WRITE
        note(out, fence, previous, tag, position, me, epoch, row)


@njit(inline="always")
def prepared(level_of, start, records, used, first, last):
    """Makes sure that bytes [first, last) have records; False if the shadow must grow first."""
    edges = first | last
    level = 0 if edges & 15 == 0 else (1 if edges & 3 == 0 else 2)
    good = True
    for page in range(first >> PAGE_BITS, ((last - 1) >> PAGE_BITS) + 1):
        if start[page] < 0 or level_of[page] < level:
            good = good and refine(level_of, start, records, used, page, level)
    return good


@njit(inline="always")
def touch_span(
    records,
    first,
    count,
    position,
    step,
    tagged,
    write,
    now,
    me,
    epoch,
    row,
    flags,
    clock,
    threads,
    others,
    fences,
    counts,
    out,
):
    """An access to `count` records from `first` on; granules begin at `position` and have `step` bytes."""
    entry = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | (STRONG_BIT if flags & STRONG else 0) | row
    fencing = threads if flags & ASYNC else 0  # writes of agents below this need a proxy fence
    code, known, readers = WRITE_WRITE if write else WRITE_READ, len(clock), records.shape[1] - 2
    for i in range(first, first + count):
        tags = records[i, 0] if tagged else now
        tag = tags & TAG_MASK
        previous = records[i, 1]
        if previous:
            agent = previous >> AGENT_SHIFT
            covered = agent < known and (previous >> EPOCH_SHIFT) & EPOCH_MASK <= clock[agent]
            if not covered or tag != now or agent < fencing:
                look(
                    code,
                    previous,
                    tag,
                    position + (i - first) * step,
                    now,
                    me,
                    epoch,
                    row,
                    flags,
                    clock,
                    threads,
                    others,
                    fences,
                    counts,
                    out,
                )
        slot = readers - 1
        for k in range(readers):
            r = records[i, 2 + k]
            if r == 0:
                slot = min(slot, k)
                break
            agent = r >> AGENT_SHIFT
            tag = (tags >> (TAG_BITS * (k + 1))) & TAG_MASK if tagged else now
            covered = agent < known and (r >> EPOCH_SHIFT) & EPOCH_MASK <= clock[agent]
            mine = tag == now and (agent == me or covered)
            if write:
                if not mine:
                    look(
                        READ_WRITE,
                        r,
                        tag,
                        position + (i - first) * step,
                        now,
                        me,
                        epoch,
                        row,
                        flags,
                        clock,
                        threads,
                        others,
                        fences,
                        counts,
                        out,
                    )
                records[i, 2 + k] = 0
            elif mine or tag != now:
                slot = k
                break
        records[i, 1 if write else 2 + slot] = entry
        if tagged:
            shift = TAG_BITS * (slot + 1)
            records[i, 0] = now if write else (tags & ~(TAG_MASK << shift)) | (now << shift)


# The two entry points take arrays and integers one by one: numba takes 0.1 ms to find the types in a tuple.


@njit(cache=True)
def touch_ranges(
    level_of,
    start,
    records,
    used,
    tagged,
    starts,
    size,
    begin,
    write,
    now,
    me,
    epoch,
    row,
    flags,
    clock,
    threads,
    others,
    fences,
    counts,
    out,
):
    """Accesses to [start, start + size) for starts[begin:]; how far it came (len(starts): all done)."""
    for n in range(begin, len(starts)):
        first, last = starts[n], starts[n] + size
        if not prepared(level_of, start, records, used, first, last):
            return n
        while first < last:
            end = min(last, ((first >> PAGE_BITS) + 1) << PAGE_BITS)
            shift = 4 - 2 * level_of[first >> PAGE_BITS]
            at = start[first >> PAGE_BITS] + ((first & ((1 << PAGE_BITS) - 1)) >> shift)
            count = ((end - 1) >> shift) + 1 - (first >> shift)
            touch_span(
                records,
                at,
                count,
                first,
                1 << shift,
                tagged,
                write,
                now,
                me,
                epoch,
                row,
                flags,
                clock,
                threads,
                others,
                fences,
                counts,
                out,
            )
            first = end
    return len(starts)


@njit(inline="always")
def position_of(place, segments, window, base, rank_shift):
    """(is shared?, byte position in its shadow) of a logged place; -1 where no segment holds it."""
    shared, position = False, np.int64(-1)
    if base <= place < base + (1 << 32):
        offset = place - base
        shared, position = True, (offset >> rank_shift) * window + (offset & ((1 << rank_shift) - 1))
    else:
        for i in range(len(segments)):
            if segments[i, 0] <= place < segments[i, 1]:
                position = segments[i, 2] + place - segments[i, 0]
    return shared, position


@njit(cache=True)
def touch_log(
    level_of,
    start,
    records,
    used,
    tagged,
    want_shared,
    log,
    begin,
    until,
    clocks,
    lanes,
    agents,
    base_thread,
    strong,
    segments,
    window,
    base,
    rank_shift,
    now,
    threads,
    others,
    fences,
    counts,
    out,
):
    """Accesses log[begin:until] (rows of protocol.accesses) of threads to one memory; how far it came.

    clocks[t - base_thread] is what thread t knows; agents and lanes turn it into the agent that acts.
    segments: int64 (n, 3) of base, end, position of global buffers; window, base, rank_shift: where shared
    windows lie.
    """
    for i in range(begin, until):
        is_shared, first = position_of(log[i, 2], segments, window, base, rank_shift)
        if first < 0 or is_shared != (want_shared != 0):
            continue
        row, thread, code = log[i, 0], log[i, 1] // lanes, log[i, 3]
        last = first + ((code & LOG_SIZE_MASK) >> 1)
        if not prepared(level_of, start, records, used, first, last):
            return i
        clock, me = clocks[thread - base_thread], thread + agents
        epoch = np.int64(clock[me]) if me < len(clock) else 1
        flags = strong[row] | (0 if agents else SERIAL) | (SAME if want_shared and code & LOG_SAME else 0)
        while first < last:
            end = min(last, ((first >> PAGE_BITS) + 1) << PAGE_BITS)
            shift = 4 - 2 * level_of[first >> PAGE_BITS]
            at = start[first >> PAGE_BITS] + ((first & ((1 << PAGE_BITS) - 1)) >> shift)
            count = ((end - 1) >> shift) + 1 - (first >> shift)
            touch_span(
                records,
                at,
                count,
                first,
                1 << shift,
                tagged,
                code & 1,
                now,
                me,
                epoch,
                row,
                flags,
                clock,
                threads,
                others,
                fences,
                counts,
                out,
            )
            first = end
    return until
