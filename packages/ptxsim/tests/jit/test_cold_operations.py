"""A scalar operation outside the main loop is compiled on first use; then the main loop calls it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.machine.cluster import Cluster

TURNS = 50
KERNEL = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b32 %i, %t, %n; .reg .b64 %p, %o; .reg .f64 %x, %y; .reg .pred %more, %odd;
    ld.param.u64 %p, [p];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 8;
    add.u64 %p, %p, %o;
    cvt.rn.f64.u32 %x, %t;
    and.b32 %n, %t, 1;
    setp.ne.u32 %odd, %n, 0;
    mov.f64 %y, 0d3FF8000000000000;
    mov.u32 %i, 0;
AGAIN:
    fma.rn.f64 %x, %x, 0d3FE0000000000000, %y;
    @%odd add.rn.f64 %x, %x, %y;
    add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, {TURNS};
    @%more bra AGAIN;
    st.global.f64 [%p], %x;
    ret;
}}
"""


@pytest.mark.parametrize("checks", [True, False])
def test_python_is_asked_once_for_each(checks, monkeypatch):
    asked, cold = [], Cluster._cold
    monkeypatch.setattr(Cluster, "_cold", lambda self, g: [asked.append(g), cold(self, g)][1])
    module, out = ptxsim.load(KERNEL), np.zeros(96)
    counts = [module.launch("k", grid=1, block=96, args=[out], checks=checks).stats for _ in range(2)]
    x = np.arange(96.0)
    for _ in range(TURNS):
        x = x * 0.5 + 1.5 + np.where(np.arange(96) % 2, 1.5, 0.0)
    assert (out == x).all() and 0 < len(asked) <= 3
    assert {c["warp_instructions"] for c in counts} == {
        3 * (9 + 5 * TURNS + 2 + 1)
    }  # and a row where lanes reconverge
