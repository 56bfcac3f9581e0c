"""Registers that a kernel may read before it has written them, found in its text."""

from __future__ import annotations

import pytest

import ptxsim
from ptxsim.observing import unset_reads

HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k() { .reg .b32 %t, %a, %b, %c; .reg .b64 %d; .reg .pred %p, %q;
"""
FUNCTION = ".func (.reg .b32 r) f (.reg .b32 x) { mov.b32 r, x; ret; }"
TEXTS = {
    "mov.b32 %a, %b;": {"%b"},
    "mov.b32 %b, 1; mov.b32 %a, %b;": set(),
    "@%p mov.b32 %a, 1;": {"%p"},
    "setp.eq.u32 %p, 1, 2; @%p mov.b32 %a, 1; mov.b32 %b, %a;": {"%a"},
    "setp.eq.u32 %p, 1, 2; @%p mov.b32 %a, 1; @%p mov.b32 %b, %a;": set(),
    "setp.eq.u32 %p, 1, 2; @%p mov.b32 %a, 1; @!%p mov.b32 %b, %a;": {"%a"},
    "setp.eq.u32 %p, 1, 2; @%p mov.b32 %a, 1; setp.eq.u32 %p, 1, 1; @%p mov.b32 %b, %a;": {"%a"},
    "mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 2; @%p bra S; mov.b32 %a, 1; S: mov.b32 %b, %a;": {"%a"},
    "mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 2; @%p bra S; mov.b32 %a, 1; mov.b32 %b, %a; S:": set(),
    "ret; mov.b32 %a, %b;": set(),
    "mov.b64 %d, {%a, %a};": {"%a"},
    "mov.b64 %d, 1; mov.b64 {%a, _}, %d; mov.b32 %b, %a;": set(),
    "st.shared.b32 [%a], 1;": {"%a"},
    "setp.eq.u32 %p|%q, 1, 2; @%q mov.b32 %a, 1;": set(),
    "activemask.b32 %t; bar.warp.sync %t;": set(),
    "bar.warp.sync %t;": {"%t"},
    "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%a, %b}, [0]; mov.b32 %c, %b;": set(),
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_some_way_reads_first(text):
    module = ptxsim.load(f"{HEAD}\n{text}\nret;\n}}\n").module
    assert unset_reads(module, "k").keys() == TEXTS[text]


def test_a_function_that_is_called_is_looked_at_too():
    body = "call (%a), f, (%b); mov.b32 %b, %a;"
    module = ptxsim.load(HEAD.replace(".visible", f"{FUNCTION}\n.visible") + f"\n{body}\nret;\n}}\n").module
    (found,) = unset_reads(module, "k").items()
    assert found[0] == "%b" and found[1].text
