"""Grids that are far too long end with a finding; long ones that do work, or
exit at once, run to their end.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim
from ptxsim.grid import useless_grid

# %q: this CTA is past the tile that it should write; each loops for a while, and CTAs up to `last` write
KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 last, .param .u32 turns) {{
.reg .b32 %c, %i, %n, %m; .reg .b64 %a, %o; .reg .pred %p, %q;
ld.param.u64 %a, [out]; ld.param.u32 %m, [last]; ld.param.u32 %n, [turns];
mov.u32 %c, %ctaid.x; mov.u32 %i, 0; setp.gt.u32 %q, %c, %m;
LOOP: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra LOOP;
@%q ret;
mul.wide.u32 %o, %c, 4; add.u64 %a, %a, %o; st.global.u32 [%a], %i;
ret;
}}
""".format()


@pytest.fixture
def short(monkeypatch):
    for name, value in {"IN_A_ROW": 4, "LEFT": 16, "BUSY": 100}.items():
        monkeypatch.setattr(useless_grid, name, value)


def launched(last: int, turns: int, grid: int = 64, held: int = 64):
    out = np.zeros(held, np.uint32)
    args = [out, np.uint32(last), np.uint32(turns)]
    return ptxsim.load(KERNEL).launch("k", grid=grid, block=32, args=args, jobs=1), out


def test_a_grid_that_goes_on_without_an_effect_is_given_up(short):
    result, out = launched(last=5, turns=50)
    assert result.verdict == "incomplete" and result.stats["clusters"] < 20
    (finding,) = [f for f in result.findings if f.kind == "deadlock"]
    assert "4 CTAs in a row changed nothing" in finding.message and "64" in finding.message
    assert (out[:6] == 50).all()


def test_a_grid_that_goes_on_outside_of_the_arrays_is_given_up(short):
    result, _ = launched(last=63, turns=50, held=8)
    assert result.findings[0].kind == "out-of-bounds" and result.stats["clusters"] < 20
    assert any("4 CTAs in a row left the tensors" in f.message for f in result.findings)


@pytest.mark.parametrize(
    "last, turns", [(63, 50), (5, 2), (47, 50)], ids=["all write", "the rest leaves at once", "few are left"]
)
def test_a_long_grid_that_works_runs_to_its_end(short, last, turns):
    result, out = launched(last, turns)
    assert result.verdict == "clean" or {f.kind for f in result.findings} == {"uninitialized"}
    assert result.stats["clusters"] == 64 and (out[: last + 1] == turns).all()
