"""Accesses to a `__device__` variable are checked like accesses to an array."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 counter;
.global .align 4 .u32 table[64];
.const .align 4 .u32 factor = 3;
.visible .entry k(.param .u64 pout) {
.reg .b64 %out, %wide, %at; .reg .b32 %t, %x, %y; .reg .pred %p;
ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mul.wide.u32 %wide, %t, 4; setp.ne.u32 %p, %t, 0;
"""
LINES = ".loc 1 7 0\n"
COUNTS = f"{LINES} ld.global.u32 %x, [counter]; add.u32 %x, %x, 1; st.global.u32 [counter], %x;"
ALONE = "@!%p ld.global.u32 %x, [counter]; add.u32 %x, %x, 1; @!%p st.global.u32 [counter], %x;"
PHASE = (
    ".shared .align 4 .u32 phase; ld.shared.u32 %x, [phase]; xor.b32 %x, %x, 1; st.shared.u32 [phase], %x;"
)
MINE = "mov.u64 %at, table; add.u64 %at, %at, %wide; ld.global.u32 %x, [%at]; st.global.u32 [%at], %x;"
CONSTANT = "ld.const.u32 %x, [factor];"


def findings(body: str, grid: int = 1) -> list[ptxsim.Finding]:
    text = f'{HEAD}{body} ret; }}\n.file 1 "counts.cu"\n'
    return ptxsim.load(text).launch("k", grid=grid, block=64, args=[np.zeros(64, np.uint32)]).findings


@pytest.mark.parametrize("body", [
    "red.global.add.u32 [counter], 1;", "atom.global.add.u32 %x, [counter], 1;", ALONE, MINE, CONSTANT,
])  # fmt: skip
def test_atomics_one_thread_and_own_elements_are_clean(body):
    assert findings(body) == []


@pytest.mark.parametrize("grid", [1, 2])
def test_a_counter_that_all_threads_raise_is_a_race(grid):
    found = findings(COUNTS, grid)
    assert {(f.kind, f.severity, f.evidence["cause"]) for f in found} == {("race", "error", "one-word")}
    assert all("counter + 0 B" in f.message and "atomic" in f.hint for f in found)


@pytest.mark.parametrize("body", [ALONE, MINE])
@pytest.mark.parametrize("grid", [2, 9])
def test_ctas_that_change_one_variable_are_a_race(body, grid):
    found = findings(body, grid)
    assert "error" in {f.severity for f in found} and all("blockIdx" in f.hint for f in found if body == MINE)
    assert not any("tile" in f.hint or "__syncthreads" in f.hint for f in found)


def test_a_phase_of_all_threads_belongs_in_a_register_of_each():
    told = findings(LINES + PHASE)[0]
    assert (told.kind, told.evidence["cause"]) == ("race", "shared-word")
    assert "both store this variable" in told.message and "register of its own" in told.hint
