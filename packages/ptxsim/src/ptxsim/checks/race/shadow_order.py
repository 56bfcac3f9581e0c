"""What a shadow keeps of an access, and whether a later access conflicts with it.

An entry packs agent (15 bits), epoch (28), whether it is strong (1), whether its scope is .cta (1) and row of
the instruction (18); 0 means no access. A plain write has the bit of the scope if lanes of one instruction
stored different values, and nobody has read what remained. An agent is a thread or one queue of asynchronous
work (vector_clocks.py); epoch e of agent a happened before every agent whose clock for a is >= e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.np.numpy_support import carray

from ptxsim.checks.race import other_clusters
from ptxsim.checks.race.other_clusters import ACQUIRED, ADDRESS, LENGTH, OLDER
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import pointer

AGENT_SHIFT, EPOCH_SHIFT, STRONG_BIT, NARROW_BIT = 48, 20, 1 << 19, 1 << 18
EPOCH_MASK, ROW_MASK = (1 << 28) - 1, (1 << 18) - 1

# kinds of conflicts; the earlier access comes first in the name
WRITE_WRITE, WRITE_READ, READ_WRITE, NO_FENCE_READ, NO_FENCE_WRITE, NO_TCGEN05_FENCE = range(1, 7)
SAME_VALUE = 7  # WRITE_WRITE by stores of threads that have written the same value
# lanes store different values to one place in one instruction; a later access, in order, reads what remains
OPEN_WRITE, OPEN_READ = 8, 9
UNACQUIRED = 9  # added to the first three: only an acquire by the later one's CTA is missing
UNORDERED = 12  # added to the first three: both are strong, but the load is of data (data_loads.py)
CODE, PREVIOUS, PREVIOUS_CLUSTER, POSITION, AGENT, EPOCH, ROW, CONFLICT = range(8)  # columns of a conflict
MAX_CONFLICTS = 64
TOLD, TOLD_UNACQUIRED = 1, 2

# flags of an access. SERIAL: it comes after what its agent did before. CONSTANT: all threads store the same
STRONG, ASYNC, SERIAL, CONSTANT = 1, 2, 4, 8
SAME = 16  # of a store: the place already held the same bytes
NARROW = 32  # of a strong access: its scope is .cta
STORE = 64  # of an instruction: threads store their registers, whatever the place held before
DATA = 256  # of a strong load: its value decides no branch
OBSERVES = 128  # of an instruction: it writes, and its thread gets what the place held before (atom)
AGAIN = 512  # of a store: an earlier lane stores to this place in the same instruction
OPEN = 1024  # of a plain store with AGAIN, the last one: and another value


class Actor(NamedTuple):
    """The agent that makes an access, and what orders it."""

    now: int  # tag of the cluster: its index + 1
    me: int
    epoch: int
    row: int
    flags: int
    clock: np.ndarray
    threads: int  # agents below this are threads
    lanes: int  # threads per agent
    cta: int  # agents per CTA
    others: np.ndarray  # per tag: the latest of its events
    events: np.ndarray  # what threads learnt of other clusters (other_clusters.py)
    fences: np.ndarray
    counts: np.ndarray
    out: np.ndarray
    first_copy: int  # agent of the first queue of cp.async; 0: none
    copied: np.ndarray  # per such queue: how many of its copies come before a proxy fence that we know of
    kinds: np.ndarray  # flags of each instruction


@compiled()
def fenced(fences, counts, thread, epoch, limit):
    """Whether a thread executed a proxy fence after `epoch` that is known to everyone who knows the thread
    up to `limit`.
    """
    low, high = 0, counts[thread]  # the last fence up to `limit`; their epochs ascend
    while low < high:
        middle = (low + high) >> 1
        if fences[thread, middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low > 0 and fences[thread, low - 1] > epoch


@compiled()
def note(out, code, previous, tag, position, me, epoch, row):
    """Keeps a conflict while there is room; once full, a race (two unordered accesses) still replaces a
    last line that is no race.
    """
    out[0, 0] += 1
    at = min(out[0, 0], len(out) - 1)
    if at == out[0, 0] or code <= READ_WRITE < out[at, 0]:
        line = out[at]
        line[0], line[1], line[2], line[3] = code, previous, tag, position
        line[4], line[5], line[6] = me, epoch, row


@compiled()
def known_epoch(clock, agent):
    return clock[agent] if agent < len(clock) else 0


@inner(forceinline=True)
def covered(a, previous):
    """Whether the actor knows of an earlier access of its own cluster."""
    agent = previous >> AGENT_SHIFT
    return agent < len(a.clock) and (previous >> EPOCH_SHIFT) & EPOCH_MASK <= a.clock[agent]


@inner(forceinline=True)
def morally_strong(a, previous, tag):
    """Whether both accesses are strong, each within the other's scope (PTX ISA 8.7.1)."""
    if not (a.flags & STRONG and previous & STRONG_BIT):
        return False
    if not (a.flags & NARROW or previous & NARROW_BIT):
        return True
    agent = previous >> AGENT_SHIFT
    return tag == a.now and max(agent, a.me) < a.threads and agent // a.cta == a.me // a.cta


@compiled()
def told(a, previous, tag):
    """Whether the actor comes after an access by another cluster: 0, TOLD, or TOLD_UNACQUIRED."""
    agent, at, found = previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK, 0
    number = a.others[tag]
    while number:
        event = a.events[number]
        if known_epoch(a.clock, event[other_clusters.AGENT]) >= event[other_clusters.EPOCH]:
            row = carray(pointer(event[ADDRESS]), (event[LENGTH],), np.int32)
            if previous & STRONG_BIT or known_epoch(row, agent) >= at:
                if event[ACQUIRED] or previous & STRONG_BIT:
                    return TOLD
                found = TOLD_UNACQUIRED
        number = event[OLDER]
    return found


@compiled()
def excused(a, previous, tag, strong):
    """Whether two unordered accesses are nevertheless not a race. strong: both are."""
    agent, same_row = previous >> AGENT_SHIFT, previous & ROW_MASK == a.row
    if strong and not (a.flags | a.kinds[previous & ROW_MASK]) & DATA:
        return True
    if a.flags & CONSTANT and agent < a.threads and same_row:
        return True  # whichever store comes last, memory holds the same value
    if tag != a.now:
        return told(a, previous, tag) == TOLD
    if agent == a.me and a.flags & SERIAL:
        return True
    # lanes of one warp in one instruction: which value memory then holds is open (OPEN), but it is no race
    warp, mine = agent * a.lanes >> 5, a.me * a.lanes >> 5
    return a.flags & AGAIN and agent < a.threads and a.me < a.threads and warp == mine and same_row


@inner(forceinline=True)
def generic(a, agent):
    """Whether this agent of the actor's own cluster accesses memory through the generic proxy."""
    return agent < a.threads or (a.first_copy and 0 <= agent - a.first_copy < len(a.copied))


@inner(forceinline=True)
def stored_the_same(a, previous):
    """Whether the actor has stored the same bytes as the last write before it, which memory still held."""
    by_threads = previous >> AGENT_SHIFT < a.threads and a.me < a.threads
    return by_threads and a.flags & SAME and a.kinds[previous & ROW_MASK] & STORE


@compiled()
def look(a, code, previous, tag, position, last=False):
    """Notes a conflict with one earlier access, if there is one. last: the earlier access is the last
    write.
    """
    agent, at = previous >> AGENT_SHIFT, (previous >> EPOCH_SHIFT) & EPOCH_MASK
    if tag != a.now or not covered(a, previous):
        strong = morally_strong(a, previous, tag)
        if not excused(a, previous, tag, strong):
            code += UNORDERED if strong else 0
            if last and code == WRITE_WRITE and stored_the_same(a, previous):
                code = SAME_VALUE
            if tag != a.now and told(a, previous, tag) and code <= READ_WRITE:
                code += UNACQUIRED
            note(a.out, code, previous, tag, position, a.me, a.epoch, a.row)
        return
    if code == READ_WRITE or not a.flags & ASYNC:
        return
    if not generic(a, agent):
        return
    copy = agent - a.first_copy
    known = (
        at <= a.copied[copy] if agent >= a.threads else fenced(a.fences, a.counts, agent, at, a.clock[agent])
    )
    if not known:
        code = NO_FENCE_READ if code == WRITE_READ else NO_FENCE_WRITE
        note(a.out, code, previous, tag, position, a.me, a.epoch, a.row)


@inner(forceinline=True)
def look_open(a, previous, tag, position, write):
    """Notes that lanes store different values in one instruction, or that something reads what remained.
    Returns whether it is such a read.
    """
    read = not write and previous & (STRONG_BIT | NARROW_BIT) == NARROW_BIT
    if read or a.flags & OPEN:
        note(a.out, OPEN_READ if read else OPEN_WRITE, previous, tag, position, a.me, a.epoch, a.row)
    return read
