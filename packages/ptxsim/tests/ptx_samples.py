"""PTX for tests: real (CUDA sources, NVRTC with the flags of the build), and small hand-written kernels."""

from __future__ import annotations

import functools

import pytest

from ptxsim.frontend import ast as p
from ptxsim.frontend.parser import parse

LANGUAGE = r"""
#include <cuda_fp16.h>
extern "C" int printf(const char*, ...);
__constant__ float ctab[4] = {1.0f, 2.5f, -3.0f, 0.0f};
__device__ int gtab[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ double dtab[2] = {1.5, -2.0};
__device__ const char* names[2] = {"abc", "de"};
__device__ int* ptrs[2] = {&gtab[1][1], nullptr};
struct Mixed { int a; char b; short c; void* p; };
__device__ Mixed mixed = {1, 'x', 3, &ctab[2]};
struct alignas(64) Map { unsigned long long words[16]; };
__noinline__ __device__ int slow(int a, int b) {
  int r = 0;
  for (int i = 0; i < a; i++) r += b * i ^ r;
  return r;
}
__noinline__ __device__ float4 wide(float4 a, Mixed p) { a.x += p.a; return a; }
__noinline__ __device__ int other(int a, int b) { return a / b; }
typedef int (*binary)(int, int);
__device__ binary table[2] = {slow, other};
extern "C" __global__ void __launch_bounds__(128, 2)
language(const __grid_constant__ Map map, float4* x, int n, float f) {
  __shared__ alignas(128) float tile[32][33];
  extern __shared__ unsigned char dyn[];
  unsigned smem = (unsigned)__cvta_generic_to_shared(dyn);
  asm volatile("// @src 12\n");
  int t = threadIdx.x;
  tile[t % 32][t / 32] = f;
  __syncthreads();
  float4 v = x[t];
  asm volatile("{\n .reg .pred P1;\n LAB_WAIT:\n mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
               " @P1 bra.uni DONE;\n bra.uni LAB_WAIT;\n DONE:\n }\n" ::"r"(smem), "r"(n));
  asm volatile("// @src steps/step 2.py:13\n");
  asm volatile("{\n .reg .pred P1;\n .reg .b32 %%tt<3>;\n LAB_WAIT:\n"
               " mbarrier.try_wait.parity.shared::cta.b64 P1, [%0 + 8], %1;\n @P1 bra DONE;\n"
               " { .reg .pred P1; setp.eq.s32 P1, %1, 3; @!P1 bra DONE; mov.u32 %%tt1, %%tid.x; }\n"
               " bra LAB_WAIT;\n DONE:\n }\n" ::"r"(smem), "r"(n));
  switch (n) {
    case 0: v.x += 1; break;
    case 1: v.y *= 2; break;
    case 2: v.z -= slow(t, n); break;
    case 3: v.w = ctab[t & 3]; break;
    case 4: v = wide(v, mixed); break;
    case 5: v.x = v.y / v.z; break;
    case 6: v.x = sinf(v.y); break;
    case 7: v.x = table[t & 1](t, n); break;
  }
  if (t == 0) printf("n=%d f=%f %s\n", n, f, names[n & 1]);
  int spill[16];
  for (int i = 0; i < 16; i++) spill[i] = tile[i][t & 31];
  v.x += spill[n & 15];
  v.y += *ptrs[n & 1] + dtab[n & 1];
  v.z += __shfl_xor_sync(~0u, v.z, 1);
  v.w += __ballot_sync(~0u, v.w > 0);
  __half2 h = __floats2half2_rn(v.x, v.y);
  v.x = __low2float(__hfma2(h, h, h));
  v.y += map.words[n & 15];
  atomicAdd((float*)x, f);
  x[t] = v;
}
"""

SWITCH = r"""
extern "C" __global__ void jump(int* out, int n) {
  asm volatile("{\n .reg .u32 i;\n min.u32 i, %0, 2;\n ts: .branchtargets A0, A1, A2;\n brx.idx i, ts;\n"
               " A0: st.global.u32 [%1], 10; bra.uni OUT;\n A1: st.global.u32 [%1], 11; bra.uni OUT;\n"
               " A2: st.global.u32 [%1+0], 12;\n OUT:\n }" ::"r"(n), "l"(out));
}
"""

AMPERE = r"""
extern "C" __global__ void ampere(float* o, const uint4* x) {
  __shared__ alignas(16) unsigned char s[4096];
  unsigned b = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16, r[4];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n cp.async.commit_group;\n cp.async.wait_group 0;"
               ::"r"(b), "l"(x + threadIdx.x));
  __syncthreads();
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(b));
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},"
               "{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[0]), "r"(r[1]));
  o[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}
"""

HOPPER = r"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
hopper(float* o, unsigned long long d) {
  float a[4];
  for (int i = 0; i < 4; i++) a[i] = o[i];
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.fence.sync.aligned;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16\n"
               "{%0, %1, %2, %3}, %4, %5, p, 1, -1, 0, 1;\n}\n"
               : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]) : "l"(d), "l"(d + 1), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
  unsigned r;
  asm volatile("{\n.reg .pred P;\nelect.sync _|P, 0xffffffff;\nselp.b32 %0, 1, 0, P;\n}" : "=r"(r));
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%2,%3}], [%4];"
               ::"r"(r), "l"(d), "r"(1), "r"(2), "r"(8) : "memory");
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n");
  o[threadIdx.x] = a[0] + r;
}
"""

BLACKWELL = r"""
extern "C" __global__ void blackwell(float* o, unsigned long long d, unsigned n) {
  __shared__ unsigned t;
  unsigned r[4];
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
               ::"r"((unsigned)__cvta_generic_to_shared(&t)), "r"(512u));
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
               "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5,%5,%5,%5}, p;\n}\n"
               ::"r"(t), "l"(d), "l"(d), "r"(n), "r"(1), "r"(0));
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(16));
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4+16];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  o[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
"""

SAMPLES = {
    "language-sm_90a": (LANGUAGE, "sm_90a", ()),
    "language-sm_100a-lines": (LANGUAGE, "sm_100a", ("--generate-line-info",)),
    "language-sm_90a-debug": (LANGUAGE, "sm_90a", ("-G",)),
    "switch-sm_80": (SWITCH, "sm_80", ()),
    "ampere-sm_80": (AMPERE, "sm_80", ()),
    "hopper-sm_90a": (HOPPER, "sm_90a", ()),
    "blackwell-sm_100a": (BLACKWELL, "sm_100a", ()),
}


@functools.cache
def sample_ptx(name: str) -> str:
    """PTX of a sample; skips the test if NVRTC is not installed."""
    return compile_ptx(*SAMPLES[name])


def compile_ptx(source: str, arch: str, extra: tuple[str, ...] = ()) -> str:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    wheels = pytest.importorskip("nvidia.cu13").__path__[0]
    flags = [f"--gpu-architecture={arch}", "--std=c++17", "-default-device", "--disable-warnings"]
    flags += [f"-I{wheels}/include", f"-I{wheels}/include/cccl", *extra]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"sample.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    ptx = b" " * size
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.rstrip(b"\0").decode()


HEAD = ".version 9.0\n.target sm_100a\n.address_size 64\n"


def module(text: str) -> p.Module:
    return parse(HEAD + text)


def kernel(body: str, before: str = "") -> p.Function:
    start = ".visible .entry k(.param .u64 k_param_0)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
    return module(f"{before}{start}{body}\n}}\n").functions["k"]


def instrs(fn: p.Function) -> list[p.Instr]:
    return [item for item in fn.body if isinstance(item, p.Instr)]


def one(body: str, before: str = "") -> p.Instr:
    return instrs(kernel(body, before))[-1]
