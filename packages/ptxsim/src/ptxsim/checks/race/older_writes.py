"""The strong writes before the last one: with no order among them, a later access need not come after all.

A chain of links per record of the shadow: wide writes come last, the latest of them first.
"""

from __future__ import annotations

from ptxsim.checks.race.shadow_bytes import CLUSTER, ENTRY, LINK_FREE, NEXT, OLDER, TAGS, WRITE, new_link
from ptxsim.checks.race.shadow_order import AGENT_SHIFT, DATA, NARROW_BIT, ROW_MASK, STRONG_BIT, covered
from ptxsim.checks.race.shadow_own import TAG_MASK
from ptxsim.isa.mathlib.inner import inner
from ptxsim.jit.compiled import compiled

MOST_CHECKED = 32  # clusters that run together; with checks, each looks after every step of the others


@inner(forceinline=True)
def _knows(a, entry, tag):
    return tag == a.now and (entry >> AGENT_SHIFT == a.me or covered(a, entry))


@inner(forceinline=True)
def is_wide(a, entry):
    """Whether no strong access of the whole GPU races with this one."""
    return entry & (STRONG_BIT | NARROW_BIT) == STRONG_BIT and not a.kinds[entry & ROW_MASK] & DATA


@compiled()
def keep_older(s, a, r):
    """Called before a strong write replaces the last one. Strong writes are not ordered among themselves,
    so an access after the new one need not come after the earlier ones: they are kept, the latest first, one
    per earlier cluster. Those that are not wide precede the others.
    """
    previous, tag = s.records[r, WRITE], s.records[r, TAGS] & TAG_MASK
    kept = previous and not (previous & STRONG_BIT and _knows(a, previous, tag))
    before, link, newer, ended = 0, s.records[r, OLDER], tag if kept else 0, 0
    while link and ended <= MOST_CHECKED:  # behind so many ever earlier clusters, all have ended
        following, cluster = s.links[link, NEXT], s.links[link, CLUSTER]
        plain = not s.links[link, ENTRY] & STRONG_BIT  # another strong write need not come after it
        again = cluster != a.now and cluster == newer
        if not plain and (again or _knows(a, s.links[link, ENTRY], cluster)):
            _follow(s, r, before, following)
            s.links[link, NEXT], s.head[LINK_FREE] = s.head[LINK_FREE], link
        else:
            ended = ended + 1 if cluster < newer else 0
            before, newer = link, cluster
        link = following
    if kept:
        before, link = 0, s.records[r, OLDER]
        while link and is_wide(a, previous) and not is_wide(a, s.links[link, ENTRY]):
            before, link = link, s.links[link, NEXT]
        first = new_link(s, previous, link)
        s.links[first, CLUSTER] = tag
        _follow(s, r, before, first)


@inner(forceinline=True)
def _follow(s, r, before, link):
    """Makes a link come after the link `before` of a record's earlier writes; 0: makes it the first."""
    if before:
        s.links[before, NEXT] = link
    else:
        s.records[r, OLDER] = link
