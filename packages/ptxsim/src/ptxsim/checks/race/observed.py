"""Observation order: a strong read or an atom comes after the strong writes before it (PTX ISA 8.9.2)."""

from __future__ import annotations

from ptxsim.checks.race.shadow_bytes import READ, READERS, TAGS, WRITE
from ptxsim.checks.race.shadow_order import AGENT_SHIFT, NARROW_BIT, OBSERVES, ROW_MASK, STRONG_BIT, covered
from ptxsim.checks.race.shadow_own import TAG_BITS
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.compiled import compiled


@inner(forceinline=True)
def strong_for(a, entry, tag):
    """Whether an access is strong at a scope that includes the actor."""
    return entry & STRONG_BIT and (
        not entry & NARROW_BIT or tag == a.now and entry >> AGENT_SHIFT < a.threads
        and (entry >> AGENT_SHIFT) // a.cta == a.me // a.cta
    )  # fmt: skip


@compiled()
def observed(s, a, r):
    """Whether the actor comes after a strong read of what a region holds, by which it has observed the strong
    writes before (PTX ISA 8.9.2): the thread whose atom returns the last ticket may then reset the counter.
    """
    last, tags = s.records[r, WRITE], s.records[r, TAGS]
    atom = tags & ((1 << TAG_BITS) - 1) == a.now and a.kinds[last & ROW_MASK] & OBSERVES
    if atom and covered(a, last) and strong_for(a, last, a.now):
        return True
    if tags >> TAG_BITS != a.now:
        return False
    for k in range(READ, READ + READERS):
        reader = s.records[r, k]
        if reader and covered(a, reader) and strong_for(a, reader, a.now):
            return True
    return False
