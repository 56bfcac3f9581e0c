"""mapa of 64-bit addresses: of the shared window as in PTX, and of a generic one as on chips."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

TEXT = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<8>; .reg .b64 %d<8>;
    .shared .align 16 .b8 word[16];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u64 %d2, word;
    {generic}
    mapa.shared::cluster.u64 %d3, %d2, %r2;
    add.u32 %r3, %r1, 7;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    st{space}.u32 [%d3], %r3;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ld.shared.u32 %r4, [word];
    mul.wide.u32 %d4, %r1, 4;
    add.s64 %d5, %d1, %d4;
    st.global.u32 [%d5], %r4;
    ret;
}}
"""


@pytest.mark.parametrize(
    "generic, space", [("", ".shared::cluster"), ("cvta.shared.u64 %d2, %d2;", "")], ids=["window", "generic"]
)
def test_the_peers_word(generic, space):
    out = np.zeros(2, np.uint32)
    result = ptxsim.load(TEXT.format(generic=generic, space=space)).launch("k", grid=2, cluster=2, args=[out])
    assert out.tolist() == [8, 7] and result.verdict == "clean"


@pytest.mark.parametrize(
    "generic, space", [("", ".shared::cluster"), ("cvta.shared.u64 %d2, %d2;", "")], ids=["window", "generic"]
)
def test_a_rank_that_the_cluster_has_not_is_named(generic, space):
    text = TEXT.format(generic=generic, space=space).replace("xor.b32 %r2, %r1, 1", "mov.u32 %r2, 4")
    result = ptxsim.load(text).launch("k", grid=2, cluster=2, args=[np.zeros(2, np.uint32)])
    told = result.findings[0]
    assert (told.kind, told.evidence["cause"]) == ("cluster", "no-rank")
    assert (
        "at CTA rank 4 of a cluster of 2: word" in told.message and "not its number in the grid" in told.hint
    )


def test_a_negative_index_is_no_rank():
    """The address wraps round to the last rank, with any cluster."""
    text = TEXT.format(generic="cvt.u32.u64 %r5, %d2; sub.u32 %r5, %r5, 8192;", space=".shared")
    text = text.replace("[%d3]", "[%r5]")
    result = ptxsim.load(text).launch("k", grid=2, cluster=2, args=[np.zeros(2, np.uint32)])
    told = result.findings[0]
    assert (told.kind, told.evidence["cause"]) == ("out-of-bounds", "before-shared")
    assert "8192 B before shared memory" in told.message and "negative" in told.hint
