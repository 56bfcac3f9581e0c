"""Device functions, printf and assert, clocks: calls as NVRTC writes them and by hand; refusals with their
line.
"""

from __future__ import annotations

import numpy as np
import pytest
from ptx_samples import HEAD, compile_ptx
from warp_kernels import register_kernel, run_registers

import ptxsim
from ptxsim.units.printf import MOST_BYTES

FUNCTIONS = r"""
struct Pair { int a; float b[3]; };
__noinline__ __device__ int twice(int x) { return x < 0 ? -7 : 2 * x; }
__noinline__ __device__ int steps(int x) {
  int n = 0;
  while (x > 1) { if (n > 50) return -1; x = x & 1 ? 3 * x + 1 : x / 2; n++; }
  return n + twice(n);
}
__noinline__ __device__ Pair swap(Pair p, int i) {
  Pair q = p;
  q.b[i] = p.a;
  q.a = (int)p.b[i];
  return q;
}
__noinline__ __device__ void put(int* out, int v) { if (v == 3) return; *out = v; }
extern "C" __global__ void k(const int* x, int* out) {
  int t = threadIdx.x, v = x[t];
  Pair p = {v, {1.f * t, 2.f * t, 3.f * t}};
  int r = steps(v);
  if (v & 1) p = swap(p, v % 3);
  put(out + t, r + twice(p.a) + (int)p.b[2]);
}"""


def steps(x: int) -> int:
    n = 0
    while x > 1:
        if n > 50:
            return -1
        x, n = (3 * x + 1 if x & 1 else x // 2), n + 1
    return n + 2 * n


def functions(t: int, v: int) -> int:
    a, b = v, [t, 2 * t, 3 * t]
    if v & 1:
        a, b[v % 3] = b[v % 3], a
    r = steps(v) + (-7 if a < 0 else 2 * a) + b[2]
    return 0 if r == 3 else r


@pytest.mark.parametrize("extra", [(), ("-G",)])
def test_device_functions(extra):
    x = np.random.default_rng(1).integers(0, 60, 96).astype(np.int32)
    out = np.zeros(96, np.int32)
    ptx = compile_ptx(FUNCTIONS, "sm_90a", extra)
    assert ptx.count("call") >= 4
    result = ptxsim.load(ptx).launch("k", block=96, args=[x, out])
    assert result.verdict == "clean", result.findings
    assert out.tolist() == [functions(t, int(v)) for t, v in enumerate(x)]


OLD_STYLE = """
.func (.reg .b32 %res) add3(.reg .b32 %x, .reg .b32 %y, .param .b32 z)
{ .reg .b32 %q<2>; .reg .pred %p;
  ld.param.b32 %q0, [z]; add.u32 %res, %x, %y; setp.gt.u32 %p, %res, 40; @%p ret;
  add.u32 %res, %res, %q0; }
"""


def test_register_parameters_and_guarded_calls():
    text = (
        "mov.u32 %o0, 1; and.b32 %x0, %r0, 1; setp.eq.u32 %p, %x0, 1; @%p call (%o0), add3, (%r0, %t, 1000);"
    )
    ptx = register_kernel(text, 1, 1).replace(".visible .entry", OLD_STYLE + ".visible .entry")
    x = np.arange(32, dtype=np.uint32)[None]
    out = run_registers(ptx, x, 1)
    expected = [(2 * v if 2 * v > 40 else 2 * v + 1000) if v & 1 else 1 for v in range(32)]
    assert out[0].tolist() == expected


def test_shared_variables_of_a_function_exist_once():
    before = """
.func bump(.param .b32 by)
{ .shared .align 4 .b8 cell[4]; .reg .b32 %q<3>; .reg .pred %p;
  mov.u32 %q0, cell; ld.param.b32 %q1, [by]; setp.eq.u32 %p, %q1, 0; @%p st.shared.b32 [%q0], 0; @%p ret;
  ld.shared.b32 %q2, [%q0]; add.u32 %q2, %q2, %q1; st.shared.b32 [%q0], %q2; ret; }
.func (.param .b32 r) peek() { .reg .b32 %q; bump_cell: mov.u32 %q, 1; st.param.b32 [r], %q; ret; }
"""
    text = """
    { .param .b32 a; st.param.b32 [a], 0; call.uni bump, (a); }
    { .param .b32 a; st.param.b32 [a], 5; call.uni bump, (a); }
    { .param .b32 a; st.param.b32 [a], 6; call.uni bump, (a); }
    { .param .b32 a; call.uni (a), peek; ld.param.b32 %o0, [a]; }
    ld.shared.b32 %x0, [1024]; add.u32 %o0, %o0, %x0;
    """
    ptx = register_kernel(text, 1, 1).replace(".visible .entry", before + ".visible .entry")
    assert run_registers(ptx, np.zeros((1, 1), np.uint32), 1)[0, 0] == 12


@pytest.mark.parametrize("functions, body, message", [
    (".extern .func f();", "call f;", "no body here"),
    (".func f(.param .b32 a) { ret; }", "call f;", "takes 1 arguments"),
])  # fmt: skip
def test_refused_calls(functions, body, message):
    text = f"{HEAD}{functions}\n.visible .entry k() {{ .reg .b64 %rd<2>; {body} ret; }}"
    with pytest.raises(ptxsim.PtxError, match=message) as error:
        ptxsim.load(text)
    assert error.value.line > 3


POINTERS = r"""
#define M __device__
struct Shape { M virtual int area() const = 0; M virtual int twice() const { return 2 * area(); } };
struct Square : Shape { int a; M Square(int a) : a(a) {} M int area() const { return a * a; } };
struct Line : Shape { M int area() const { return 0; } M int twice() const { return -1; } };
typedef int (*Op)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int mul(int a, int b) { return a * b; }
__device__ Op ops[] = {add, mul, nullptr};
__device__ long long other(long long a, int b) { return a / b; }
__device__ long long (*unlike)(long long, int) = other;
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
extern "C" __global__ void make(char* at) {
  if (threadIdx.x % 3) new (at + 16 * threadIdx.x) Square(threadIdx.x); else new (at + 16 * threadIdx.x) Line;
}
extern "C" __global__ void k(const char* at, int* out, int deep, int which) {
  int t = threadIdx.x;
  const Shape* shape = (const Shape*)(at + 16 * t);
  out[t] = shape->twice() + ops[which < 0 ? t % 2 : which](t, 5);
  out[t] += 1000 * fibonacci(t % 6) + 1000000 * even(t % deep);
}"""


def test_functions_through_pointers_and_recursion():
    module = ptxsim.load(compile_ptx(POINTERS, "sm_90a"))
    memory, out = np.zeros(512, np.uint8), np.zeros(32, np.int32)
    module.launch("make", block=32, args=[memory])
    assert module.launch("k", block=32, args=[memory, out, 20, -1]).verdict == "clean"
    expected = [
        (2 * t * t if t % 3 else -1) + (5 * t if t % 2 else t + 5) + 1000 * (0, 1, 1, 2, 3, 5)[t % 6]
        + 1000000 * (t % 20 % 2 == 0)
        for t in range(32)
    ]  # fmt: skip
    assert out.tolist() == expected
    (null,) = module.launch("k", block=32, args=[memory, out, 20, 2]).findings
    assert null.severity == "error" and "address of no function" in null.message
    listed = f"""{HEAD}.func (.reg .u32 r) one() {{ mov.u32 r, 1; ret; }}
    .func (.reg .u32 r) two() {{ mov.u32 r, 2; ret; }}
    .visible .entry k(.param .u64 out) {{ .reg .u64 %f<2>; .reg .u32 %r; mov.u64 %f0, two;
    ld.param.u64 %f1, [out]; T: .calltargets one, two; call (%r), %f0, T; st.global.u32 [%f1], %r; ret; }}"""
    ptxsim.load(listed).launch("k", args=[out])
    assert out[0] == 2
    text = f"""{HEAD}.func (.reg .u32 r) f(.reg .u32 n) {{ add.u32 n, n, -1; call (r), f, (n); ret; }}
    .visible .entry k() {{ .reg .u32 %r<2>; mov.u32 %r1, 9; call (%r0), f, (%r1); ret; }}"""
    endless = ptxsim.load(text).launch("k", block=32, args=[])
    assert endless.verdict == "incomplete" and "not modelled: f" in endless.findings[0].message


TABLE = """
__device__ int even(int n);
__device__ int odd(int n);
__device__ int (*table[2])(int) = {even, odd};
__device__ __noinline__ int even(int n) { return n ? 1 + table[n & 1](n - 1) : 0; }
__device__ __noinline__ int odd(int n) { return n ? 2 + table[n & 1](n - 1) : 0; }
extern "C" __global__ void k(int* out) { out[threadIdx.x] = table[1](threadIdx.x % 6); }"""


def test_functions_that_call_each_other_through_a_table():
    out = np.zeros(32, np.int32)
    result = ptxsim.load(compile_ptx(TABLE, "sm_90a")).launch("k", block=32, args=[out])

    def odd(n: int, first: bool = True) -> int:
        step = 2 if first or (n + 1) % 2 else 1
        return step + odd(n - 1, False) if n else 0

    assert result.verdict == "clean" and out.tolist() == [odd(t % 6) for t in range(32)]


HEAP = """
struct Node { int value; Node* next; };
extern "C" __global__ void make(Node** heads) {
  Node* head = nullptr;
  for (int i = 0; i < 3; i++) head = new Node{int(threadIdx.x) + i, head};
  heads[threadIdx.x] = head;
}
extern "C" __global__ void k(Node** heads, int* out) {
  int sum = malloc(size_t(1) << 33) ? -99 : 0;
  for (Node* n = heads[threadIdx.x]; n; n = n->next) sum += n->value;
  out[threadIdx.x] = sum;
}
__device__ char device_heap[16];
extern "C" __global__ void full(int* out) {
  char* kept = (char*)malloc(6 << 20);
  out[0] = kept && !malloc(6 << 20) && malloc(1 << 20) && !malloc(~size_t(0)) && !device_heap[threadIdx.x];
}
extern "C" __global__ void again() { for (int i = 0; i < 10; i++) free(malloc(1 << 20)); }"""


def test_malloc_and_free():
    module = ptxsim.load(compile_ptx(HEAP, "sm_90a"))
    heads, out = np.zeros(64, np.uint64), np.zeros(64, np.int32)
    module.launch("make", block=64, args=[heads])
    assert module.launch("k", block=64, args=[heads, out]).verdict == "clean"
    assert out.tolist() == [3 * t + 3 for t in range(64)] and len(set(heads)) == 64
    full = np.zeros(1, np.int32)
    again = ptxsim.load(compile_ptx(HEAP, "sm_90a"))
    assert again.launch("full", args=[full]).verdict == "clean" and full[0] == 1
    result = module.launch("again", block=1, args=[])
    assert result.verdict == "incomplete" and "heap is used up" in result.findings[0].message


# ---- printf, assert ----

PRINT = r"""
extern "C" int printf(const char*, ...);
extern "C" __global__ void k(int n) {
  int t = threadIdx.x;
  const char* name = t == 3 ? "ab" : "c";
  if (t % 16 == 3) printf("t=%d %5.2f|%-4s|%c|%x %llu %%\n", t, t * 0.5, name, 'A' + t, 255, 1ull << 40);
  if (t == n) printf("no arguments\n");
}"""


def test_printf():
    module = ptxsim.load(compile_ptx(PRINT, "sm_90a"))
    result = module.launch("k", grid=(2, 1, 1), block=40, args=[39])
    one = [
        "warp 0 lane 3] t=3  1.50|ab  |D|ff 1099511627776 %",
        "warp 0 lane 19] t=19  9.50|c   |T|ff 1099511627776 %",
        "warp 1 lane 3] t=35 17.50|c   |d|ff 1099511627776 %",
        "warp 1 lane 7] no arguments",
    ]
    assert sorted(result.printed) == sorted(f"[CTA ({c},0,0) {line}" for c in (0, 1) for line in one)


def test_printf_gives_back_how_many_arguments_it_was_asked_for():
    source = """extern "C" int printf(const char*, ...);
    extern "C" __global__ void k(int *n) { n[0] = printf("%d %% %s", 1, "x"); n[1] = printf("none"); }"""
    counts = np.full(2, 9, np.int32)
    result = ptxsim.load(compile_ptx(source, "sm_90a")).launch("k", args=[counts])
    assert result.verdict == "clean" and counts.tolist() == [2, 0]


FORMATS = {"more than was given": "%llx" * 400, "a line without end": "%s" * 300}


@pytest.mark.parametrize("pattern", FORMATS)
def test_a_format_costs_no_run_and_no_more_than_a_line(pattern):
    given = ["1"] if pattern == "more than was given" else ["text"] * 300
    source = f"""
    extern "C" int printf(const char*, ...);
    extern "C" __global__ void k() {{
      static const char *text = "{"y" * 4000}"; printf("{FORMATS[pattern]}", {", ".join(given)}); }}"""
    result = ptxsim.load(compile_ptx(source, "sm_90a")).launch("k")
    assert result.verdict == "clean" and 300 < len(result.printed[0].raw) <= MOST_BYTES


def test_assert_is_a_finding():
    source = r"""
    extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
    extern "C" __global__ void k(int n) { if (threadIdx.x == n) __assertfail("n > 0", "f.cu", 3, "k", 1); }"""
    module = ptxsim.load(compile_ptx(source, "sm_90a"))
    assert module.launch("k", block=32, args=[40]).verdict == "clean"
    assert [f.kind for f in module.launch("k", block=32, args=[4]).findings] == ["illegal"]


# ---- clocks and special registers ----


def test_clocks_only_increase():
    text = """mov.u32 %o0, %clock; mov.u64 %y0, %clock64; cvt.u32.u64 %o1, %y0; add.u32 %x0, %o0, 1;
    mov.u64 %y1, %globaltimer; cvt.u32.u64 %o2, %y1; mov.u32 %o3, %globaltimer_lo;
    mov.u32 %o4, %globaltimer_hi;"""
    out = run_registers(register_kernel(text, 0, 5), np.zeros((1, 64), np.uint32), 5)
    assert (np.diff(out[:4].astype(np.int64), axis=0) > 0).all() and not out[4].any()


def specials(names: list[str], **options) -> np.ndarray:
    """uint32 (threads, names): threads in order of CTA (x fastest), then of thread (x fastest)."""
    moves = "\n".join(f"mov.u32 %r, %{n}; st.global.u32 [%p + {4 * i}], %r;" for i, n in enumerate(names))
    ptx = f"""{HEAD}.visible .entry k(.param .u64 out) {{
    .reg .b32 %r, %n, %i; .reg .b64 %p, %o; .reg .b32 %s<12>;
    ld.param.u64 %p, [out]; cvta.to.global.u64 %p, %p;
    mov.u32 %s0, %tid.x; mov.u32 %s1, %tid.y; mov.u32 %s2, %tid.z;
    mov.u32 %s3, %ntid.x; mov.u32 %s4, %ntid.y; mov.u32 %s5, %ntid.z;
    mov.u32 %s6, %ctaid.x; mov.u32 %s7, %ctaid.y; mov.u32 %s8, %ctaid.z;
    mov.u32 %s9, %nctaid.x; mov.u32 %s10, %nctaid.y;
    mad.lo.u32 %i, %s8, %s10, %s7; mad.lo.u32 %i, %i, %s9, %s6;
    mul.lo.u32 %n, %s3, %s4; mul.lo.u32 %n, %n, %s5; mul.lo.u32 %i, %i, %n;
    mad.lo.u32 %n, %s2, %s4, %s1; mad.lo.u32 %n, %n, %s3, %s0; add.u32 %i, %i, %n;
    mul.wide.u32 %o, %i, {4 * len(names)}; add.u64 %p, %p, %o;
    {moves}
    ret; }}"""
    out = np.zeros((int(np.prod(options["grid"]) * np.prod(options["block"])), len(names)), np.uint32)
    result = ptxsim.load(ptx).launch("k", args=[out], **options)
    assert result.verdict == "clean"
    return out


def test_special_registers():
    grid, block, cluster = (4, 2, 3), (5, 4, 2), (2, 1, 3)
    names = [f"{base}.{axis}" for base in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid",
             "cluster_ctaid", "cluster_nctaid") for axis in "xyz"]  # fmt: skip
    names += ["laneid", "warpid", "cluster_ctarank", "cluster_nctarank", "lanemask_lt", "lanemask_ge"]
    out = specials(names, grid=grid, block=block, cluster=cluster)
    rows = iter(out.tolist())
    for cz, cy, cx in np.ndindex(*grid[::-1]):
        for thread, (tz, ty, tx) in enumerate(np.ndindex(*block[::-1])):
            inside = (cx % 2, cy % 1, cz % 3)
            lane = thread % 32
            expected = [
                tx,
                ty,
                tz,
                *block,
                cx,
                cy,
                cz,
                *grid,
                cx // 2,
                cy,
                cz // 3,
                2,
                2,
                1,
                *inside,
                *cluster,
            ]
            expected += [lane, thread // 32, inside[0] + 2 * (inside[1] + inside[2]), 6]
            expected += [(1 << lane) - 1, 2**32 - (1 << lane)]
            assert next(rows) == expected


@pytest.mark.parametrize("cluster, expected", [((1, 1, 1), 0), ((2, 1, 1), 1)])
def test_is_explicit_cluster(cluster, expected):
    ptx = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r; .reg .b64 %p; .reg .pred %q;
    ld.param.u64 %p, [out]; mov.pred %q, %is_explicit_cluster; selp.u32 %r, 1, 0, %q;
    st.global.u32 [%p], %r; ret; }}"""
    out = np.full(1, 9, np.uint32)
    ptxsim.load(ptx).launch("k", grid=(2, 1, 1), cluster=cluster, args=[out], checks=False)
    assert out[0] == expected


@pytest.mark.parametrize("text", ["mov.u32 %r1, %envreg3;", "mov.u64 %rd1, %pm0_64;", "mov.u32 %r1, %tid.w;"])
def test_unknown_special_registers_are_refused_when_loading(text):
    ptx = f"{HEAD}.visible .entry k() {{ .reg .b32 %r<2>; .reg .b64 %rd<2>; {text} ret; }}"
    with pytest.raises(ptxsim.PtxError, match="not modelled"):
        ptxsim.load(ptx)
