"""Stores of 256 bits that leave out elements (PTX ISA 9.7.9.11)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
HEAD += ".reg .b32 %a; .reg .b64 %o, %b; mov.u32 %a, 7; mov.b64 %b, 9; ld.param.u64 %o, [out];\n"


@pytest.mark.parametrize("store, changed", [
    ("st.global.v8.b32 [%o], {%a, _, %a, _, _, _, _, 5};", {0: 7, 2: 7, 7: 5}),
    ("st.global.L2::evict_last.v4.b64 [%o], {_, %b, _, _};", {2: 9, 3: 0}),
])  # fmt: skip
def test_elements_left_out_stay(store, changed):
    out = np.arange(100, 108, dtype=np.uint32)
    result = ptxsim.load(f"{HEAD}{store}\nret;\n}}\n").launch("k", args=[out], checks=True)
    assert result.verdict == "clean"
    assert out.tolist() == [changed.get(i, 100 + i) for i in range(8)]


@pytest.mark.parametrize("where, right", [("[%o+32]", True), ("[%o+16]", False), ("[%o+-28]", None)])
def test_the_whole_vector_is_aligned(where, right):
    """A guard that is false stores nothing, so that no address is wrong."""
    guard = "add.u64 %o, %o, 32; setp.ne.u32 %p, %a, 7; @%p " if right is None else ""
    text = f"{HEAD}.reg .pred %p; {guard}st.global.v8.b32 {where}, {{_, _, %a, _, _, _, _, 5}};\nret;\n}}\n"
    out = np.zeros(24, np.uint32)
    result = ptxsim.load(text).launch("k", args=[out])
    assert [f.kind for f in result.findings] == ([] if right or right is None else ["misaligned"])
    assert np.flatnonzero(out).tolist() == ([10, 15] if right else [])


def test_narrower_stores_write_all_elements():
    with pytest.raises(ptxsim.PtxError):
        ptxsim.load(f"{HEAD}st.global.v4.b32 [%o], {{%a, _, %a, %a}};\nret;\n}}\n")
