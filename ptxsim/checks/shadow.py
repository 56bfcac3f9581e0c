"""Shadow of byte-addressed memory: who wrote each granule last, and who has read it since.

A granule is 16 bytes; a page (1 KB) in which somebody touches less is refined to 4 bytes or to single bytes. A record
packs agent (15 bits), epoch (28), strong? (1) and row of the instruction (19); 0 is "nobody". An agent is a thread or
one queue of asynchronous work (order.py); epoch e of agent a happened before whoever knows a clock >= e for a.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

PAGE_BITS = 10
AGENT_SHIFT, EPOCH_SHIFT, STRONG_BIT = 48, 20, 1 << 19
EPOCH_MASK, ROW_MASK = (1 << 28) - 1, (1 << 19) - 1

# what a conflict is; the earlier access comes first in the name
WRITE_WRITE, WRITE_READ, READ_WRITE, NO_FENCE_READ, NO_FENCE_WRITE, NO_TCGEN05_FENCE = range(1, 7)
CODE, PREVIOUS, PREVIOUS_CLUSTER, POSITION, AGENT, EPOCH, ROW = range(7)  # columns of a conflict
MAX_CONFLICTS = 64

STRONG, ASYNC, SERIAL = 1, 2, 4  # flags of an access; SERIAL: what its agent did before, it comes after
FENCES = 16  # proxy fences remembered per thread


class Shadow(NamedTuple):
    """One memory: all shared windows of a cluster, or all global segments."""

    level: np.ndarray  # int8 per page: 0 (16-byte granules), 1 (4), 2 (1)
    start: np.ndarray  # int64 per page: its first record, -1 before the first access
    write: np.ndarray  # int64 per record: the last write
    write_tag: np.ndarray  # int32: cluster number + 1 of that write
    reads: np.ndarray  # int64 (slots, records): reads since
    read_tag: np.ndarray  # int32 (slots, records)
    used: np.ndarray  # int64 [1]: records handed out


def new_shadow(size: int, slots: int) -> Shadow:
    """A shadow of `size` bytes that remembers `slots` readers per granule."""
    pages = (size >> PAGE_BITS) + 1
    records = 64 * min(pages, 1 << 12)
    return Shadow(
        np.zeros(pages, np.int8), np.full(pages, -1, np.int64), np.zeros(records, np.int64), np.zeros(records, np.int32),
        np.zeros((slots, records), np.int64), np.zeros((slots, records), np.int32), np.zeros(1, np.int64),
    )  # fmt: skip


def grown(s: Shadow) -> Shadow:
    """The same shadow with room for twice as many records, at least 1024 more."""
    old = len(s.write)
    size = max(2 * old, old + 1024)
    slots = len(s.reads)
    new = s._replace(
        write=np.zeros(size, np.int64), write_tag=np.zeros(size, np.int32),
        reads=np.zeros((slots, size), np.int64), read_tag=np.zeros((slots, size), np.int32),
    )  # fmt: skip
    for name in ("write", "write_tag", "reads", "read_tag"):
        getattr(new, name)[..., :old] = getattr(s, name)
    return new


def cleared(s: Shadow) -> Shadow:
    """Forgets everything, for the next cluster."""
    s.start[:] = -1
    s.level[:] = 0
    s.write[: s.used[0]] = 0
    s.reads[:, : s.used[0]] = 0
    s.used[0] = 0
    return s


@njit(cache=True, inline="always")
def shift_of(level):
    return 4 - 2 * level


@njit(cache=True)
def refine(s, page, level):
    """Gives a page records of at most that granule; False while there is no room for them."""
    count = (1 << PAGE_BITS) >> shift_of(level)
    first = s.used[0]
    if first + count > len(s.write):
        return False
    old = s.start[page]
    if old >= 0:
        step = 2 * (level - s.level[page])
        for i in range(count):
            s.write[first + i] = s.write[old + (i >> step)]
            s.write_tag[first + i] = s.write_tag[old + (i >> step)]
            for k in range(s.reads.shape[0]):
                s.reads[k, first + i] = s.reads[k, old + (i >> step)]
                s.read_tag[k, first + i] = s.read_tag[k, old + (i >> step)]
    s.used[0] += count
    s.start[page] = first
    s.level[page] = level
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
def ordered(previous, tag, now, me, flags, row, clock, threads, others):
    """Is an earlier access ordered before this one (or no conflict with it)?"""
    agent = previous >> AGENT_SHIFT
    if flags & STRONG and previous & STRONG_BIT:
        return True
    if tag != now:
        return others[tag] != 0
    if agent == me and flags & SERIAL:
        return True
    if (previous >> EPOCH_SHIFT) & EPOCH_MASK <= known_epoch(clock, agent):
        return True
    # lanes of one warp in one instruction: which of them ends up in memory is open, but it is no race
    return agent < threads and me < threads and agent >> 5 == me >> 5 and previous & ROW_MASK == row


@njit(cache=True)
def touch_write(s, i, position, now, me, epoch, row, flags, clock, threads, others, fences, counts, out):
    previous = s.write[i]
    strong = flags & STRONG
    if previous:
        tag = s.write_tag[i]
        if not ordered(previous, tag, now, me, flags, row, clock, threads, others):
            note(out, WRITE_WRITE, previous, tag, position, me, epoch, row)
        elif flags & ASYNC and previous >> AGENT_SHIFT < threads and tag == now:
            agent = previous >> AGENT_SHIFT
            if not fenced(fences, counts, agent, (previous >> EPOCH_SHIFT) & EPOCH_MASK, clock[agent]):
                note(out, NO_FENCE_WRITE, previous, tag, position, me, epoch, row)
    for k in range(s.reads.shape[0]):
        previous = s.reads[k, i]
        if previous:
            tag = s.read_tag[k, i]
            same_lane_group = previous >> AGENT_SHIFT < threads and previous & ROW_MASK == row
            if (
                not ordered(previous, tag, now, me, flags, row, clock, threads, others)
                and not same_lane_group
            ):
                note(out, READ_WRITE, previous, tag, position, me, epoch, row)
            s.reads[k, i] = 0
    s.write[i] = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | (STRONG_BIT if strong else 0) | row
    s.write_tag[i] = now


@njit(cache=True)
def touch_read(s, i, position, now, me, epoch, row, flags, clock, threads, others, fences, counts, out):
    previous = s.write[i]
    strong = flags & STRONG
    if previous:
        tag = s.write_tag[i]
        if not ordered(previous, tag, now, me, flags, row, clock, threads, others):
            note(out, WRITE_READ, previous, tag, position, me, epoch, row)
        elif flags & ASYNC and previous >> AGENT_SHIFT < threads and tag == now:
            agent = previous >> AGENT_SHIFT
            if not fenced(fences, counts, agent, (previous >> EPOCH_SHIFT) & EPOCH_MASK, clock[agent]):
                note(out, NO_FENCE_READ, previous, tag, position, me, epoch, row)
    slots = s.reads.shape[0]
    slot = slots - 1
    for k in range(slots):
        r = s.reads[k, i]
        if r == 0 or s.read_tag[k, i] != now:
            slot = k
            break
        agent = r >> AGENT_SHIFT
        if agent == me or (r >> EPOCH_SHIFT) & EPOCH_MASK <= known_epoch(clock, agent):
            slot = k
            break
    s.reads[slot, i] = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | (STRONG_BIT if strong else 0) | row
    s.read_tag[slot, i] = now


@njit(cache=True)
def touch(s, first, last, write, now, me, epoch, row, flags, clock, threads, others, fences, counts, out):
    """An access to bytes [first, last). False, with nothing done, if the shadow must grow first."""
    edges = first | last
    level = 0 if edges & 15 == 0 else (1 if edges & 3 == 0 else 2)
    for page in range(first >> PAGE_BITS, ((last - 1) >> PAGE_BITS) + 1):
        if (s.start[page] < 0 or s.level[page] < level) and not refine(s, page, level):
            return False
    position = first
    while position < last:
        page = position >> PAGE_BITS
        end = min(last, (page + 1) << PAGE_BITS)
        shift = shift_of(s.level[page])
        base = s.start[page] - ((page << PAGE_BITS) >> shift)
        for g in range(position >> shift, ((end - 1) >> shift) + 1):
            if write:
                touch_write(
                    s,
                    base + g,
                    g << shift,
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
            else:
                touch_read(
                    s,
                    base + g,
                    g << shift,
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
        position = end
    return True


@njit(cache=True)
def touch_ranges(
    s, starts, size, begin, write, now, me, epoch, row, flags, clock, threads, others, fences, counts, out
):
    """Accesses to [start, start + size) for starts[begin:]; how far it came (len(starts): all done)."""
    for i in range(begin, len(starts)):
        a = starts[i]
        if not touch(
            s, a, a + size, write, now, me, epoch, row, flags, clock, threads, others, fences, counts, out
        ):
            return i
    return len(starts)


@njit(cache=True)
def position_of(place, segments, window, base, rank_shift):
    """(is shared?, byte position in its shadow) of a logged place; -1 where no segment holds it."""
    if base <= place < base + (1 << 32):
        offset = place - base
        return True, (offset >> rank_shift) * window + (offset & ((1 << rank_shift) - 1))
    for i in range(len(segments)):
        if segments[i, 0] <= place < segments[i, 1]:
            return False, segments[i, 2] + place - segments[i, 0]
    return False, np.int64(-1)


@njit(cache=True)
def touch_log(
    shared, memory, log, begin, stops, forced, clocks, lanes, agents, base_thread, segments, window, base, rank_shift, now,
    threads, others, shared_fences, shared_counts, memory_fences, memory_counts, serial, out,
):  # fmt: skip
    """Generic accesses log[begin:] (rows of protocol.accesses) of threads; how far it came.

    clocks[t - base_thread] is what thread t knows; agents and lanes turn it into the agent that acts. Stops in front
    of rows marked in `stops` (they synchronise), except at index `forced`. Conflicts in global memory are noted at
    -1 - position.
    """
    for i in range(begin, len(log)):
        row = log[i, 0]
        if stops[row] and i != forced:
            return i
        thread = log[i, 1] // lanes
        place, code = log[i, 2], log[i, 3]
        is_shared, position = position_of(place, segments, window, base, rank_shift)
        if position < 0:
            continue
        clock = clocks[thread - base_thread]
        me = thread + agents
        epoch = clock[me] if me < len(clock) else 1
        flags = (stops[row] & STRONG) | serial
        last = position + (code >> 1)
        if is_shared:
            done = touch(shared, position, last, code & 1, now, me, epoch, row, flags, clock, threads, others,
                         shared_fences, shared_counts, out)  # fmt: skip
        else:
            noted = out[0, 0]
            done = touch(memory, position, last, code & 1, now, me, epoch, row, flags, clock, threads, others,
                         memory_fences, memory_counts, out)  # fmt: skip
            for n in range(noted + 1, min(out[0, 0] + 1, len(out))):
                out[n, POSITION] = -1 - out[n, POSITION]
        if not done:
            return i
    return len(log)
