"""Findings about unallocated tensor memory: columns past an allocation, or a new column in each round."""

from __future__ import annotations

import pytest

import ptxsim
from ptxsim.machine.tensor_memory import TensorMemory

TWICE = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k() {
    .reg .b32 %r<3>;
    .shared .align 8 .b8 where[8];
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 512;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where+4], 512;
    ret;
}
"""


@pytest.mark.parametrize(
    ("start", "columns", "said", "advice"),
    [
        (0, 256, "only 128 columns are allocated", "allocate 256 columns or more"),
        (128, 64, "only columns 0 to 127 are allocated", "is the index of a column too large?"),
        (128, 128, "only columns 0 to 127 are allocated", "allocate 256 columns or more"),
        (512, 256, "only columns 0 to 127 are allocated", "is the index of a column too large?"),
        (18432, 4, "tensor memory has columns 0 to 511", "is this the address of the word"),
    ],
)
def test_columns_past_the_end_of_an_allocation(start, columns, said, advice):
    memory = TensorMemory()
    memory.take(0, 128)
    what, hint = memory.shortage(start, columns)
    assert what == said and advice in hint


def test_nothing_is_said_of_an_allocation_where_there_is_none():
    assert TensorMemory().shortage(0, 128) == ("", "")


def test_who_allocates_again_without_freeing_is_told_to_allocate_once():
    result = ptxsim.load(TWICE).launch("k", grid=1, block=32, args=[])
    (found,) = (one for one in result.findings if one.kind == "tmem-alloc")
    assert "warp 0 already holds all 512 columns" in found.message and found.hint.startswith("allocate once")
