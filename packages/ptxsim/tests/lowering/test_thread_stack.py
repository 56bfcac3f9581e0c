"""Memory that a thread allocates while it runs, and frees when a function returns or the program says so."""

from __future__ import annotations

import numpy as np
import pytest

import ptxsim

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.func (.param .b32 sum) take(.param .b32 n) {
.reg .b64 %p, %size; .reg .b32 %n; .reg .pred %q;
ld.param.u32 %n, [n]; mul.wide.u32 %size, %n, 4; alloca.u64 %p, %size, 16; st.local.u32 [%p], %n;
ld.local.u32 %n, [%p]; st.param.b32 [sum], %n; ret; }
.visible .entry k(.param .u64 po) {
.local .align 8 .b8 own[16];
.reg .b64 %o, %a, %b, %s, %size, %at; .reg .b32 %t, %x, %y, %i; .reg .pred %p, %q;
ld.param.u64 %o, [po]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.u64 %o, %o, %a; mov.u32 %y, 0;
add.u32 %x, %t, 1; mul.wide.u32 %size, %x, 4; setp.lt.u32 %p, %t, 16;
"""
TAIL = "st.global.u32 [%o], %y; ret; }"
FILL = "st.local.u32 [%a], 3; st.local.u32 [%b], %t; ld.local.u32 %y, [%a]; ld.local.u32 %x, [%b];"
CALL = "{.param .b32 n; .param .b32 r; st.param.b32 [n], %x; call (r), take, (n); ld.param.b32 %x, [r]; }"


def launch(body: str):
    out = np.zeros(32, np.uint32)
    result = ptxsim.load(HEAD + body + TAIL).launch("k", grid=1, block=32, args=[out])
    return out.tolist(), result


def test_two_pieces_are_apart_and_each_thread_has_its_own():
    out, result = launch("alloca.u64 %a, %size, 16; alloca.u64 %b, %size;" + FILL + "add.u32 %y, %y, %x;")
    assert out == [3 + t for t in range(32)] and result.verdict == "clean", result.findings


@pytest.mark.parametrize("align", [8, 16, 256])
def test_an_address_is_aligned_as_asked(align):
    text = (
        f"alloca.u64 %a, 4; alloca.u64 %b, %size, {align}; and.b64 %s, %b, {align - 1}; cvt.u32.u64 %y, %s;"
    )
    assert launch(text)[0] == [0] * 32


def test_what_is_given_back_is_taken_again():
    text = (
        "stacksave.u64 %s; alloca.u64 %a, %size; stackrestore.u64 %s; alloca.u64 %b, 8; sub.u64 %a, %b, %a;"
    )
    assert launch(text + "cvt.u32.u64 %y, %a;")[0] == [0] * 32


def test_a_guarded_one_moves_the_stack_of_those_that_run_it():
    text = (
        "alloca.u64 %a, 16; @%p alloca.u64 %a, 32; alloca.u64 %b, 16; sub.u64 %a, %b, %a; cvt.u32.u64 %y, %a;"
    )
    assert launch(text)[0] == [32] * 16 + [16] * 16


def test_a_function_gives_back_what_it_took():
    loop = "mov.u32 %i, 0; AGAIN: mov.u32 %x, 100;" + CALL
    loop += "add.u32 %y, %y, %x; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 200; @%q bra AGAIN;"
    out, result = launch(loop)
    assert out == [200 * 100] * 32 and result.verdict == "clean", result.findings


def test_more_than_there_is_goes_past_the_end():
    text = "mov.u64 %size, 1000000; alloca.u64 %a, %size; add.u64 %a, %a, 999996; st.local.u32 [%a], 1;"
    assert "error" in {f.severity for f in launch(text)[1].findings}
