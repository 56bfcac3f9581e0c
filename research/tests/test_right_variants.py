"""The changes in a correct variant of PTX (research/mutation/right.py): order is added, never removed."""

from __future__ import annotations

import random
import re

import pytest

from research.mutation.right import RIGHT, renumbered, variant

LINES = {
    "a fence twice": ("@%p1 fence.proxy.async.shared::cta;", "wgmma.fence.sync.aligned;"),
    "a wait for groups twice": ("cp.async.wait_group 1;", "cp.async.bulk.wait_group.read 0;"),
    "a wait for tensor memory twice": ("tcgen05.wait::ld.sync.aligned;",),
    "a CTA barrier twice": ("bar.sync 0;", "barrier.sync 1, 128;"),
    "a warp barrier before the CTA's": ("bar.sync 1, 128;",),
    "a fence for all of the async proxy": ("fence.proxy.async.shared::cta;",),
    "a wait for all groups": ("cp.async.wait_group 2;", "wgmma.wait_group.sync.aligned 1;"),
    "a wait for writes too": ("cp.async.bulk.wait_group.read 0;",),
    "a fence before an arrival": ("mbarrier.arrive.shared.b64 _, [%r1];",),
    "a thread that sleeps": ("mbarrier.arrive.shared.b64 _, [%r1];", "st.shared.u32 [%r1], 0;"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_each_change_applies_and_keeps_what_stood_there(name):
    for line in LINES[name]:
        assert re.match(RIGHT[name].pattern, line)
        new = RIGHT[name].new(line)
        assert new != line and new.count(";") >= line.count(";")
    assert not re.match(RIGHT[name].pattern, "add.u32 %r1, %r1, 1;")


def test_barriers_keep_their_partners():
    text = "bar.sync 0;\nbar.sync 1, 64;\nbar.arrive 2, 64;\nbar.arrive 1, 64;"
    assert renumbered(text) == "bar.sync 0;\nbar.sync 15, 64;\nbar.arrive 14, 64;\nbar.arrive 15, 64;"
    assert renumbered("bar.sync 0;") is None
    assert renumbered("bar.sync %r1, 64;") is None


def test_the_same_seed_gives_the_same_variants():
    text = "\n".join(line for lines in LINES.values() for line in lines)
    first, second = (variant(text, random.Random(3)) for _ in range(2))
    assert first == second and first[1] != text
