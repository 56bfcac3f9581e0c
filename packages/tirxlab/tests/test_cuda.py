"""The cuda device on a real GPU: needs compute capability 9.0 or 10.x, torch and NVRTC, but not TVM."""

import dataclasses
import time

import numpy as np
import pytest

from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam
from tirxlab.devices import DeviceError, cuda, driver
from tirxlab.toolchain import nvrtc

CAPABILITY = max(driver.capabilities(), default=(0, 0))
ARCH = {(9, 0): "sm_90a", (10, 0): "sm_100a"}.get(CAPABILITY)
pytestmark = pytest.mark.skipif(ARCH is None, reason="needs a GPU of compute capability 9.0 or 10.0")

KINDS = """
__device__ int rank() { int r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ long long now() { long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
"""
# Each CTA adds n to its rank in the cluster, through the last word of dynamic shared memory.
RANKS = """
extern __shared__ int scratch[];
extern "C" __global__ void kernel(int* D, int n, int words) {
  scratch[words - 1] = n + rank();
  D[blockIdx.x] = scratch[words - 1];
  if (blockIdx.x == 1 && threadIdx.x == 0) printf("rank %d of CTA %d\\n", rank(), blockIdx.x);
}"""
# One box of A by TMA into shared memory, copied from there to D unchanged.
BOX = """
extern __shared__ __align__(1024) unsigned char raw[];
extern "C" __global__ void kernel(const __grid_constant__ CUtensorMap A, unsigned short* D) {
  __shared__ unsigned long long bar;
  unsigned b = __cvta_generic_to_shared(&bar), d = __cvta_generic_to_shared(raw);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(b));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 2048;" :: "r"(b));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
      :: "r"(d), "l"(&A), "r"(8), "r"(4), "r"(b) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"
    :: "r"(b) : "memory");
  for (int i = threadIdx.x; i < 1024; i += 32) D[i] = ((unsigned short*)raw)[i];
}"""  # noqa: E501
SPIN = """
extern "C" __global__ void kernel(int* D, int us) { for (long long t = now(); now() - t < 1000LL * us;); }"""
HANG = 'extern "C" __global__ void kernel(volatile int* D) { while (D[0] == 0); }'
FAULT = 'extern "C" __global__ void kernel(int* D) { *(volatile int*)nullptr = 1; }'
INT = (BufferInfo("D", (8,), "int32", "out"),)


def artifact(source, params=(BufferParam("D"),), buffers=INT, arch=ARCH, **shape):
    made = nvrtc.compile_cuda(KINDS + source, arch)
    launch = {"grid": (1, 1, 1), "block": (32, 1, 1), "cluster": (1, 1, 1), "shared_bytes": 0, **shape}
    return Artifact(arch, "kernel", source, made.ptx, made.cubin, params=params, buffers=buffers, **launch)


def ranks(arch=ARCH, **shape):
    words = 25_000  # 100 kB: more than a kernel may use without asking
    numbers = ScalarParam("n", "int32", 10), ScalarParam("words", "int32", words)
    shape = {"grid": (8, 1, 1), "shared_bytes": 4 * words, **shape}
    return artifact(RANKS, (BufferParam("D"), *numbers), arch=arch, **shape)


def test_cluster_shared_memory_scalars_and_printf():
    D = np.zeros(8, np.int32)
    run = cuda.run(ranks(cluster=(4, 1, 1)), [D])
    assert run.verdict == "not checked" and D.tolist() == [10, 11, 12, 13] * 2
    assert run.stdout == "rank 1 of CTA 1\n"


def test_older_code_runs_through_its_ptx():
    D = np.zeros(8, np.int32)
    made = nvrtc.compile_cuda(RANKS.replace("rank()", "0"), "sm_80")
    older = dataclasses.replace(ranks(), arch="sm_80", ptx=made.ptx, cubin=made.cubin)
    run = cuda.run(older, [D])
    assert run.ran and D.tolist() == [10] * 8


def test_tensor_map():
    A = np.arange(64 * 128, dtype=np.uint16).view(np.float16).reshape(64, 128)
    D = np.zeros(1024, np.uint16)
    param = TensorMapParam("A", 256, "float16", (128, 63), (256,), (64, 16), (1, 1), 0, 128, 2, "zero")
    buffers = BufferInfo("A", (64, 128), "float16", "in"), BufferInfo("D", (1024,), "uint16", "out")
    made = artifact(BOX, (param, BufferParam("D")), buffers, shared_bytes=2048)
    assert cuda.run(made, [A, D]).ran
    box = A.view(np.uint16)[5:21, 8:72]
    swizzled = [box[r].reshape(8, 8)[[c ^ (r % 8) for c in range(8)]] for r in range(16)]
    assert (D.reshape(16, 8, 8) == np.stack(swizzled)).all()


@pytest.mark.parametrize("us", [100, 2000])
def test_time(us):
    spin = artifact(SPIN, (BufferParam("D"), ScalarParam("us", "int32", us)))
    ms = cuda.measure(spin, [np.zeros(8, np.int32)], warmup=2, repeat=10)
    assert us / 1000 <= ms < us / 1000 + 0.05


# D = A + 1, slowly; or D is left for the next launch, which finds it by a mark and does nothing.
SLOW = """
__device__ void add(const int* A, int* D, int slow) {
  for (int n = 0; n < slow; ++n) asm volatile("nanosleep.u32 1000;");
  D[threadIdx.x] = A[threadIdx.x] + 1;
}
"""
KEEPS = {
    "nothing": """extern "C" __global__ void kernel(const int* A, int* D, int n) { add(A, D, 1000); }""",
    "shared memory": """
extern __shared__ volatile int kept[];
extern "C" __global__ void kernel(const int* A, int* D, int n) {
  if (kept[0] == 0x600d) { D[threadIdx.x] = kept[1 + threadIdx.x]; return; }
  add(A, D, 1000);
  for (int n = 0; n < 8; ++n) { __syncthreads(); kept[1 + threadIdx.x] = D[threadIdx.x]; kept[0] = 0x600d; }
}""",
    "local memory": """
extern "C" __global__ void kernel(const int* A, int* D, int n) {
  volatile int kept[16384];
  if (kept[7 + n] == 0x600d) { D[threadIdx.x] = kept[9 + n]; return; }
  add(A, D, 1000);
  kept[9 + n] = D[threadIdx.x]; kept[7 + n] = 0x600d;
  for (int i = 64; i < 16384; ++i) kept[i + n] = i;  // what L1 holds is dropped when the thread ends
}""",
    "other memory": """
extern "C" __global__ void kernel(const int* A, int* D, int n) {
  volatile int* kept = D + 64;  // behind D: a driver gives out pages
  if (kept[32] == 0x600d) { D[threadIdx.x] = kept[threadIdx.x]; return; }
  add(A, D, 1000);
  kept[threadIdx.x] = D[threadIdx.x]; kept[32] = 0x600d;
}""",
    "a launch in two": """
extern "C" __global__ void kernel(const int* A, int* D, int n) {
  if (now() / 1024 % 2) { add(A, D, 1000); } else { D[threadIdx.x] = 0; }
}""",
}


@pytest.mark.parametrize("where", KEEPS)
def test_what_a_launch_leaves_for_the_next_is_of_no_use(where):
    """Inputs differ from launch to launch, so the result of the previous launch is detected as wrong."""
    buffers = BufferInfo("A", (32,), "int32", "in"), BufferInfo("D", (32,), "int32", "out")
    made = artifact(
        SLOW + KEEPS[where],
        (BufferParam("A"), BufferParam("D"), ScalarParam("n", "int32", 0)),
        buffers,
        shared_bytes=1024,
    )
    pool = np.random.default_rng(0).integers(0, 1 << 30, 4096).astype(np.int32)
    A, D = pool[:32].copy(), np.zeros(32, np.int32)
    ms, seen = cuda.prove(made, [A, D], {"A": pool}, warmup=2, repeat=20)
    wrong = [n for n, one in enumerate(seen) if (one.values != pool[one.at["A"] :][one.rows] + 1).any()]
    print(f"{where}: {ms:.4f} ms, {len(wrong)} of {len(seen)} launches wrong")
    assert len(seen) == 20 and seen[-1].at == {"A": 0}
    assert bool(wrong) == (where != "nothing")


def test_a_hang_is_killed_and_the_next_run_is_fine(monkeypatch):
    monkeypatch.setenv("LAB_TIMEOUT", "3")
    start = time.monotonic()
    run = cuda.run(artifact(HANG), [np.zeros(8, np.int32)])
    assert run.verdict == "error" and run.findings[0].kind == "deadlock" and time.monotonic() - start < 60
    D = np.zeros(8, np.int32)
    assert cuda.run(ranks(), [D]).ran and D.tolist() == [10] * 8


def test_a_fault_is_an_error_and_the_next_run_is_fine():
    run = cuda.run(artifact(FAULT), [np.zeros(8, np.int32)])
    assert run.verdict == "error" and "CUDA_ERROR_ILLEGAL_ADDRESS" in run.findings[0].message
    D = np.zeros(8, np.int32)
    assert cuda.run(ranks(), [D]).ran and D.tolist() == [10] * 8


def test_the_wrong_chip_is_refused_in_one_line():
    other = {"sm_90a": "sm_100a", "sm_100a": "sm_90a"}[ARCH]
    with pytest.raises(DeviceError, match=f"built for {other}; this GPU is sm_") as caught:
        cuda.run(ranks(other), [np.zeros(8, np.int32)])
    assert "\n" not in str(caught.value)


def test_torch_tensors_go_both_ways():
    torch = pytest.importorskip("torch")
    D = torch.zeros(8, dtype=torch.int32, device="cuda")
    assert cuda.run(ranks(cluster=(2, 1, 1)), [D]).outputs["D"] is D
    assert D.tolist() == [10, 11] * 4


def test_launcher_uses_the_current_stream_and_does_not_wait():
    torch = pytest.importorskip("torch")
    D = torch.zeros(8, dtype=torch.int32, device="cuda")
    spin = cuda.launcher(artifact(SPIN, (BufferParam("D"), ScalarParam("us", "int32", 200_000))))
    fill = cuda.launcher(ranks())
    stream = torch.cuda.Stream()
    start = time.monotonic()
    with torch.cuda.stream(stream):
        spin(D)
        fill(D)
    assert time.monotonic() - start < 0.1 and not stream.query()
    assert torch.cuda.current_stream().query()
    stream.synchronize()
    assert D.tolist() == [10] * 8
    with pytest.raises(DeviceError, match="D must be on cuda:0"):
        fill(D.cpu())
