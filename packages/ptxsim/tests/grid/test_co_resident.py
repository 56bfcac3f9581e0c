"""Clusters that wait for each other through global memory: as many run together as fit on the chip."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import compile_ptx

import ptxsim
from ptxsim.checks.race.older_writes import MOST_CHECKED
from ptxsim.grid import co_resident as resident

BARRIER = r"""
extern "C" __global__ void k(int* count, int* data, int* out) {
  int id = blockIdx.x, t = threadIdx.x;
  data[id * blockDim.x + t] = id * 100 + t;
  __threadfence();
  __syncthreads();
  if (t == 0) {
    atomicAdd(count, 1);
    while (*(volatile int*)count < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  out[id * blockDim.x + t] = data[(gridDim.x - 1 - id) * blockDim.x + t];
}"""

CHAIN = r"""
extern "C" __global__ void k(int* flag, int* sum, const int* x) {
  int id = gridDim.x - 1 - blockIdx.x;  // the last CTA must be first
  if (threadIdx.x != 0) return;
  int f;
  do { asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(f) : "l"(flag)); } while (f != id);
  *sum += x[id] * (id + 1);
  asm volatile("st.release.gpu.global.b32 [%0], %1;" :: "l"(flag), "r"(id + 1));
}"""

COUNT = r"""
extern "C" __global__ void k(int* total, float* part) {
  atomicAdd(total, 1 + (int)threadIdx.x);
  atomicAdd(part + blockIdx.x % 4, 0.5f);
}"""


PING_PONG = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %p; .reg .b32 %c, %i, %a; .reg .pred %q;
ld.param.u64 %p, [p]; mov.u32 %c, %ctaid.x; setp.ne.u32 %q, %c, 0; mov.u32 %i, 1; @%q bra B;
A: st.release.gpu.global.u32 [%p], %i;
WA: ld.acquire.gpu.global.u32 %a, [%p+128]; setp.lt.u32 %q, %a, %i; @%q bra WA;
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 5; @%q bra A; ret;
B: ld.acquire.gpu.global.u32 %a, [%p]; setp.lt.u32 %q, %a, %i; @%q bra B;
st.release.gpu.global.u32 [%p+128], %i;
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 5; @%q bra B; ret; }
"""


def launch(source: str, **options):
    return ptxsim.load(compile_ptx(source, "sm_100a")).launch("k", **options)


@pytest.mark.parametrize("order", ["program", "adverse", 5])
def test_grid_barrier(order):
    grid, block = 20, 64
    data, out = np.zeros((grid, block), np.int32), np.zeros((grid, block), np.int32)
    result = launch(
        BARRIER, grid=grid, block=block, args=[np.zeros(1, np.int32), data, out], order=order, checks=False
    )
    assert np.array_equal(out, data[::-1]) and out[0, 3] == 1903
    assert result.stats["ctas"] == grid and not result.findings


@pytest.mark.parametrize("checks", [True, False])
def test_two_ctas_answer_each_other_round_after_round(checks):
    """By stores alone, in one warp each: each turn ends in a poll, but not where the last one ended."""
    flags = np.zeros(64, np.uint32)
    result = ptxsim.load(PING_PONG).launch(
        "k", grid=2, block=1, args=[flags], cooperative=True, checks=checks
    )
    assert not result.findings and flags[0] == flags[32] == 4


SYNC = r"""
__device__ void sync(unsigned* arrived) {  // as cooperative_groups does it
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    unsigned old = atomicAdd(arrived, blockIdx.x ? 1 : 0x80000000u - (gridDim.x - 1));
    while (((old ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0) {}
    __threadfence();
  }
  __syncthreads();
}
extern "C" __global__ void k(unsigned* arrived, int* data, int* total) {
  int mine = blockIdx.x * blockDim.x + threadIdx.x, other = gridDim.x * blockDim.x - 1 - mine;
  data[mine] = mine;
  sync(arrived);  // written
  int x = data[other];
  sync(arrived);  // read
  data[mine] = x + 1;
  if (mine == 0) *total = 0;
  sync(arrived);  // cleared
  atomicAdd(total, data[other]);
}"""


def meet(source: str, grid: int = 4, order: str | int = "program", cooperative: bool = True):
    """(total, Result) of SYNC or an edit of it."""
    total, data = np.zeros(1, np.int32), np.zeros((grid, 64), np.int32)
    args = [np.zeros(1, np.uint32), data, total]
    result = launch(source, grid=grid, block=64, args=args, order=order, cooperative=cooperative)
    return total[0], result


@pytest.mark.parametrize("order", ["program", "adverse", 5])
def test_barriers_of_a_cooperative_launch_are_checked(order):
    total, result = meet(SYNC, 5, order)
    assert result.verdict == "clean" and result.stats["ctas"] == 5, result.findings
    assert total == 320 * 319 // 2 + 320


ELSEWHERE = "in different clusters of the grid, which nothing orders"
FAR, NEAR = "__threadfence();", "__threadfence_block();"
MISTAKES = {
    "nothing after the first writes": ("sync(arrived);  // written", "", ELSEWHERE),
    "nothing before the second ones": ("sync(arrived);  // read", "", "does not include this write"),
    "nothing after the clearing": ("sync(arrived);  // cleared", "", ELSEWHERE),
    "of the CTA only": ("sync(arrived);  // written", "__syncthreads();", ELSEWHERE),
    "no release": (f"{FAR}\n    unsigned", "unsigned", "nothing releases the write before it"),
    "near release": (f"{FAR}\n    unsigned", f"{NEAR}\n    unsigned", "or only at the scope of a CTA"),
    "no acquire": (f"{{}}\n    {FAR}", "{}", "nothing acquires after it"),
    "near acquire": (f"{{}}\n    {FAR}", f"{{}}\n    {NEAR}", "or only at the scope of a CTA"),
    "near count": ("atomicAdd(arrived", "atomicAdd_block(arrived", "or only at the scope of a CTA"),
    "one CTA fewer": ("gridDim.x - 1)", "gridDim.x - 2)", ELSEWHERE),
    "one CTA more": ("gridDim.x - 1)", "gridDim.x)", "which CTA (3, 0, 0) wrote last (PTX line"),
    "a CTA that leaves": ("  int x", "  if (blockIdx.x == 2) return;\n  int x", "CTA (2, 0, 0) has ended"),
    "a CTA that never comes": ("  data[m", "  if (blockIdx.x == 1) return;\n  data[m", "(1, 0, 0) has never"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_at_barriers_of_a_grid(mistake):
    old, new, words = MISTAKES[mistake]
    assert old in SYNC
    _, result = meet(SYNC.replace(old, new, 1 if "CTA that" in mistake else -1))
    told = "\n".join(map(str, result.findings[:2]))
    assert result.verdict == "error" and words in told, result.findings


def test_only_a_cooperative_launch_may_wait_for_later_clusters():
    total, result = meet(SYNC, cooperative=False)
    (finding,) = result.findings
    assert (total, result.verdict) == (256 * 255 // 2 + 256, "incomplete")
    assert "cluster 0 waits for other clusters: only a cooperative launch" in finding.message


def test_checks_say_what_they_did_not_see():
    _, result = meet(SYNC, MOST_CHECKED + 1)
    assert result.verdict == "incomplete" and "not checked" in result.findings[0].message


def test_chain_in_reverse_order():
    x = np.arange(1, 31, dtype=np.int32)
    total, flag = np.zeros(1, np.int32), np.zeros(1, np.int32)
    result = launch(CHAIN, grid=30, block=32, args=[flag, total, x], checks=False)
    assert total[0] == (x * x).sum() and flag[0] == 30 and result.stats["ctas"] == 30


def test_more_clusters_than_fit_deadlock():
    """A grid-wide barrier hangs on a chip if the grid does not fit on it."""
    fit = resident.SMS * 2  # 1024 threads each
    args = [np.zeros(1, np.int32), np.zeros((fit + 1, 1024), np.int32), np.zeros((fit + 1, 1024), np.int32)]
    result = launch(BARRIER, grid=fit + 1, block=1024, args=args, checks=False)
    assert "deadlock" in [f.kind for f in result.findings]
    assert result.stats["ctas"] < fit + 1


def test_flag_that_nobody_sets():
    args = [np.full(1, 99, np.int32), np.zeros(1, np.int32), np.ones(3, np.int32)]
    result = launch(CHAIN, grid=3, block=32, args=args, checks=False)
    assert [f.kind for f in result.findings] == ["deadlock"]


def test_atomics_of_all_clusters_count(monkeypatch):
    """Also with many processes: kernels with global atomics stay in one."""
    monkeypatch.setattr("ptxsim.grid.processes.WORTHWHILE", 0)
    total, part = np.zeros(1, np.int32), np.zeros(4, np.float32)
    result = launch(COUNT, grid=40, block=96, args=[total, part], checks=False, jobs=4)
    assert total[0] == 40 * 96 * 97 // 2 and (part == 10 * 96 * 0.5).all()
    assert result.stats["ctas"] == 40


@pytest.mark.parametrize("text, expected", [
    ("atom.global.add.u32 %r1, [%rd1], 1;", True),
    ("red.relaxed.gpu.global.add.f32 [%rd1], %f1;", True),
    ("atom.shared.add.u32 %r1, [%r2], 1;", False),
    ("ld.acquire.gpu.global.b32 %r1, [%rd1];", True),
    ("ld.volatile.shared.b32 %r1, [%r2];", False),
    ("ld.global.b32 %r1, [%rd1];", False),
    ("st.release.gpu.global.b32 [%rd1], %r1;", False),
])  # fmt: skip
def test_which_kernels_talk(text, expected):
    ptx = f""".version 9.0
    .target sm_100a
    .address_size 64
    .visible .entry k() {{ .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .f32 %f<2>;
    mov.b32 %r2, 0; mov.b64 %rd1, 0; mov.b32 %f1, 0; mov.b32 %r1, 0;
    {text}
    ret; }}"""
    assert resident.talks(ptxsim.load(ptx).programs["k"]) == expected


LONG_SUM = r"""
extern "C" __global__ void k(int* mutex, const int* x, int* total) {
  int sum = 0;
  for (int i = threadIdx.x; i < 4096; i += 32) sum += x[i];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x) return;
  while (atomicCAS(mutex, 0, 1)) {}
  __threadfence();
  *(volatile int*)total += sum;
  __threadfence();
  atomicExch(mutex, 0);
}"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_a_long_loop_that_only_reads_waits_for_nobody(order, monkeypatch):
    """It has no effect for a long time, as in a poll; but nobody writes what it reads while it runs."""
    monkeypatch.setattr("ptxsim.machine.watchdog.IMPATIENT", 50)
    x, total = np.arange(4096, dtype=np.int32), np.zeros(1, np.int32)
    result = launch(LONG_SUM, grid=6, block=32, args=[np.zeros(1, np.int32), x, total], order=order, jobs=1)
    assert total[0] == 6 * x.sum() and result.verdict in ("clean", "review"), result.findings
