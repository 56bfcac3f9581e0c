"""Lanes of a warp that diverge and reconverge: branches, loops, returns, jump tables, lanes that wait for
lanes.

Most kernels are CUDA, compiled by NVRTC, and are compared with the same function run in Python for each
thread.
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import compile_ptx
from warp_kernels import register_kernel, run_registers

import ptxsim

ORDERS = ["program", "adverse", 7]


def run_cuda(source: str, x: np.ndarray, order="program", outputs: int | None = None) -> np.ndarray:
    """int32 results of kernel `k(const int* x, int* out)`, one CTA with a thread per element of x."""
    out = np.full(outputs or len(x), -1, np.int32)
    module = ptxsim.load(compile_ptx(f'extern "C" __global__ void {source}', "sm_90a"))
    result = module.launch("k", block=len(x), args=[x, out], order=order)
    assert result.verdict in ("clean", "review"), result.findings
    return out


def inputs(threads: int, top: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, threads).astype(np.int32)


NESTED = """k(const int* x, int* out) {
  int t = threadIdx.x, v = x[t], r = 0;
  if (v & 1) {
    r += 1;
    if (v & 2) { r += 10; if (v & 4) r += 100; else r += __popc(v) * 1000; }
    else if (v & 8) r -= 7;
  } else {
    if (v & 16) return;
    r = -v;
  }
  out[t] = r * 3 + __ballot_sync(__activemask(), 1) * 0;
}"""


def nested(v: int) -> int:
    if v & 1:
        r = 1
        if v & 2:
            r += 10 + (100 if v & 4 else bin(v).count("1") * 1000)
        elif v & 8:
            r -= 7
    elif v & 16:
        return -1
    else:
        r = -v
    return r * 3


@pytest.mark.parametrize("threads", [1, 32, 77, 256])
@pytest.mark.parametrize("order", ORDERS)
def test_nested_ifs_and_early_returns(threads, order):
    x = inputs(threads, 32)
    assert run_cuda(NESTED, x, order).tolist() == [nested(int(v)) for v in x]


LOOPS = """k(const int* x, int* out) {
  int t = threadIdx.x, v = x[t], sum = 0;
  #pragma unroll 1
  for (int i = 0; i < v; i++) {
    if (i % 5 == 3) continue;
    #pragma unroll 1
    for (int j = i; j < v; j += 1 + (t & 3)) { sum += i * j; if (sum % 11 == 10) break; }
    if (sum > 4000) break;
    if (sum == 777) { out[t] = -2; return; }
  }
  out[t] = sum;
}"""


def loops(t: int, v: int) -> int:
    total = 0
    for i in range(v):
        if i % 5 == 3:
            continue
        for j in range(i, v, 1 + (t & 3)):
            total += i * j
            if total % 11 == 10:
                break
        if total > 4000:
            break
        if total == 777:
            return -2
    return total


@pytest.mark.parametrize("order", ORDERS)
def test_loops_with_divergent_trip_counts(order):
    x = inputs(96, 40)
    assert run_cuda(LOOPS, x, order).tolist() == [loops(t, int(v)) for t, v in enumerate(x)]


def test_lanes_meet_again_behind_a_loop():
    """A full-mask shuffle after a divergent loop needs no help: all lanes have reconverged."""
    source = """k(const int* x, int* out) {
      int v = x[threadIdx.x], n = 0;
      while (v > 1) { v = v & 1 ? 3 * v + 1 : v / 2; n++; }
      asm volatile("bar.sync 0;");
      out[threadIdx.x] = __shfl_xor_sync(~0u, n, 31);
    }"""
    x = 1 + inputs(64, 60)

    def steps(v):
        n = 0
        while v > 1:
            v, n = (3 * v + 1 if v & 1 else v // 2), n + 1
        return n

    expected = np.array([steps(int(v)) for v in x]).reshape(2, 32)[:, ::-1].reshape(-1)
    assert run_cuda(source, x).tolist() == expected.tolist()


SWITCH = """k(const int* x, int* out) {
  int t = threadIdx.x, v = x[t], r = 5;
  switch (v) {
    case 0: r = t; break;
    case 1: r = t * t;  // falls through
    case 2: r += 3; break;
    case 3: for (int i = 0; i < t; i++) r ^= i * 7; break;
    case 4: r = -r; break;
    case 5: return;
    case 6: r = 66; break;
    case 7: r <<= 2; break;
    case 9: r = 99; break;
  }
  out[t] = r;
}"""


def switch(t: int, v: int) -> int:
    r = 5
    if v == 5:
        return -1
    if v == 3:
        for i in range(t):
            r ^= i * 7
        return r
    return {0: t, 1: t * t + 3, 2: 8, 4: -5, 6: 66, 7: 20, 9: 99}.get(v, 5)


@pytest.mark.parametrize("order", ORDERS)
def test_switch(order):
    x = inputs(64, 12)
    assert run_cuda(SWITCH, x, order).tolist() == [switch(t, int(v)) for t, v in enumerate(x)]


BRX = """
TABLE: .branchtargets A, B, C, B;
and.b32 %x0, %r0, 3;
brx.idx %x0, TABLE;
A: mov.u32 %o0, 100; bra OUT;
B: add.u32 %o0, %r0, 7; bra OUT;
C: mul.lo.u32 %o0, %r0, %r0;
OUT: add.u32 %o0, %o0, 1;
"""


def test_brx_idx():
    x = np.arange(64, dtype=np.uint32)[None, ::-1].copy()
    out = run_registers(register_kernel(BRX, 1, 1), x, 1)
    expected = [(100, v + 7, v * v, v + 7)[v & 3] + 1 for v in x[0].tolist()]
    assert out[0].tolist() == expected


def test_brx_idx_under_a_guard():
    """Lanes for which it is false go on behind it."""
    x = np.arange(64, dtype=np.uint32)[None].copy()
    text = BRX.replace("brx.idx %x0, TABLE;", "setp.lt.u32 %p, %x0, 3; @!%p brx.idx %x0, TABLE; bra C;")
    out = run_registers(register_kernel(text, 1, 1), x, 1)
    assert out[0].tolist() == [(v + 7 if v % 4 == 3 else v * v) + 1 for v in x[0].tolist()]


def test_brx_idx_outside_its_table_is_reported():
    text = BRX.replace("and.b32 %x0, %r0, 3", "mov.b32 %x0, %r0")
    x = np.full((1, 32), 9, np.uint32)
    result = ptxsim.load(register_kernel(text, 1, 1)).launch("k", block=32, args=[x, np.zeros_like(x)])
    assert [(f.kind, f.severity) for f in result.findings] == [("illegal", "error")]


def test_predication_touches_only_its_lanes():
    text = """
    and.b32 %x0, %r0, 1; setp.eq.u32 %p, %x0, 0; mov.u32 %o0, 1; mov.u32 %o1, 2; mov.u32 %o2, 3;
    @%p add.u32 %o0, %r0, %r0;
    @!%p st.shared.u32 [%sm], %r0;
    @!%p ld.shared.u32 %o1, [%sm];
    @%p setp.gt.u32 %q, %r0, 10; @!%p setp.lt.u32 %q, %r0, 10; selp.u32 %o2, 1, 0, %q;
    """
    x = np.arange(32, dtype=np.uint32)[None]
    out = run_registers(register_kernel(text, 1, 3, shared=16), x, 3, expect=None)
    even = x[0] % 2 == 0
    assert np.array_equal(out[0], np.where(even, 2 * x[0], 1))
    assert np.array_equal(out[1], np.where(even, 2, 31))
    assert np.array_equal(out[2], np.where(even, x[0] > 10, x[0] < 10))


def test_exit_frees_the_lanes_that_wait():
    """Lanes 0-15 wait after the branch; the last of the others exits the kernel instead of reconverging."""
    text = """
    mov.u32 %o0, 5; setp.lt.u32 %p, %t, 16;
    @%p bra MEET;
    setp.eq.u32 %q, %r0, 0;
    @%q exit;
    exit;
    MEET: vote.sync.ballot.b32 %o0, %p, 0xffffffff;
    """
    x = inputs(32, 2).astype(np.uint32)[None]
    out = run_registers(register_kernel(text, 1, 1), x, 1)
    assert out[0].tolist() == [0xFFFF] * 16 + [0] * 16


def test_lanes_that_leave_while_others_wait_in_a_collective():
    """Lanes 0-7 wait at the shuffle; lanes 8.. exit one by one; the shuffle then has all remaining lanes."""
    text = """
    setp.lt.u32 %p, %t, 8;
    @%p bra MEET;
    mov.u32 %x0, %t;
    LOOP: sub.u32 %x0, %x0, 1; setp.gt.s32 %q, %x0, 0; @%q bra LOOP;
    exit;
    MEET: shfl.sync.idx.b32 %o0, %r0, 3, 31, 0xffffffff;
    """
    x = np.arange(32, dtype=np.uint32)[None] + 50
    out = run_registers(register_kernel(text, 1, 1), x, 1)
    assert out[0].tolist() == [53] * 8 + [0] * 24


# ---- lanes that wait for other lanes of their warp ----

LOCK = """k(const int* x, int* out) {
  __shared__ int lock, count;
  if (threadIdx.x == 0) { lock = 0; count = 0; }
  __syncthreads();
  if (threadIdx.x % 4 == 1) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence_block();
    out[threadIdx.x] = count;
    count = count + x[threadIdx.x];
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockDim.x] = count;
}"""


@pytest.mark.parametrize("order", ORDERS)
def test_spin_lock_in_one_warp(order):
    """The lane that holds the lock waits at the reconvergence point of the loop while the others spin."""
    x = inputs(40, 100)
    out = run_cuda(LOCK, x, order, outputs=41)
    assert out[40] == x[1::4].sum() and 0 in out[1:40:4] and len(set(out[1:40:4].tolist())) > 5


def test_lane_waits_for_a_later_store_of_another_lane():
    source = """k(const int* x, int* out) {
      __shared__ volatile int flag;
      if (threadIdx.x == 0) flag = 0;
      __syncwarp();
      if (threadIdx.x == 5) { while (flag == 0) {} }
      if (threadIdx.x == 9) flag = 1;
      out[threadIdx.x] = x[threadIdx.x] + flag;
    }"""
    x = inputs(32, 9)
    out = run_cuda(source, x)
    assert out[5] == x[5] + 1 and out[9] == x[9] + 1


def test_endless_polling_is_a_deadlock():
    source = """k(const int* x, int* out) {
      __shared__ volatile int flag;
      flag = 0;
      __syncthreads();
      while (flag == 0) {}
      out[threadIdx.x] = 1;
    }"""
    module = ptxsim.load(compile_ptx(f'extern "C" __global__ void {source}', "sm_90a"))
    x = np.zeros(64, np.int32)
    result = module.launch("k", block=64, args=[x, x.copy()])
    assert "deadlock" in [f.kind for f in result.findings]


def test_long_computation_is_no_deadlock():
    source = """k(const int* x, int* out) {
      unsigned v = x[threadIdx.x];
      #pragma unroll 1
      for (int i = 0; i < 3000000; i++) { asm volatile("" : "+r"(v)); v = v * 1664525u + 1013904223u; }
      out[threadIdx.x] = v;
    }"""
    x = inputs(1, 1000)
    v, a, c, n = int(x[0]), 1664525, 1013904223, 3_000_000
    while n:  # n steps of the generator at once
        if n & 1:
            v = (a * v + c) % 2**32
        a, c, n = a * a % 2**32, (a + 1) * c % 2**32, n >> 1
    assert run_cuda(source, x)[0] == np.uint32(v).astype(np.int32)
