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


def test_narrower_stores_write_all_elements():
    with pytest.raises(ptxsim.PtxError):
        ptxsim.load(f"{HEAD}st.global.v4.b32 [%o], {{%a, _, %a, %a}};\nret;\n}}\n")
