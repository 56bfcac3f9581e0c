"""What a region of the shadow remembers, and how an access is compared with that and added to it.

A record holds the last write and the reads since: READERS of them, and a chain of further ones. No read is
forgotten before a later read or a write is ordered after it, and no strong write before another is. The tags
of a record name the clusters (index + 1) of the write and of the reads. Clusters run one after another, and
an access that comes after a cluster comes after all its reads. So the reads of each earlier cluster are one
entry: a node on the path from the record's node in `pasts` to the root. Regions with the same past share
nodes.
"""

from __future__ import annotations

import numpy as np
from numba.np.numpy_support import carray

from ptxsim.checks.race.deferred_reads import BASE, END, HELD, POSITION, SEGMENT_COLUMNS
from ptxsim.checks.race.observed import observed, strong_for
from ptxsim.checks.race.older_writes import is_wide, keep_older
from ptxsim.checks.race.shadow_bytes import (  # fmt: skip
    BYTES,
    CHILD,
    CLUSTER,
    ENTRY,
    FIRST,
    HIT,
    MORE,
    NEXT,
    OLDER,
    PARENT,
    PAST,
    PASTS_USED,
    READ,
    READERS,
    REGION,
    SAMPLE,
    SIBLING,
    TAG,
    TAGS,
    TARGET,
    TICK,
    WRITE,
    clear_reads,
    copy_record,
    drop_chain,
    free_region,
    gather,
    has_room,
    new_link,
    new_region,
    part_of,
    prepare,
    reassign,
)
from ptxsim.checks.race.shadow_order import (  # fmt: skip
    AGENT_SHIFT,
    ASYNC,
    DATA,
    EPOCH_MASK,
    EPOCH_SHIFT,
    NARROW,
    NARROW_BIT,
    OPEN,
    READ_WRITE,
    ROW_MASK,
    SERIAL,
    STRONG,
    STRONG_BIT,
    WRITE_READ,
    WRITE_WRITE,
    covered,
    look,
    look_open,
)
from ptxsim.checks.race.shadow_own import TAG_BITS, TAG_MASK, touch_own
from ptxsim.checks.race.shadow_words import (
    DONE,
    LANES,
    NOW,
    SEGMENTS,
    STORES,
    WINDOW,
    actor_at,
    flags_in,
    kind_of,
    rows,
    shadow_at,
)
from ptxsim.isa.address_map import SHARED_BASE, SHARED_END
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.bytecode import LOG_PLACE, LOG_ROW, LOG_SIZE, LOG_SIZE_MASK, LOG_THREAD
from ptxsim.jit.compiled import compiled
from ptxsim.jit.intrinsics import pointer
from ptxsim.jit.translate import shared_place

COMPLETE, FULL, NEEDS_READS = range(3)  # outcomes of touch_log
ELSEWHERE, READS_KEPT = -1, -2  # instead of a position: other space; reads to look up first
MERGE = 8  # a write to more regions than these makes them one


@inner(forceinline=True)
def _move_to_past(s, r, tag):
    """Replaces the readers of an earlier cluster by one node."""
    parent, sample = s.records[r, PAST], s.records[r, READ]
    node = s.pasts[parent, CHILD]
    while node and (s.pasts[node, TAG] != tag or (s.pasts[node, SAMPLE] ^ sample) & (ROW_MASK | STRONG_BIT)):
        node = s.pasts[node, SIBLING]
    if not node:
        node = s.head[PASTS_USED]
        s.head[PASTS_USED] += 1
        s.pasts[node, PARENT], s.pasts[node, TAG], s.pasts[node, SAMPLE] = parent, tag, sample
        s.pasts[node, CHILD], s.pasts[node, SIBLING] = 0, s.pasts[parent, CHILD]
        s.pasts[parent, CHILD] = node
    drop_chain(s, r, MORE)
    clear_reads(s, r)
    s.records[r, PAST] = node


@inner(forceinline=True)
def _replaces(a, entry, reader):
    """Whether an access that comes after the new read `entry` comes after the earlier `reader` as well."""
    weaker = entry & STRONG_BIT and not reader & STRONG_BIT  # a strong write does not race with strong reads
    narrower = entry & STRONG_BIT and not entry & NARROW_BIT and reader & NARROW_BIT  # by scope
    return not weaker and not narrower and (reader >> AGENT_SHIFT == a.me or covered(a, reader))


@inner(forceinline=True)
def _add_reader(s, a, r, entry):
    tag = s.records[r, TAGS] >> TAG_BITS
    if tag != a.now and s.records[r, READ]:
        _move_to_past(s, r, tag)
    s.records[r, TAGS] = (s.records[r, TAGS] & TAG_MASK) | (a.now << TAG_BITS)
    for k in range(READ, READ + READERS):
        reader = s.records[r, k]
        if reader == 0 or _replaces(a, entry, reader):
            later = reader >> AGENT_SHIFT == a.me and (reader >> EPOCH_SHIFT) & EPOCH_MASK > a.epoch
            s.records[r, k] = reader if later else entry
            return
    link = s.records[r, MORE]
    while link:
        if _replaces(a, entry, s.links[link, ENTRY]):
            s.links[link, ENTRY] = entry
            return
        link = s.links[link, NEXT]
    s.records[r, MORE] = new_link(s, entry, s.records[r, MORE])


@inner(forceinline=True)
def _check_readers(s, a, r, position):
    """Notes the conflicts of a write with the reads of a region."""
    tag = s.records[r, TAGS] >> TAG_BITS
    link = s.records[r, MORE]
    for k in range(READ, READ + READERS):
        reader = s.records[r, k]
        if reader == 0:
            break
        if tag != a.now or not (reader >> AGENT_SHIFT == a.me or covered(a, reader)):
            look(a, READ_WRITE, reader, tag, position)
    while link:
        reader = s.links[link, ENTRY]
        if tag != a.now or not (reader >> AGENT_SHIFT == a.me or covered(a, reader)):
            look(a, READ_WRITE, reader, tag, position)
        link = s.links[link, NEXT]
    node = s.records[r, PAST]
    while node:
        look(a, READ_WRITE, s.pasts[node, SAMPLE], s.pasts[node, TAG], position)
        node = s.pasts[node, PARENT]


@inner(forceinline=True)
def _check(s, a, found, write):
    """Notes the conflicts of an access with what its regions remember."""
    code = WRITE_WRITE if write else WRITE_READ
    fencing = max(a.threads, a.first_copy + len(a.copied)) if a.flags & ASYNC else 0
    wide = a.flags & (STRONG | NARROW | OPEN | ASYNC | DATA) == STRONG
    for n in range(found):
        r = s.sheet[n, REGION]
        previous, tag = s.records[r, WRITE], s.records[r, TAGS] & TAG_MASK
        seen = previous & STRONG_BIT and not a.flags & (STRONG | ASYNC) and observed(s, a, r)
        known = tag == a.now and covered(a, previous) and previous >> AGENT_SHIFT >= fencing
        if previous and not known and not (seen and strong_for(a, previous, tag)):
            look(a, code, previous, tag, s.sheet[n, FIRST], True)
        if look_open(a, previous, tag, s.sheet[n, FIRST], write):
            s.records[r, WRITE] &= ~NARROW_BIT  # told once
        link = s.records[r, OLDER]
        while link and not (wide and is_wide(a, s.links[link, ENTRY])):
            if not (seen and strong_for(a, s.links[link, ENTRY], s.links[link, CLUSTER])):
                look(a, code, s.links[link, ENTRY], s.links[link, CLUSTER], s.sheet[n, FIRST])
            link = s.links[link, NEXT]
        if write:
            _check_readers(s, a, r, s.sheet[n, FIRST])


@compiled()
def _read_plainly(s, r):
    """Whether a read of a region is plain (not strong): another strong write need not come after such a
    read.
    """
    for k in range(READ, READ + READERS):
        if s.records[r, k] and not s.records[r, k] & STRONG_BIT:
            return True
    link = s.records[r, MORE]
    while link:
        if not s.links[link, ENTRY] & STRONG_BIT:
            return True
        link = s.links[link, NEXT]
    past = s.records[r, PAST]
    return past != 0 and not s.pasts[past, SAMPLE] & STRONG_BIT


@inner(forceinline=True)
def _write_record(s, a, r, entry):
    if a.flags & STRONG:
        keep_older(s, a, r)
        if _read_plainly(s, r):
            s.records[r, TAGS] = (s.records[r, TAGS] & ~TAG_MASK) | a.now
            s.records[r, WRITE] = entry
            return
    else:
        drop_chain(s, r, OLDER)
    drop_chain(s, r, MORE)
    clear_reads(s, r)
    s.records[r, TAGS] = a.now | (a.now << TAG_BITS)
    s.records[r, WRITE], s.records[r, PAST] = entry, 0


@inner(forceinline=True)
def _enter_write(s, a, found, entry):
    """Makes the access the last write of its regions; True if slots must be assigned to new regions."""
    merged, total, changed = 0, 0, False
    if found > MERGE and not a.flags & STRONG:
        for n in range(found):
            total += s.sheet[n, HIT]
        merged = new_region(s, total)
        _write_record(s, a, merged, entry)
    for n in range(found):
        r = s.sheet[n, REGION]
        whole = s.sheet[n, HIT] == s.sizes[r, BYTES]
        if merged:
            s.sheet[n, TARGET], changed = merged, True
            if whole:
                free_region(s, r)
            else:
                s.sizes[r, BYTES] -= s.sheet[n, HIT]
        elif whole:
            _write_record(s, a, r, entry)
        else:
            changed, part = True, part_of(s, n)
            if a.flags & STRONG:
                copy_record(s, r, part)
            _write_record(s, a, part, entry)
    return changed


@inner(forceinline=True)
def _enter_read(s, a, found, entry):
    changed = False
    for n in range(found):
        r = s.sheet[n, REGION]
        if s.sheet[n, HIT] < s.sizes[r, BYTES]:
            part = part_of(s, n)
            copy_record(s, r, part)
            r, changed = part, True
        _add_reader(s, a, r, entry)
    return changed


@inner(forceinline=True)
def _touch(s, a, spans, write):
    """One access to the bytes [first, last) of all spans; False if the shadow must grow first."""
    for n in range(len(spans)):
        if not prepare(s, spans[n, 0], spans[n, 1]):
            return False
    s.head[TICK] += 1
    found = 0
    for n in range(len(spans)):
        found = gather(s, spans[n, 0], spans[n, 1], found)
        if found < 0:
            return False
    if not has_room(s, found):
        return False
    _check(s, a, found, write)
    kind = (STRONG_BIT if a.flags & STRONG else 0) | (NARROW_BIT if a.flags & (NARROW | OPEN) else 0)
    entry = (a.me << AGENT_SHIFT) | (a.epoch << EPOCH_SHIFT) | kind | a.row
    if _enter_write(s, a, found, entry) if write else _enter_read(s, a, found, entry):
        for n in range(len(spans)):
            reassign(s, spans[n, 0], spans[n, 1])
    return True


# ---- the two entry points ----


@compiled()
def touch_spans(words, spans, write, me, epoch, row, flags, clock):
    """One access of asynchronous work to disjoint spans, int64 (n, 2); False: the shadow must grow first.

    words: the row of shadow_words.py for that space.
    """
    actor = actor_at(words, me, epoch, row, flags, _bare(clock), 1)
    return _touch(shadow_at(words), actor, spans, write)


@compiled()
def touch_log(both, log, clocks, agents, base_thread):
    """Accesses of threads (rows of Observer.accesses), from row DONE of each space on. Returns COMPLETE, FULL
    (a space must grow first), or NEEDS_READS (the reads of the buffer at row DONE must be looked up first:
    deferred_reads.py).

    both: the rows of words of shared and of global memory. clocks[t - base_thread] is what thread t knows;
    `agents` is added to t to give the agent that acts; the epoch is the thread's.
    """
    known, span = _bare(clocks), np.empty((1, 2), np.int64)
    for space in range(2):
        words = _bare(both[space])
        s, lanes, begin = shadow_at(words), words[LANES], words[DONE]
        for i in range(begin, len(log)):
            first = _position_of(words, space == 0, log[i, LOG_PLACE])
            if first == ELSEWHERE:
                continue
            if first == READS_KEPT:
                words[DONE] = i
                return NEEDS_READS
            row, thread, code = log[i, LOG_ROW], log[i, LOG_THREAD] // lanes, log[i, LOG_SIZE]
            span[0, 0], span[0, 1] = first, first + ((code & LOG_SIZE_MASK) >> 1)
            clock, me = known[thread - base_thread], thread + agents
            epoch = np.int64(clock[thread]) if thread < len(clock) else np.int64(1)
            flags, write = kind_of(words, row) | (0 if agents else SERIAL), code & 1 == 1
            if code > LOG_SIZE_MASK:
                flags |= flags_in(code, flags)
            entry = (me << AGENT_SHIFT) | (epoch << EPOCH_SHIFT) | row
            own = not (agents or flags & (STRONG | NARROW)) and touch_own(
                s, words[NOW], me, epoch, entry, first, span[0, 1] - first, write
            )
            if not own and not _touch(s, actor_at(words, me, epoch, row, flags, clock, lanes), span, write):
                words[DONE] = i
                return FULL
            words[STORES] += code & 1
        words[DONE] = len(log)
    both[:, DONE] = 0
    return COMPLETE


@inner(forceinline=True)
def _bare(a):
    """The same array without its owner: views built from it need no reference counts."""
    return carray(pointer(a.ctypes.data), a.shape, a.dtype)


@inner(forceinline=True)
def _position_of(words, shared, place):
    """Byte position of a logged place in the shadow of shared or of global memory."""
    if SHARED_BASE <= place < SHARED_END:
        rank, offset = shared_place(place)
        return rank * words[WINDOW] + offset if shared else ELSEWHERE
    segments = rows(words, SEGMENTS, SEGMENT_COLUMNS, np.int64)
    for i in range(0 if shared else len(segments)):
        if segments[i, BASE] <= place < segments[i, END]:
            return READS_KEPT if segments[i, HELD] else segments[i, POSITION] + place - segments[i, BASE]
    return ELSEWHERE
