"""Atomics on 16 bytes: lanes one after the other, and all 16 bytes or none."""

import numpy as np
import pytest

import ptxsim

HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pm, .param .u64 po) {
.shared .align 16 .b8 own[16];
.reg .b64 %m, %o, %lo, %hi, %one, %at; .reg .b128 %old, %new, %want; .reg .b32 %t, %s; .reg .pred %p, %q;
ld.param.u64 %m, [pm]; ld.param.u64 %o, [po]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 16;
add.u64 %o, %o, %at;
cvt.u64.u32 %one, %t;
"""
TAIL = "mov.b128 {%lo, %hi}, %old; st.global.v2.b64 [%o], {%lo, %hi}; ret; }"
COUNT = """mov.b64 %lo, 5; mov.b64 %hi, 9; mov.b128 %want, {%lo, %hi};
AGAIN: mov.b128 {%lo, %hi}, %want; add.u64 %lo, %lo, 1; add.u64 %hi, %hi, 2; mov.b128 %new, {%lo, %hi};
atom.relaxed.gpu.global.cas.b128 %old, [%m], %want, %new; mov.b128 {%lo, %hi}, %old;
{ .reg .b64 %a, %b; mov.b128 {%a, %b}, %want; setp.eq.u64 %p, %a, %lo; setp.eq.and.u64 %p, %b, %hi, %p; }
mov.b128 %want, %old; @!%p bra AGAIN;"""


def launch(body: str, start=(5, 9), block: int = 64):
    memory, out = np.array(start, np.uint64), np.zeros((block, 2), np.uint64)
    result = ptxsim.load(HEAD + body + TAIL).launch("k", grid=1, block=block, args=[memory, out])
    return memory.tolist(), out, result


def test_every_thread_swaps_once():
    memory, out, result = launch(COUNT)
    assert memory == [5 + 64, 9 + 128] and sorted(out.tolist()) == [[5 + i, 9 + 2 * i] for i in range(64)]
    assert result.verdict == "clean", result.findings


@pytest.mark.parametrize("differs", [(6, 9), (5, 8), (9, 5)])
def test_nothing_is_stored_where_a_half_differs(differs):
    swap = (
        COUNT.partition("AGAIN:")[0] + "mov.b128 %new, {%one, %one}; atom.cas.b128 %old, [%m], %want, %new;"
    )
    memory, out, _ = launch(swap, differs)
    assert tuple(memory) == differs and (out == differs).all()


@pytest.mark.parametrize("space", [".global", ""])
def test_each_gets_what_the_one_before_it_left(space):
    memory, out, _ = launch(
        f"mov.b128 %new, {{%one, %one}}; atom{space}.exch.b128 %old, [%m], %new;", block=32
    )
    assert memory == [31, 31] and out.tolist() == [[5, 9], *([i, i] for i in range(31))]


def test_shared_memory_and_a_misaligned_address():
    text = "mov.b128 %new, {%one, %one}; setp.eq.u32 %p, %t, 0; mov.b128 %old, %new;"
    text += "@%p st.shared.b128 [own], %new; bar.sync 0; atom.shared.exch.b128 %old, [own], %new;"
    assert launch(text, block=32)[1][1:].tolist() == [[i, i] for i in range(31)]
    found = launch("mov.b128 %new, {%one, %one}; atom.global.exch.b128 %old, [%m+8], %new;")[2].findings
    assert [f.kind for f in found][:1] == ["misaligned"]
