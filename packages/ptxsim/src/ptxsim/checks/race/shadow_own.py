"""The fast path of a look-up: a thread returns to bytes that are its own, as most local sums do."""

from __future__ import annotations

from ptxsim.checks.race.shadow_bytes import (
    BYTES,
    MORE,
    OLDER,
    PAGE,
    PAGE_BITS,
    PAST,
    READ,
    TAGS,
    WRITE,
    bits_of,
)
from ptxsim.checks.race.shadow_order import AGENT_SHIFT, EPOCH_MASK, EPOCH_SHIFT, NARROW_BIT, STRONG_BIT
from ptxsim.isa.mathlib.inner import inner

TAG_BITS = 21  # bits of a cluster's tag in the tags of a record
TAG_MASK = (1 << TAG_BITS) - 1


@inner(forceinline=True)
def touch_own(s, now, me, epoch, entry, first, size, write):
    """Does what `_touch` of shadow_access.py does for a plain access to a region that only its agent has
    touched in this cluster, with plain accesses, since it wrote there. False: not such an access, and
    nothing has changed.
    """
    page = first >> PAGE_BITS
    bits, start = bits_of(s.level[page]), s.start[page]
    if start < 0 or size >> bits == 0 or (first | size) & (size - 1):
        return False
    at = start + ((first & (PAGE - 1)) >> bits)
    r = s.region[at]
    for i in range(1, size >> bits):
        if s.region[at + i] != r:
            return False
    previous, reader = s.records[r, WRITE], s.records[r, READ]
    others = s.records[r, OLDER] | s.records[r, MORE] | s.records[r, PAST] | s.records[r, READ + 1]
    if s.sizes[r, BYTES] != size or s.records[r, TAGS] != now | (now << TAG_BITS) or others:
        return False
    for one in (previous, reader):
        later = one >> AGENT_SHIFT != me or (one >> EPOCH_SHIFT) & EPOCH_MASK > epoch
        if one and (later or one & (STRONG_BIT | NARROW_BIT)):
            return False
    if write:
        s.records[r, WRITE], s.records[r, READ] = entry, 0
    else:
        s.records[r, READ] = entry
    return True
