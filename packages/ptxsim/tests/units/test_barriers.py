"""CTA barriers with counts, arrive and reductions, warps that exit; cluster barriers."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD, compile_ptx
from warp_kernels import register_kernel, run_registers

import ptxsim

ORDERS = ["program", "adverse", 3, 11]


def run(
    text: str, threads: int, outputs: int = 1, order="program", expect="clean", shared: int = 4096
) -> np.ndarray:
    x = np.arange(threads, dtype=np.uint32)[None]
    return run_registers(register_kernel(text, 1, outputs, shared=shared), x, outputs, order, expect)


def findings(text: str, threads: int) -> list[str]:
    x = np.zeros((1, threads), np.uint32)
    result = ptxsim.load(register_kernel(text, 1, 1, shared=64)).launch(
        "k", block=threads, args=[x, x.copy()]
    )
    return [f.kind for f in result.findings]


EXCHANGE = """
shl.b32 %x0, %t, 2; add.u32 %x0, %x0, %sm; st.shared.u32 [%x0], %r0;
{barrier}
sub.u32 %x1, %n, %t; sub.u32 %x1, %x1, 1;
shl.b32 %x1, %x1, 2; add.u32 %x1, %x1, %sm; ld.shared.u32 %o0, [%x1];
"""
ALL = ["bar.sync 0;", "barrier.sync 3;", "barrier.cta.sync.aligned 0;", "bar.cta.sync 15, %n;",
       "barrier.sync %y, %n;",
       "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
       "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
       "bar.red.popc.u32 %x5, 0, %p;", "barrier.cta.red.and.pred %q, 2, %n, !%p;"]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("barrier", ALL)
@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_everybody_meets(barrier, threads, order):
    setup = "mov.u32 %x4, 7;" if "%y" in barrier else ""
    text = setup + EXCHANGE.format(barrier=barrier.replace("%y", "%x4"))
    assert np.array_equal(run(text, threads, order=order)[0], np.arange(threads)[::-1])


@pytest.mark.parametrize(
    "barrier", ["bar.sync 0;", "barrier.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;"]
)
@pytest.mark.parametrize("threads", [1, 33, 70])
def test_partial_last_warp(barrier, threads):
    assert np.array_equal(run(EXCHANGE.format(barrier=barrier), threads)[0], np.arange(threads)[::-1])


@pytest.mark.parametrize("order", ORDERS)
def test_producers_arrive_and_consumers_wait(order):
    """Warps 0-1 fill a slot and only arrive; warps 2-3 wait for it: 128 threads in all, three rounds."""
    text = """
    mov.u32 %x2, 0; mov.u32 %o0, 0; shr.u32 %x0, %t, 6; setp.eq.u32 %p, %x0, 0;
    and.b32 %x1, %t, 63; shl.b32 %x1, %x1, 2; add.u32 %x1, %x1, %sm;
    @!%p bra CONSUME;
    PRODUCE: bar.sync 2, 128; mad.lo.u32 %x3, %x2, 1000, %t; st.shared.u32 [%x1], %x3; bar.arrive 1, 128;
    add.u32 %x2, %x2, 1; setp.lt.u32 %q, %x2, 3; @%q bra PRODUCE; bra OUT;
    CONSUME: bar.arrive 2, 128; bar.sync 1, 128; ld.shared.u32 %x3, [%x1]; add.u32 %o0, %o0, %x3;
    add.u32 %x2, %x2, 1; setp.lt.u32 %q, %x2, 3; @%q bra CONSUME;
    OUT:
    """
    out = run(text, 128, order=order)[0]
    assert not out[:64].any() and out[64:].tolist() == [3000 + 3 * t for t in range(64)]


@pytest.mark.parametrize("order", ORDERS)
def test_halves_use_barriers_of_their_own(order):
    """Two barriers at once, each of 64 threads, with the number in a register."""
    text = """shr.u32 %x2, %t, 6; add.u32 %x2, %x2, 4; xor.b32 %x3, %t, 32;
    shl.b32 %x0, %t, 2; add.u32 %x0, %x0, %sm; st.shared.u32 [%x0], %r0;
    bar.sync %x2, 64; shl.b32 %x3, %x3, 2; add.u32 %x3, %x3, %sm; ld.shared.u32 %o0, [%x3];"""
    assert np.array_equal(run(text, 128, order=order)[0], np.arange(128) ^ 32)


@pytest.mark.parametrize("order", ORDERS)
def test_votes_of_a_barrier(order):
    text = """setp.lt.u32 %p, %r0, 37; setp.lt.u32 %q, %r0, 1000;
    barrier.cta.red.popc.aligned.u32 %o0, 1, %p;
    bar.red.popc.u32 %o1, 1, !%p;
    bar.red.and.pred %p, 2, %q; selp.u32 %o2, 1, 0, %p; setp.ne.u32 %p, %r0, 90;
    bar.red.and.pred %q, 3, %n, %p; selp.u32 %o3, 1, 0, %q;
    bar.red.or.pred %q, 1, !%p; selp.u32 %o4, 1, 0, %q; setp.eq.u32 %p, %r0, 400;
    bar.red.or.pred %q, 1, %p; selp.u32 %o5, 1, 0, %q;"""
    out = run(text, 96, 6, order)
    assert (out.T == [37, 59, 1, 0, 1, 0]).all()


@pytest.mark.parametrize("order", ORDERS)
def test_warps_that_exited_do_not_count(order):
    """Warp 1 exits before, warp 2 after it has arrived elsewhere; the others still synchronise."""
    text = """
    shr.u32 %x0, %t, 5; setp.eq.u32 %p, %x0, 1; @%p exit;
    bar.sync 0; setp.eq.u32 %p, %x0, 2; @%p exit;
    bar.sync 0; vote.sync.ballot.b32 %o0, %q, 0xffffffff; bar.red.popc.u32 %o0, 0, !%q;
    """
    out = run(text, 128, order=order)[0].reshape(4, 32)
    assert (out[[0, 3]] == 64).all() and not out[[1, 2]].any()


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.sync 0;"])
def test_lanes_that_exited_do_not_count(barrier):
    """16 lanes of each of two warps have exited: that does not make one whole warp."""
    text = f"and.b32 %x0, %t, 31; setp.ge.u32 %p, %x0, 16; @%p exit; {EXCHANGE.format(barrier=barrier)}"
    out = run(text.replace("sub.u32 %x1, %n, %t; sub.u32 %x1, %x1, 1;", "xor.b32 %x1, %t, 47;"), 64)[0]
    lanes = np.arange(64)
    assert np.array_equal(out, np.where(lanes % 32 < 16, lanes ^ 47, 0))


def test_lanes_arrive_one_by_one_where_alignment_is_not_asked():
    """barrier.sync without .aligned: the two sides of a branch make one warp's arrival."""
    text = """setp.lt.u32 %p, %t, 20; mov.u32 %x1, 0; shl.b32 %x0, %t, 2; add.u32 %x0, %x0, %sm;
    st.shared.u32 [%x0], %r0;
    @%p bra LOW; barrier.sync 0; ld.shared.u32 %o0, [%sm+4]; bra OUT;
    LOW: barrier.sync 0; ld.shared.u32 %o0, [%sm+160];
    OUT: add.u32 %o0, %o0, 1;"""
    assert np.array_equal(run(text, 64)[0], np.where(np.arange(64) < 20, 41, 2))


# ---- clusters ----

CLUSTER = r"""
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int* out, int leave) {
  __shared__ int seen[8];
  int rank, t = threadIdx.x;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  unsigned mine = (unsigned)__cvta_generic_to_shared(seen), peer;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(mine), "r"(0));
  for (int round = 0; round < 6; round++) {
    if (t == 0 && round % 4 == rank) {
      int value = 100 * round + rank;
      asm volatile("st.shared::cluster.b32 [%0], %1;" :: "r"(peer + 4 * round), "r"(value) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    if (leave && rank == 3 && round == 4) return;
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  }
  if (t < 6 && rank == 0) out[blockIdx.x / 4 * 6 + t] = seen[t];
}"""


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("leave", [0, 1])
def test_cluster_barrier(order, leave):
    """With `leave`, CTA 3 exits between its arrive and the wait: it must not be counted twice."""
    out = np.zeros((2, 6), np.int32)
    module = ptxsim.load(compile_ptx(CLUSTER, "sm_90a"))
    result = module.launch("k", grid=8, block=64, args=[out, leave], order=order)
    assert result.verdict == "clean", result.findings
    assert (out == [0, 101, 202, 303, 400, 501]).all()


def test_one_early_cta_does_not_stand_for_another():
    """CTA 0 arrives and exits; this must not let CTA 1 through, which has not arrived yet."""
    ptx = f"""{HEAD}.visible .entry k(.param .u64 out) .reqnctapercluster 3, 1, 1
    {{ .reg .b32 %r<6>; .reg .pred %p<3>; .reg .b64 %o; .shared .align 4 .b8 word[4];
    ld.param.u64 %o, [out]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, word; mov.u32 %r4, 0;
    setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 2;
    barrier.cluster.arrive.aligned; @%p0 exit; barrier.cluster.wait.aligned;
    @%p1 bra READ;
    SPIN: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 100000; @%p2 bra SPIN;
    mapa.shared::cluster.u32 %r2, %r1, 2; st.shared::cluster.u32 [%r2], 55;
    READ: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    @!%p1 exit; ld.shared.u32 %r3, [%r1]; st.global.u32 [%o], %r3; exit; }}"""
    out = np.zeros(1, np.uint32)
    result = ptxsim.load(ptx).launch("k", grid=3, block=32, args=[out])
    assert out[0] == 55 and not [f for f in result.findings if f.kind == "cluster"]


def test_lanes_on_their_way_out_are_waited_for():
    """`if (t >= 48) return; __syncthreads();`: the barrier counts the remaining threads, in any order."""
    source = """k(const int* x, int* out) {
      __shared__ int s[64];
      int t = threadIdx.x;
      if (t >= 48) return;
      s[t] = x[t];
      __syncthreads();
      out[t] = s[47 - t];
    }"""
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    module = ptxsim.load(compile_ptx(f'extern "C" __global__ void {source}', "sm_90a"))
    for order in ORDERS:
        result = module.launch("k", block=64, args=[x, out], order=order)
        assert result.verdict == "clean", result.findings
        assert out.tolist() == [*range(47, -1, -1), *[0] * 16]


# ---- misuse ----


@pytest.mark.parametrize("text, kind", [
    ("setp.lt.u32 %p, %t, 32; @%p bar.sync 1, 64;", "deadlock"),
    ("bar.sync 16;", "illegal"),
    ("bar.sync 1, 40;", "illegal"),
    ("and.b32 %x0, %t, 1; setp.eq.u32 %p, %x0, 0; @%p bar.sync 0;", "collective"),
    ("barrier.cluster.wait;", "cluster"),
    ("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", "cluster"),
])  # fmt: skip
def test_misuse_is_reported(text, kind):
    assert kind in findings(text, 64)
