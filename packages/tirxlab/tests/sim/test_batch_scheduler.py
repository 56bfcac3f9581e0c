"""Without observers the main loop gives the same results as Python under the checks."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import ptxsim
from instructor.solutions import gemm_kernels
from tirxlab.devices import sim
from tirxlab.toolchain.build import build
from utils import prepare_data

HEAD = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
.maxntid {threads}, 1, 1
{{
.reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<8>;
.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b8 bar[16];
ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
mul.wide.u32 %rd8, %r1, 4; add.s64 %rd9, %rd2, %rd8;
mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.s32 %r4, %r2, %r3; mov.u32 %r5, bar;
"""


def run(body: str, *, threads: int = 32, source=None, checks: bool = False, order="program"):
    """Output words (4 per thread) and the result of a kernel."""
    source = np.arange(4 * threads, dtype=np.uint32) if source is None else source
    out = np.zeros(4 * threads, np.uint32)
    kernel = ptxsim.load(HEAD.format(threads=threads) + body + "ret;\n}\n")
    result = kernel.launch("k", grid=1, block=threads, args=[source, out], checks=checks, order=order)
    return out, result


def agrees(body: str, **options) -> np.ndarray:
    """Output in program order of a kernel that gives the same in each order, with and without checks."""
    outputs = {}
    for order in ("program", "adverse", 3):
        watched, result = run(body, order=order, checks=True, **options)
        assert result.verdict in ("clean", "review"), result.findings
        outputs[order], other = run(body, order=order, **options)
        assert np.array_equal(outputs[order], watched) and not other.findings
        assert other.stats["warp_instructions"] == result.stats["warp_instructions"]
    return outputs["program"]


# ---- loads that only the next instruction stores ----

COPY = "ld.global.{form} {{{v}}}, [%rd4];\nst.shared.{form} [%r4], {{{v}}};\nbar.sync 0;\n"
BACK = (
    "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r4];\nst.global.v4.u32 [%rd5], {%r20, %r21, %r22, %r23};\n"
)


@pytest.mark.parametrize(
    "form, v",
    [("v4.u32", "%r10, %r11, %r12, %r13"), ("v2.u64", "%rd10, %rd11"), ("v2.u32", "%r10, %r11")],
)
def test_moves(form, v):
    wanted = np.arange(128, dtype=np.uint32).reshape(32, 4)
    out = agrees(COPY.format(form=form, v=v) + BACK).reshape(32, 4)
    words = 2 if form == "v2.u32" else 4
    assert np.array_equal(out[:, :words], wanted[:, :words])


def test_moved_value_that_is_read_again():
    """The third instruction reads a register of the load: it must hold the value."""
    body = COPY.format(form="v4.u32", v="%r10, %r11, %r12, %r13")
    out = agrees(body + "add.s32 %r11, %r11, 1000;\nst.global.u32 [%rd9], %r11;\n")
    assert np.array_equal(out[:32], np.arange(32) * 4 + 1001)


def test_moved_value_that_a_loop_reads():
    """A register that stays live around a loop is read above its load."""
    body = """mov.b32 %r10, 7; mov.b32 %r30, 0; mov.b32 %r31, 0;
L: add.s32 %r31, %r31, %r10;
ld.global.u32 %r10, [%rd4]; st.shared.u32 [%r4], %r10;
add.s32 %r30, %r30, 1; setp.ne.s32 %p1, %r30, 3; @%p1 bra L;
st.global.u32 [%rd9], %r31;
"""
    assert np.array_equal(agrees(body)[:32], 7 + 8 * np.arange(32))


def test_move_of_some_lanes():
    copy = COPY.format(form="v4.u32", v="%r10, %r11, %r12, %r13").replace("bar.sync 0;\n", "")
    out = agrees("setp.lt.u32 %p1, %r1, 5;\n@!%p1 bra END;\n" + copy + BACK + "END:\n")
    assert np.array_equal(out[:20], np.arange(20)) and not out[20:].any()


def test_move_out_of_bounds_is_reported():
    body = "add.s64 %rd4, %rd4, 16;\n" + COPY.format(form="v4.u32", v="%r10, %r11, %r12, %r13")
    _, result = run(body)
    assert [f.kind for f in result.findings] == ["out-of-bounds"]
    assert "ld.global.v4" in result.findings[0].where["ptx"]


# ---- barriers, elections, waits ----


@pytest.mark.parametrize("sync", ["bar.sync 0;", "barrier.cta.sync.aligned 3;", "barrier.sync 2;"])
def test_barrier_of_the_cta(sync):
    """Every warp reads what the next one wrote, round after round."""
    body = f"""mov.b32 %r30, 0; mov.b32 %r10, %r1;
add.s32 %r31, %r1, 32; and.b32 %r31, %r31, 127; shl.b32 %r31, %r31, 4; add.s32 %r31, %r31, %r2;
L: st.shared.u32 [%r4], %r10;
{sync}
ld.shared.u32 %r10, [%r31];
{sync}
add.s32 %r30, %r30, 1; setp.ne.s32 %p1, %r30, 5; @%p1 bra L;
st.global.u32 [%rd9], %r10;
"""
    out = agrees(body, threads=128)
    assert np.array_equal(out[:128], (np.arange(128) + 5 * 32) % 128)


def test_warps_at_two_barriers_wait_for_ever():
    body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1;\nbra B;\nA: bar.sync 2;\nB:\n"
    _, result = run(body, threads=64)
    assert [f.kind for f in result.findings] == ["deadlock"]


def test_barrier_counts_only_living_warps():
    body = "setp.ge.u32 %p1, %r1, 64;\n@%p1 exit;\nbar.sync 0;\nst.global.u32 [%rd9], %r1;\n"
    out = agrees(body, threads=96)
    assert np.array_equal(out[:64], np.arange(64)) and not out[64:].any()


def test_arrivals_count_for_a_barrier_that_others_sync_at():
    body = """setp.lt.u32 %p1, %r1, 32;
@%p1 bar.arrive 1, 64;
@!%p1 bar.sync 1, 64;
bar.sync 0;
st.global.u32 [%rd9], %r1;
"""
    assert np.array_equal(agrees(body, threads=64)[:64], np.arange(64))


@pytest.mark.parametrize("lanes", [32, 7, 1])
def test_election(lanes):
    mask = (1 << 32) - (1 << (32 - lanes))
    body = f"""setp.lt.u32 %p1, %r1, {32 - lanes};
@%p1 bra END;
elect.sync %r10|%p2, {mask};
selp.b32 %r11, 1, 0, %p2; shl.b32 %r11, %r11, 8; add.s32 %r10, %r10, %r11; add.s32 %r10, %r10, 1000;
st.global.u32 [%rd9], %r10;
END:
"""
    wanted = np.where(np.arange(32) >= 32 - lanes, 1000 + 32 - lanes, 0)
    wanted[32 - lanes] += 256
    assert np.array_equal(agrees(body)[:32], wanted)


def test_wait_for_one_phase_after_the_other():
    """Lane 0 of warp 1 completes three phases; warp 0 sees each of them once."""
    body = """setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [%r5], 1;
@!%p1 mbarrier.init.shared.b64 [%r5+8], 1;
bar.sync 0;
mov.b32 %r30, 0; mov.b32 %r31, 0;
setp.lt.u32 %p2, %r1, 32;
L: and.b32 %r32, %r30, 1;
@%p2 bra W;
setp.ne.u32 %p3, %r1, 32;
@!%p3 st.shared.u32 [%r2], %r30;
@!%p3 mbarrier.arrive.shared.b64 _, [%r5];
V: mbarrier.try_wait.parity.shared.b64 %p4, [%r5+8], %r32;
@!%p4 bra V;
bra N;
W: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], %r32;
@!%p4 bra W;
ld.shared.u32 %r33, [%r2]; add.s32 %r33, %r33, 1; mad.lo.s32 %r31, %r31, 10, %r33;
@!%p1 mbarrier.arrive.shared.b64 _, [%r5+8];
N: add.s32 %r30, %r30, 1; setp.ne.s32 %p5, %r30, 3; @%p5 bra L;
@%p2 st.global.u32 [%rd9], %r31;
"""
    for order in ("program", "adverse", 3):
        out, result = run(body, threads=64, order=order)
        assert not result.findings and (out[:32] == 123).all()


def test_wait_on_a_barrier_that_nobody_initialised_is_reported():
    body = "mov.b32 %r30, 0;\nmbarrier.try_wait.parity.shared.b64 %p4, [%r5], %r30;\n"
    _, result = run(body)
    assert [f.kind for f in result.findings] == ["mbarrier"]


def test_wait_with_a_parity_of_its_own_in_each_lane():
    """Half of the lanes ask for the phase that is complete, half for the one that is not."""
    body = """setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [%r5], 1;
bar.sync 0;
@!%p1 mbarrier.arrive.shared.b64 _, [%r5];
bar.sync 0;
and.b32 %r30, %r1, 1;
mbarrier.test_wait.parity.shared.b64 %p4, [%r5], %r30;
selp.b32 %r31, 1, 0, %p4;
st.global.u32 [%rd9], %r31;
"""
    out = agrees(body)
    assert np.array_equal(out[:32], 1 - np.arange(32) % 2)


def test_reinitialised_barrier_starts_again():
    body = """setp.ne.u32 %p1, %r1, 0;
@%p1 bra END;
mbarrier.init.shared.b64 [%r5], 1;
mbarrier.arrive.shared.b64 _, [%r5];
mbarrier.inval.shared.b64 [%r5];
mbarrier.init.shared.b64 [%r5], 1;
mov.b32 %r30, 0;
mbarrier.test_wait.parity.shared.b64 %p4, [%r5], %r30;
selp.b32 %r31, 5, 3, %p4;
st.global.u32 [%rd9], %r31;
END:
"""
    out, result = run(body)
    assert out[0] == 3 and not result.findings


# ---- instructions that are handed over later ----


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_mma_reads_its_registers_when_it_is_issued(order):
    """Overwriting descriptors and predicate right after each MMA does not change what it computes."""
    kernel = build(gemm_kernels.hgemm_v1(128, 128, 64))
    mma = r"(tcgen05\.mma\S* \[%r\d+\], (%rd\d+), (%rd\d+), (%r\d+),.*?p;)"
    text, found = re.subn(mma, r"\1\nmov.b64 \2, 0;\nmov.b64 \3, 0;\nsetp.eq.u32 p, \4, 0;", kernel.ptx)
    assert found == 4
    a, b, d = prepare_data(128, 128, 64)
    result = sim.run(replace(kernel, ptx=text), [a, b, d], order=order, checks=False)
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    assert not result.findings and np.allclose(d, wanted, atol=0.05)


# ---- warps that poll ----

POLL = """setp.ne.u32 %p1, %r1, 0;
@!%p1 mbarrier.init.shared.b64 [%r5], 1;
@!%p1 mbarrier.init.shared.b64 [%r5+8], 1;
bar.sync 0;
setp.ge.u32 %p2, %r1, 64;
@%p2 bra LAST;
shr.u32 %r30, %r1, 5; shl.b32 %r30, %r30, 3; add.s32 %r30, %r30, %r5;
L: mbarrier.test_wait.parity.shared.b64 %p4, [%r30], 0;
@!%p4 bra L;
bra END;
LAST: mov.b32 %r31, 0;
M: add.s32 %r31, %r31, 1; setp.ne.s32 %p5, %r31, 100000; @%p5 bra M;
setp.ne.u32 %p6, %r1, 64;
END:
"""


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_two_warps_poll_until_a_third_arrives(order):
    arrive = (
        "@!%p6 mbarrier.arrive.shared.b64 _, [%r5];\n@!%p6 mbarrier.arrive.shared.b64 _, [%r5+8];\nEND:\n"
    )
    body = POLL.replace("END:\n", arrive) + "st.global.u32 [%rd9], %r1;\n"
    for checks in (True, False):
        out, result = run(body, threads=96, order=order, checks=checks)
        assert not result.findings and np.array_equal(out[:96], np.arange(96))


@pytest.mark.parametrize("order", ["program", "adverse", 3])
def test_two_warps_that_poll_for_ever_are_stuck(order):
    _, result = run(POLL, threads=96, order=order)
    assert [f.kind for f in result.findings] == ["deadlock"]
