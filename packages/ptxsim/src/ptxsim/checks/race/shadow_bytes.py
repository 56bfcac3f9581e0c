"""Shadow of byte-addressed memory: bytes that the same accesses have touched share one record.

Memory is divided into slots, each of which names its region. A slot has 1 KB, 16 bytes, 4 or 1, as fine as
the accesses to its page of 1 KB need. A region is split when an access touches only part of it; a write
merges many regions into one. shadow_access.py says what a record holds and how an access changes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptxsim.isa.mathlib.inner import inner

SHARED, MEMORY = "shared", "memory"  # spaces with a shadow of this kind
PAGE_BITS = 10
PAGE = 1 << PAGE_BITS
READERS = 3  # reads that a record holds itself

TAGS, WRITE, OLDER, MORE, PAST, READ = range(6)  # columns of a record; OLDER, MORE: chains
BYTES, MARK = range(2)  # columns of a region: its size; the last access that found it, and its line there
REGION, HIT, FIRST, TARGET = range(4)  # columns of the sheet of an access, one line per region that it finds
ENTRY, NEXT, CLUSTER = range(3)  # columns of a link of a chain
PARENT, TAG, SAMPLE, CHILD, SIBLING = range(5)  # columns of a node of `pasts`
SLOTS_USED, REGIONS_USED, REGION_FREE, LINKS_USED, LINK_FREE, PASTS_USED, TICK = range(7)  # in the head


class Shadow(NamedTuple):
    """The shadow of one memory: all shared windows of a cluster, or all global segments."""

    level: np.ndarray  # int8 per page: slots of 1 KB (0), 16 bytes (1), 4 (2), 1 (3)
    start: np.ndarray  # int64 per page: its first slot, -1 before the first access
    region: np.ndarray  # int32 per slot; region 0 is untouched memory
    records: np.ndarray  # int64 (regions, READ + READERS)
    sizes: np.ndarray  # int64 (regions, 2)
    sheet: np.ndarray  # int64 (n, 4)
    links: np.ndarray  # int64 (links, 3); link 0 ends a chain
    pasts: np.ndarray  # int64 (n, 5); node 0 is the root
    head: np.ndarray  # int64: counts and free lists


def new_shadow(size: int) -> Shadow:
    """A shadow of `size` bytes. The operating system provides its memory only as it is touched."""
    pages = (size >> PAGE_BITS) + 1
    regions = 4096 + 2 * pages
    shadow = Shadow(
        np.zeros(pages, np.int8), np.full(pages, -1, np.int64), np.zeros(64 * (pages + 64), np.int32),
        np.zeros((regions, READ + READERS), np.int64), np.zeros((regions, 2), np.int64),
        np.zeros((4096, 4), np.int64), np.zeros((1024, 3), np.int64), np.zeros((1024, 5), np.int64),
        np.zeros(7, np.int64),
    )  # fmt: skip
    return cleared(shadow)


def cleared(s: Shadow) -> Shadow:
    """Forgets everything, for the next cluster."""
    s.start[:] = -1
    s.head[:TICK] = 0, 1, 0, 1, 0, 1
    s.pasts[0] = 0
    s.sizes[0, BYTES] = 1 << 62
    return s


def grown(s: Shadow, slots: int) -> Shadow:
    """The same shadow with room for an access to this many slots."""
    used = [int(s.head[k]) for k in (SLOTS_USED, REGIONS_USED, REGIONS_USED, LINKS_USED, PASTS_USED)]
    rooms = [slots, slots + 1, slots + 1, slots + used[3], slots]  # an access may copy all chains
    arrays = [s.region, s.records, s.sizes, s.links, s.pasts]
    region, records, sizes, links, pasts = map(_with_room, arrays, used, rooms)
    sheet = _with_room(s.sheet, 0, slots)
    return s._replace(region=region, records=records, sizes=sizes, sheet=sheet, links=links, pasts=pasts)


def _with_room(array: np.ndarray, used: int, room: int) -> np.ndarray:
    if used + room <= len(array):
        return array
    more = np.zeros((used + room + len(array), *array.shape[1:]), array.dtype)
    more[:used] = array[:used]
    return more


# ---- slots ----


@inner(forceinline=True)
def bits_of(level):
    """log2 of the bytes of a slot."""
    return 10 if level == 0 else 6 - 2 * level


@inner(forceinline=True)
def _refine(s, page, level):
    """Gives a page slots of at most the size of `level`; False if there is no room for them."""
    bits = bits_of(level)
    count, first, old = PAGE >> bits, s.head[SLOTS_USED], s.start[page]
    if first + count > len(s.region):
        return False
    shift = bits_of(s.level[page]) - bits
    for i in range(count):
        s.region[first + i] = s.region[old + (i >> shift)] if old >= 0 else 0
    s.head[SLOTS_USED] += count
    s.start[page], s.level[page] = first, level
    return True


@inner(forceinline=True)
def prepare(s, first, last):
    """Gives bytes [first, last) slots of their own; False if there is no room for them."""
    edges = first | last
    level = 0 if edges & (PAGE - 1) == 0 else (1 if edges & 15 == 0 else (2 if edges & 3 == 0 else 3))
    for page in range(first >> PAGE_BITS, ((last - 1) >> PAGE_BITS) + 1):
        if (s.start[page] < 0 or s.level[page] < level) and not _refine(s, page, level):
            return False
    return True


@inner(forceinline=True)
def gather(s, first, last, found):
    """Adds the regions of bytes [first, last) to the sheet of this access; returns the number of its
    lines, -1 if it is full.
    """
    tick, before, n = s.head[TICK] << 32, -1, 0
    while first < last:
        page = first >> PAGE_BITS
        bits = bits_of(s.level[page])
        end = min(last, (page + 1) << PAGE_BITS)
        at = s.start[page] + ((first & (PAGE - 1)) >> bits)
        for i in range((end - first) >> bits):
            r = s.region[at + i]
            if r != before:
                before, n = r, s.sizes[r, MARK] - tick
                if n < 0:
                    n, found = found, found + 1
                    if n == len(s.sheet):
                        return -1
                    s.sizes[r, MARK] = tick + n
                    s.sheet[n, REGION], s.sheet[n, HIT], s.sheet[n, TARGET] = r, 0, r
                    s.sheet[n, FIRST] = first + (i << bits)
            s.sheet[n, HIT] += 1 << bits
        first = end
    return found


@inner(forceinline=True)
def reassign(s, first, last):
    """Assigns the slots of bytes [first, last) to their new regions."""
    tick = s.head[TICK] << 32
    while first < last:
        page = first >> PAGE_BITS
        bits = bits_of(s.level[page])
        end = min(last, (page + 1) << PAGE_BITS)
        at = s.start[page] + ((first & (PAGE - 1)) >> bits)
        for i in range(at, at + ((end - first) >> bits)):
            s.region[i] = s.sheet[s.sizes[s.region[i], MARK] - tick, TARGET]
        first = end


# ---- regions and chains ----


@inner(forceinline=True)
def has_room(s, found):
    """Whether there are enough regions, links and nodes for an access to the regions in the sheet."""
    parts = links = 0
    for n in range(found):
        r = s.sheet[n, REGION]
        links += 1
        if s.sheet[n, HIT] < s.sizes[r, BYTES]:
            parts += 1
            links += _length(s, s.records[r, MORE]) + _length(s, s.records[r, OLDER])
    room = s.head[REGIONS_USED] + parts < len(s.records) and s.head[PASTS_USED] + found <= len(s.pasts)
    return room and s.head[LINKS_USED] + links <= len(s.links)


@inner(forceinline=True)
def _length(s, link):
    count = 0
    while link:
        count, link = count + 1, s.links[link, NEXT]
    return count


@inner(forceinline=True)
def new_region(s, size):
    r = s.head[REGION_FREE]
    if r:
        s.head[REGION_FREE] = s.sizes[r, BYTES]
    else:
        r = s.head[REGIONS_USED]
        s.head[REGIONS_USED] += 1
    s.sizes[r, BYTES], s.sizes[r, MARK] = size, 0
    s.records[r, MORE] = s.records[r, OLDER] = s.records[r, WRITE] = 0
    return r


@inner(forceinline=True)
def free_region(s, r):
    drop_chain(s, r, MORE)
    drop_chain(s, r, OLDER)
    s.sizes[r, BYTES], s.head[REGION_FREE] = s.head[REGION_FREE], r


@inner(forceinline=True)
def new_link(s, entry, following):
    link = s.head[LINK_FREE]
    if link:
        s.head[LINK_FREE] = s.links[link, NEXT]
    else:
        link = s.head[LINKS_USED]
        s.head[LINKS_USED] += 1
    s.links[link, ENTRY], s.links[link, NEXT] = entry, following
    return link


@inner(forceinline=True)
def drop_chain(s, r, column):
    link = s.records[r, column]
    while link:
        following = s.links[link, NEXT]
        s.links[link, NEXT], s.head[LINK_FREE] = s.head[LINK_FREE], link
        link = following
    s.records[r, column] = 0


@inner(forceinline=True)
def part_of(s, n):
    """Splits off a new region for the bytes that line n of the sheet hits; the caller fills its record."""
    r, hit = s.sheet[n, REGION], s.sheet[n, HIT]
    part = new_region(s, hit)
    s.sizes[r, BYTES] -= hit
    s.sheet[n, TARGET] = part
    return part


@inner(forceinline=True)
def clear_reads(s, r):
    for k in range(READ, READ + READERS):
        s.records[r, k] = 0


@inner(forceinline=True)
def copy_record(s, source, target):
    for k in range(READ + READERS):
        s.records[target, k] = s.records[source, k]
    for column in (MORE, OLDER):
        s.records[target, column], last = 0, 0
        link = s.records[source, column]
        while link:
            copy = new_link(s, s.links[link, ENTRY], 0)
            s.links[copy, CLUSTER] = s.links[link, CLUSTER]
            if last:
                s.links[last, NEXT] = copy
            else:
                s.records[target, column] = copy
            last, link = copy, s.links[link, NEXT]
