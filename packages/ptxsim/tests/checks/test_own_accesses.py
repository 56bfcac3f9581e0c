"""A thread that accesses its own bytes repeatedly: accesses by others are found all the same."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel

import ptxsim

OWN = "st.shared.b32 [%x0], %r0; ld.shared.b32 %o0, [%x0]; "
AGAIN = OWN * 3
AT = """shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0;
xor.b32 %x1, %t, 32; shl.b32 %x1, %x1, 2; add.u32 %x1, %sm, %x1;"""
CASES = {
    "alone": ("", []),
    "another reads": ("ld.shared.b32 %o0, [%x1];", ["race"]),
    "another writes": ("st.shared.b32 [%x1], %r0;", ["race"]),
    "another reads a byte": ("ld.shared.u8 %x2, [%x1+3];", ["race"]),
    "another reads behind a barrier": ("bar.sync 0; ld.shared.b32 %o0, [%x1];", []),
    "another writes behind a barrier": ("bar.sync 0; st.shared.b32 [%x1], %r0;", []),
    "and it comes again": ("bar.sync 0; ld.shared.b32 %o0, [%x1]; " + OWN, ["race"]),
    "and it comes again later": ("bar.sync 0; ld.shared.b32 %o0, [%x1]; bar.sync 0; " + AGAIN, []),
    "a strong one of its own": ("st.relaxed.cta.shared.b32 [%x0], %r0; " + OWN + "ld.shared.b32 %o0, [%x1];",
                                ["race"]),
    "half of its own": ("st.shared.u8 [%x0+2], %r0; " + OWN + "ld.shared.u16 %x3, [%x1];", ["race"]),
    "its copy": ("bar.sync 0; cp.async.ca.shared.global [%x0], [%in], 4; " + OWN, ["race"]),
}  # fmt: skip


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", CASES)
def test_own_accesses(name, order):
    text, kinds = CASES[name]
    text = "sub.u64 %in, %in, %step; " + AT + AGAIN + text
    ptx = register_kernel(text + " mov.u32 %o0, %r0;", 1, 1, shared=512)
    args = [np.arange(64, dtype=np.uint32)[None], np.zeros((1, 64), np.uint32)]
    result = ptxsim.load(ptx).launch("k", block=64, args=args, order=order)
    assert sorted({f.kind for f in result.findings if f.severity == "error"}) == kinds


@pytest.mark.parametrize("grid", [1, 4])
def test_sums_of_one_place_by_several_clusters(grid):
    """Each CTA's thread 0 adds to the same word of global memory; within a cluster each has its own."""
    text = """setp.ne.u32 %p, %t, 0; sub.u64 %out, %out, %wide; @%p bra END;
    ld.global.b32 %x0, [%out]; add.u32 %x0, %x0, %r0; st.global.b32 [%out], %x0;
    ld.global.b32 %x0, [%out]; add.u32 %x0, %x0, %r0; st.global.b32 [%out], %x0; END:"""
    ptx = register_kernel(text, 1, 0)
    args = [np.ones((1, 32), np.uint32), np.zeros(32, np.uint32)]
    result = ptxsim.load(ptx).launch("k", grid=grid, block=32, args=args)
    assert ("race" in {f.kind for f in result.findings}) == (grid > 1)
