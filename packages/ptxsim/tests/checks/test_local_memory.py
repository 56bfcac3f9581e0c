"""Local memory that its thread has not written: it may hold data of another launch."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_broken, check_kept, each, lines

import ptxsim

SHOW = "st.global.u32 [%myout], %r0;"
FRAME = ".local .align 16 .b8 frame[64]; mov.u64 %y1, frame; cvta.local.u64 %y1, %y1;"
SAY = {"kind": "uninitialized", "severity": "review"}
RULES = (
    Rule(
        "variable",
        lines(FRAME, "st.local.u32 [frame+4], %t; // set", "ld.local.u32 %r0, [frame+4];", SHOW),
        ("[frame+4], %t; // set", "[frame+8], %t; // set"),
        words="loads 4 B from its local memory (frame + 4 B), not all of which",
        **SAY,
    ),
    Rule(
        "generic-pointer",
        lines(FRAME, "st.u32 [%y1+8], %t; // set", "ld.u32 %r0, [%y1+8];", SHOW),
        ("st.u32 [%y1+8], %t; // set", ""),
        words="(frame + 8 B)",
        **SAY,
    ),
    Rule(
        "part-of-a-vector",
        lines(
            FRAME,
            "st.local.v2.u32 [frame], {%t, %t};",
            "st.local.v2.u32 [frame+8], {%t, %t}; // set",
            "ld.local.v4.u32 {%r0, %r1, %r2, %r3}, [frame];",
            "st.global.u32 [%myout], %r3;",
        ),
        ("st.local.v2.u32 [frame+8], {%t, %t}; // set", "st.local.u32 [frame+8], %t; // set"),
        words="loads 16 B from its local memory (frame + 0 B)",
        **SAY,
    ),
    Rule(
        "call-frame",
        lines(
            "{ .param .b32 given;", "st.param.b32 [given], %t; // set", "ld.param.b32 %r0, [given]; }", SHOW
        ),
        ("st.param.b32 [given], %t; // set", ""),
        words="(given",
        **SAY,
    ),
    Rule(
        "each-thread-its-own",
        lines(FRAME, "st.local.u32 [frame], %t; // set", "ld.local.u32 %r0, [frame];", SHOW),
        ("st.local", "@%lead st.local"),
        words="(frame + 0 B)",
        **SAY,
    ),
    Rule(
        "each-cta-its-own",
        lines(
            FRAME,
            "mov.u32 %x2, %ctaid.x; setp.lt.u32 %p, %x2, 64; // set",
            "@%p st.local.u32 [frame], %t;",
            "ld.local.u32 %r0, [frame];",
            "mad.lo.u32 %x2, %x2, 256, 0; cvt.u64.u32 %y2, %x2; add.u64 %myout, %myout, %y2;",
            "st.global.u32 [%myout], %r0;",
        ),
        ("%p, %x2, 64", "%p, %x2, 63"),
        words="(frame + 0 B)",
        ctas=64,
        **SAY,
    ),
)  # fmt: skip


@each(RULES)
def test_what_its_thread_has_written_is_clean(rule, order):
    check_kept(rule, order)


@each(RULES)
def test_what_nobody_has_written_is_told(rule, order):
    check_broken(rule, order)


@pytest.mark.parametrize("order", ORDERS)
def test_only_loads_and_stores_reach_it(order):
    """PTX ISA 9.7.13.6: an atomic operation applies to global or shared memory only."""
    rule = Rule(
        "atomic",
        lines(
            FRAME,
            "st.local.u32 [frame], %t;",
            "add.u64 %y1, %myout, 0; // of global memory",
            "atom.add.u32 %r0, [%y1], 1;",
        ),
        ("add.u64 %y1, %myout, 0; // of global memory", ""),
        "illegal",
        words="atomic access at an address in local memory by CTA (0, 0, 0): frame + 0 B",
    )  # fmt: skip
    check_kept(rule, order)
    check_broken(rule, order)


def test_a_trace_has_nothing_of_it():
    text = "\n".join([HEAD, FRAME, "st.local.u32 [frame], 7; ld.local.u32 %r0, [frame]; ret; }"])
    made = ptxsim.load(text).launch("k", block=32, trace=True)
    assert made.verdict == "clean" and not [e for e in made.trace.events if "global" in e.kind]


HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() { .reg .b32 %r0; .reg .b64 %y1;"
