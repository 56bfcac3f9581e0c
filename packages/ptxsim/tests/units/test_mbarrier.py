"""mbarrier in all its forms: tokens and parity, counts, drop, noComplete, transactions, remote arrivals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_samples import HEAD
from warp_kernels import register_kernel, run_registers

import ptxsim
from ptxsim.jit import bytecode
from ptxsim.machine.mbarrier import MAX_COUNT, MBarrier, MBarrierError

ORDERS = ["program", "adverse", 3, 11]
WAIT = "{{ .reg .pred %w; AGAIN: mbarrier.{form} %w, [%sm{at}], {what}; @!%w bra AGAIN; }}"
INIT = "setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [%sm], {count}; bar.sync 0;"


def wait(what, form: str = "try_wait.parity.shared::cta.b64", at: int = 0) -> str:
    return WAIT.format(form=form, what=what, at=f"+{at}")


def run(
    text: str, threads: int, outputs: int = 1, order="program", expect="clean", width: int = 32
) -> np.ndarray:
    x = np.arange(threads, dtype=f"u{width // 8}")[None]
    return run_registers(register_kernel(text, 1, outputs, width, 4096), x, outputs, order, expect)


def findings(text: str, threads: int = 32) -> list[tuple[str, str]]:
    x = np.zeros((1, threads), np.uint32)
    result = ptxsim.load(register_kernel(text, 1, 1, shared=64)).launch(
        "k", block=threads, args=[x, x.copy()]
    )
    return [(f.kind, f.severity) for f in result.findings]


# ---- phases ----


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("threads", [32, 128])
def test_parity_over_five_phases(order, threads):
    """Every thread writes its cell, arrives, waits, reads its neighbour's; two barriers alternate."""
    rounds = ""
    for i in range(5):
        rounds += f"""
        add.u32 %x1, %r0, {1000 * i}; st.shared.u32 [%x0+{64 + 2048 * (i % 2)}], %x1;
        mbarrier.arrive.shared::cta.b64 _, [%sm+8]; {wait(i & 1, at=8)}
        ld.shared.u32 %x2, [%x3+{64 + 2048 * (i % 2)}]; add.u32 %o0, %o0, %x2;"""
    text = f"""setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [%sm+8], {threads};
    bar.sync 0; mov.u32 %o0, 0; shl.b32 %x0, %t, 2; add.u32 %x0, %x0, %sm;
    xor.b32 %x3, %t, 17; shl.b32 %x3, %x3, 2; add.u32 %x3, %x3, %sm;
    {rounds}"""
    assert np.array_equal(run(text, threads, order=order)[0], 5 * (np.arange(threads) ^ 17) + 10_000)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "form", ["try_wait.shared::cta.b64", "test_wait.shared.b64", "try_wait.acquire.cta.b64"]
)
def test_tokens(form, order):
    """A thread waits for the phase in which it arrived, also after the barrier has advanced one phase."""
    generic = "acquire" in form
    address = "cvta.shared.u64 %y2, %y1;" if generic else ""
    body = wait("%y0", form) if not generic else wait("%y0", form).replace("[%sm+0]", "[%y2]")
    text = f"""{INIT.format(count=64)} cvt.u64.u32 %y1, %sm; {address}
    mbarrier.arrive.shared::cta.b64 %y0, [%sm]; {body} add.u32 %o0, %r0, 3;"""
    assert np.array_equal(run(text, 64, order=order)[0], np.arange(64) + 3)


def test_token_of_the_phase_before():
    text = f"""{INIT.format(count=1)} mov.u32 %o0, 0; setp.ne.u32 %p, %t, 0; @%p bra OUT;
    mbarrier.arrive.shared.b64 %y0, [%sm]; mbarrier.test_wait.shared.b64 %q, [%sm], %y0;
    selp.u32 %o0, 1, 0, %q; mbarrier.test_wait.parity.shared.b64 %q, [%sm], 1; selp.u32 %o1, 1, 0, %q;
    mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; selp.u32 %o2, 1, 0, %q;
    mbarrier.arrive.shared.b64 %y1, [%sm];
    mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; selp.u32 %o3, 1, 0, %q;
    OUT: bar.sync 0;"""
    assert run(text, 32, 4, expect=None)[:, 0].tolist() == [1, 0, 1, 0]


def test_fresh_barrier_has_passed_parity_one():
    """The phase before the first counts as complete: a producer's first wait goes through."""
    text = f"""{INIT.format(count=5)}
    mbarrier.test_wait.parity.shared.b64 %q, [%sm], 1; selp.u32 %o0, 1, 0, %q;
    mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; selp.u32 %o1, 1, 0, %q;"""
    out = run(text, 32, 2, expect=None)
    assert (out[0] == 1).all() and not out[1].any()


@pytest.mark.parametrize("form", ["try_wait.parity.shared.b64", "test_wait.parity.shared.b64"])
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("parity", [0, 1, 2, 3, 0xFFFF_FFFF])
def test_a_parity_is_0_or_1(parity, checks, form):
    """Other values act by their lowest bit, in both tiers, and are reported (9.7.13.15.16)."""
    arrive = "" if parity & 1 else "@%p mbarrier.arrive.shared.b64 _, [%sm];"
    text = f"{INIT.format(count=1)} {arrive} mov.u32 %x0, {parity}; {wait('%x0', form)} mov.u32 %o0, 7;"
    x = np.zeros((1, 32), np.uint32)
    out = np.zeros_like(x)
    module = ptxsim.load(register_kernel(text, 1, 1, shared=64))
    told = module.launch("k", block=32, args=[x, out], checks=checks).findings
    assert (out == 7).all()
    expected = (
        [] if parity < 2 else [f"waits with parity {parity}: only 0 and 1 exist (taken as {parity & 1})"]
    )
    assert [f.message for f in told if f.severity == "review"] == expected


@pytest.mark.parametrize("order", ORDERS)
def test_counts_and_pending_count(order):
    text = f"""{INIT.format(count=90)} setp.ne.u32 %p, %t, 5; @%p bra WAIT;
    mbarrier.arrive.noComplete.shared.b64 %y0, [%sm], 7; mbarrier.pending_count.b64 %o0, %y0;
    mbarrier.arrive.shared.b64 %y1, [%sm], 20; mbarrier.pending_count.b64 %o1, %y1;
    mbarrier.arrive_drop.noComplete.shared.b64 %y1, [%sm], 3; mbarrier.pending_count.b64 %o2, %y1;
    mbarrier.arrive_drop.shared.b64 %y1, [%sm], 60; mbarrier.pending_count.b64 %o3, %y1;
    mbarrier.arrive.shared.b64 %y1, [%sm], 27; mbarrier.pending_count.b64 %o4, %y1;
    WAIT: {wait(1)}"""
    out = run(text, 32, 5, order, expect=None)
    assert out[:, 5].tolist() == [90, 83, 63, 60, 27]  # 63 of the 90 are dropped: 27 make the second phase


# ---- transactions ----

MODEL = ["expect", "complete", "arrive", "arrive_expect"]


def barrier_of(count: int) -> MBarrier:
    """A barrier that belongs to no cluster."""
    made = MBarrier.at(np.zeros((1, bytecode.MB_COLUMNS), np.int64), 0)
    made.begin(count)
    return made


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(MODEL), st.integers(0, 300)), max_size=24), st.integers(1, 4))
def test_object_against_a_model(steps, count):
    """Phases complete exactly when nothing is pending and the announced bytes have come, in any order."""
    barrier, pending, tx, phase = barrier_of(count), count, 0, 0
    for what, size in steps:
        if "arrive" in what and not pending:
            with pytest.raises(MBarrierError):
                barrier.arrive()
            continue
        if "expect" in what:
            barrier.expect_tx(size)
            tx += size
        if what == "complete":
            barrier.complete_tx(size)
            tx -= size
        if "arrive" in what:
            barrier.arrive()
            pending -= 1
        turned = barrier.try_complete_phase()
        assert turned == (not pending and not tx)
        if turned:
            pending, phase = count, phase + 1
        assert (barrier.phase, barrier.passed(phase), barrier.passed(phase + 1)) == (phase, False, True)


def test_limits():
    for count in (0, MAX_COUNT + 1):
        with pytest.raises(MBarrierError, match="legal counts"):
            barrier_of(count)
    barrier = barrier_of(1)
    barrier.expect_tx(MAX_COUNT)
    with pytest.raises(MBarrierError, match="tx-count"):
        barrier.expect_tx(1)


TX = [
    (
        "mbarrier.arrive.expect_tx.shared.b64 _, [%sm], 48; mbarrier.complete_tx.shared.b64 [%sm], 48;",
        1,
    ),
    ("mbarrier.expect_tx.relaxed.cta.shared.b64 [%sm], 48; mbarrier.arrive.shared.b64 _, [%sm];", 0),
    ("mbarrier.complete_tx.shared.b64 [%sm], 48; mbarrier.arrive.expect_tx.shared.b64 _, [%sm], 48;", 1),
    ("mbarrier.complete_tx.shared.b64 [%sm], 16; mbarrier.arrive.expect_tx.shared.b64 _, [%sm], 48;", 0),
    ("mbarrier.expect_tx.shared.b64 [%sm], 8; mbarrier.complete_tx.shared.b64 [%sm], 8;", 0),
    ("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %y0, [%sm], 0;", 1),
]


@pytest.mark.parametrize("text, passes", TX)
def test_transactions(text, passes):
    text = f"""{INIT.format(count=1)} @%p bra GO; bra OUT; GO: {text} OUT: bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; selp.u32 %o0, 1, 0, %q;"""
    assert (run(text, 32, expect=None)[0] == passes).all()


# ---- other CTAs ----


@pytest.mark.parametrize("order", ORDERS)
def test_remote_arrivals_and_bytes(order):
    """Every CTA arrives on every CTA's barrier, announces 12 bytes there and delivers them."""
    ptx = f"""{HEAD}.visible .entry k(.param .u64 out) .reqnctapercluster 4, 1, 1
    {{ .reg .b32 %r<6>; .reg .pred %p<3>; .reg .b64 %o<4>; .shared .align 8 .b8 bar[8];
    ld.param.u64 %o0, [out]; mov.u32 %r1, bar; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [%r1], 8; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ge.u32 %p1, %r0, 4; @%p1 bra WAIT;
    mapa.shared::cluster.u32 %r2, %r1, %r0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
    mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%r2], 12;
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r2], 12;
    WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra WAIT;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r3, %ctaid.x; mul.wide.u32 %o1, %r3, 4; add.u64 %o0, %o0, %o1;
    @%p0 st.global.u32 [%o0], 1; ret; }}"""
    out = np.zeros(8, np.uint32)
    result = ptxsim.load(ptx).launch("k", grid=8, block=32, args=[out], order=order)
    assert result.verdict == "clean", result.findings
    assert (out == 1).all()


# ---- misuse ----


@pytest.mark.parametrize("text, kind", [
    ("@%p mbarrier.arrive.shared.b64 _, [%sm+8];", "mbarrier"),
    ("@%p mbarrier.arrive.shared.b64 _, [%sm], 3;", "mbarrier"),
    ("@%p mbarrier.arrive.noComplete.shared.b64 %y0, [%sm], 2;", "mbarrier"),
    ("@%p mbarrier.arrive.shared.b64 _, [%sm]; @%p mbarrier.init.shared.b64 [%sm], 2;", "mbarrier"),
    ("@%p mbarrier.init.shared.b64 [%sm+8], 0;", "mbarrier"),
    ("@%p mbarrier.init.shared.b64 [%sm+12], 1;", "misaligned"),
    ("@%p mbarrier.expect_tx.shared.b64 [%sm], 1048576;", "tx-count"),
    ("@%p mbarrier.arrive.shared.b64 _, [%sm+16777216];", "cluster"),
    ("WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%sm], 0; @!%q bra WAIT;", "deadlock"),
    ("WAIT: mbarrier.test_wait.parity.shared.b64 %q, [%sm], 0; @!%q bra WAIT;", "deadlock"),
])  # fmt: skip
def test_misuse_is_reported(text, kind):
    assert (kind, "error") in findings(INIT.format(count=2) + text)


def test_inval_frees_the_place():
    text = (
        INIT.format(count=2)
        + "@%p mbarrier.inval.shared.b64 [%sm]; @%p mbarrier.init.shared.b64 [%sm], 1; bar.sync 0;"
    )
    assert "mbarrier" not in [kind for kind, _ in findings(text)]


@pytest.mark.parametrize("text", [
    "mbarrier.try_wait.parity.shared::cluster.b64 %q, [%sm], 0;", "mbarrier.arrive.shared.b32 _, [%sm];",
    "mbarrier.init.global.b64 [%sm], 1;", "mbarrier.poke.shared.b64 [%sm];",
])  # fmt: skip
def test_refused(text):
    with pytest.raises(ptxsim.PtxError):
        ptxsim.load(register_kernel(text, 1, 1, shared=64))
