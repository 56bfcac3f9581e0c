"""Loads and stores of every space, width and vector; generic, peer and parameter addresses; faults."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from ptx_samples import HEAD, compile_ptx
from warp_kernels import register_kernel, run_registers

import ptxsim

VALUES = np.random.default_rng(2).integers(0, 2**32, (2, 64), dtype=np.uint32)


def bytes_of(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words).view(np.uint8)


# ---- widths, signs, vectors ----


def extended(raw: bytes, kind: str, width: int) -> int:
    """Value of a loaded element in a register of `width` bits."""
    value = int.from_bytes(raw, "little", signed=kind[0] == "s")
    return value & ((1 << width) - 1)


TYPES = ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "s64", "f64"]
INTO = [(kind, width) for kind in TYPES for width in (16, 32, 64) if int(kind[1:]) <= width]


@pytest.mark.parametrize("space", ["global", "shared", "local", "generic"])
@pytest.mark.parametrize("kind, width", INTO)
def test_load_extends_to_the_register(space, kind, width):
    """ld.type into a register that is wider: zero- or sign-extended (PTX ISA 6.4.1)."""
    size = int(kind[1:]) // 8
    register = f"%z{width}"
    out = f"cvt.u64.u{width} %y1, {register}; mov.b64 {{%o0, %o1}}, %y1;"
    out = out.replace("cvt.u64.u64", "mov.b64")
    body = {
        "global": f"ld.global.{kind} {register}, [%y0];",
        "generic": f"ld.{kind} {register}, [%y0];",
        "shared": f"st.shared.v2.b32 [%x0], {{%r0, %r1}}; ld.shared.{kind} {register}, [%x0];",
        "local": f"st.local.v2.b32 [frame+8], {{%r0, %r1}}; ld.local.{kind} {register}, [frame+8];",
    }[space]
    text = f"""{{ .reg .b{width} {register}; .local .align 16 .b8 frame[32];
    sub.u64 %y0, %in, %step; sub.u64 %y0, %y0, %step; mad.wide.u32 %y0, %t, 4, %y0;
    shl.b32 %x0, %t, 3; add.u32 %x0, %sm, %x0;
    {body} {out} }}"""
    x = VALUES | 0x8080_8080
    if space in ("global", "generic"):  # 8 consecutive bytes of one thread
        x = np.ascontiguousarray(np.stack([x[0], x[1]], 1).reshape(2, 64))
    got = run_registers(register_kernel(text, 2, 2, shared=512), x, 2, expect=None)
    for t in range(64):
        words = x.reshape(-1)[2 * t : 2 * t + 2] if space in ("global", "generic") else x[:, t]
        expected = extended(bytes_of(words).tobytes()[:size], kind, width)
        assert int(got[0, t]) | int(got[1, t]) << 32 == expected


@pytest.mark.parametrize("kind", ["u8", "b16", "u32"])
@pytest.mark.parametrize("space", ["shared", "global"])
def test_a_whole_warp_stores_what_its_lanes_store(space, kind):
    """Two lanes store to one place, and the last of them wins; in vector code and lane by lane."""
    size, found = int(kind[1:]) // 8, []
    place = f"shr.u32 %x0, %t, 1; mul.lo.u32 %x0, %x0, {size}; "
    if space == "shared":
        place += "add.u32 %x1, %sm, %x0; "
    else:
        place += (
            "cvt.u64.u32 %y0, %x0; mul.wide.u32 %y1, %t, 4; sub.u64 %y2, %out, %y1; add.u64 %y0, %y0, %y2; "
        )
    at = "[%x1]" if space == "shared" else "[%y0+128]"
    for guards in (("",), ("@%half ", "@!%half ")):
        stores = "".join(f"{guard}st.{space}.{kind} {at}, %r0; " for guard in guards)
        loads = "".join(f"{guard}ld.{space}.{kind} %o0, {at}; " for guard in guards)
        text = f"{{ .reg .pred %half; setp.lt.u32 %half, %t, 19; {place} {stores} bar.sync 0; {loads}"
        ptx = register_kernel(f"{text} mov.u32 %o1, %o0; }}", 1, 2, shared=512)
        data = np.ascontiguousarray(VALUES[:1, :32])
        found.append(run_registers(ptx, data, 2, expect=None).tolist())
    mask = (1 << 8 * size) - 1
    assert found[0] == found[1]
    assert found[0][0] == [int(VALUES[0, lane | 1]) & mask for lane in range(32)]


VECTORS = [("v2", "b8"), ("v4", "b8"), ("v2", "b16"), ("v4", "u16"), ("v2", "b32"), ("v4", "f32"),
           ("v2", "b64"), ("v2", "f64")]  # fmt: skip
WIDE = [("v8", "b32"), ("v4", "b64")]  # 256 bits: global memory only


@pytest.mark.parametrize("vector, kind, space", [
    *((*v, space) for v in VECTORS for space in ("global", "shared")), *((*v, "global") for v in WIDE),
])  # fmt: skip
def test_vectors(vector, kind, space):
    """Each thread moves one vector to the place of its mirror thread; elements keep their order."""
    count, bits = int(vector[1]), int(kind[1:])
    size = count * bits // 8
    register = "b16" if bits == 8 else f"b{bits}"
    items = ", ".join(f"%e{i}" for i in range(count))
    through = f"st.shared.{vector}.{kind} [%m], {{{items}}}; bar.sync 0;"
    through += f"ld.shared.{vector}.{kind} {{{items}}}, [%s];"
    ptx = f"""{HEAD}.visible .entry k(.param .u64 pin, .param .u64 pout) {{
    .reg .b64 %in, %out, %off, %mir; .reg .{register} %e<8>; .reg .b32 %t, %u, %s, %m;
    .shared .align 32 .b8 buf[2048];
    ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; sub.u32 %u, 63, %t;
    mul.wide.u32 %off, %t, {size}; mul.wide.u32 %mir, %u, {size}; add.u64 %in, %in, %off;
    mov.u32 %s, buf; mad.lo.u32 %m, %u, {size}, %s; mad.lo.u32 %s, %t, {size}, %s;
    ld.global.{vector}.{kind} {{{items}}}, [%in];
    {through if space == "shared" else "add.u64 %off, %mir, 0;"}
    add.u64 %out, %out, %off; st.global.{vector}.{kind} [%out], {{{items}}}; ret; }}"""
    x = np.random.default_rng(1).integers(0, 256, (64, size), dtype=np.uint8)
    out = np.zeros_like(x)
    result = ptxsim.load(ptx).launch("k", block=64, args=[x, out])
    assert np.array_equal(out, x[::-1]) and not [f for f in result.findings if f.severity == "error"]


def test_vector_with_sinks():
    text = "sub.u64 %y0, %in, %step; sub.u64 %y0, %y0, %step; ld.global.v4.b32 {_, %o0, _, %o1}, [%y0];"
    x = np.arange(8, dtype=np.uint32).reshape(2, 4)
    out = run_registers(
        register_kernel("mul.wide.u32 %wide, %t, 4; sub.u64 %in, %in, %wide;" + text, 2, 2), x, 2
    )
    assert out.tolist() == [[1] * 4, [3] * 4]


def test_128_bit_registers():
    ptx = f"""{HEAD}.visible .entry k(.param .u64 pin, .param .u64 pout) {{
    .reg .b64 %in, %out, %a, %b, %off; .reg .b128 %q<3>; .reg .b32 %t;
    ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %t, %tid.x; mul.wide.u32 %off, %t, 16;
    add.u64 %in, %in, %off; add.u64 %out, %out, %off;
    .reg .b32 %w<4>; ld.global.b128 %q0, [%in]; mov.b128 {{%w0, %w1, %w2, %w3}}, %q0;
    mov.b128 %q1, {{%w0, %w1, %w2, %w3}}; mov.b128 {{%a, %b}}, %q1; xor.b64 %a, %a, 255;
    mov.b128 %q1, {{%b, %a}}; mov.b128 %q2, %q1; st.global.b128 [%out], %q2; ret; }}"""
    x = np.random.default_rng(1).integers(0, 2**63, (32, 2), dtype=np.uint64)
    out = np.zeros_like(x)
    assert ptxsim.load(ptx).launch("k", block=32, args=[x, out]).verdict == "clean"
    assert np.array_equal(out, np.stack([x[:, 1], x[:, 0] ^ np.uint64(255)], 1))
    with pytest.raises(ptxsim.PtxError, match="128-bit operand of add"):
        ptxsim.load(ptx.replace("mov.b128 %q2, %q1", "add.b128 %q2, %q1, %q0"))


def test_spaces_of_generic_addresses_and_volatile_local_variables():
    text = """.reg .b32 %o; .local .b32 own; cvta.const.u64 %y0, table;
    isspacep.const %p, %y0; isspacep.const %q, %in;
    selp.b32 %o0, 1, 0, %p; selp.b32 %o1, 1, 0, %q; isspacep.param %q, %y0; selp.b32 %o2, 1, 0, %q;
    st.volatile.local.u32 [own], %t; ld.volatile.local.u32 %o3, [own];"""
    ptx = register_kernel(text, 1, 4).replace(".visible", ".const .b32 table;\n.visible", 1)
    out = run_registers(ptx, np.zeros((1, 32), np.uint32), 4)
    assert [x[5] for x in out.tolist()] == [1, 0, 0, 5]


def test_cache_and_order_modifiers_change_nothing():
    mods = """weak.global relaxed.gpu.global acquire.sys volatile.global global.nc global.ca global.cs
              global.lu global.L1::no_allocate mmio.relaxed.sys.global global.L2::128B global.cv"""
    forms = [f"ld.{m}.b32" for m in mods.split()] + ["ldu.global.b32"]
    loads = "".join(f"{form} %x1, [%y0]; add.u32 %o0, %o0, %x1;\n" for form in forms)
    stores = "".join(
        f"{form} [%out], %o0;\n"
        for form in ("st.wt.global.b32", "st.release.gpu.global.b32", "st.relaxed.cta.b32")
    )
    text = f"sub.u64 %y0, %in, %step; mov.u32 %o0, 0; {loads} {stores}"
    out = run_registers(register_kernel(text, 1, 1), VALUES[:1] >> 8, 1)
    assert np.array_equal(out[0], (VALUES[0] >> 8) * len(forms))


# ---- spaces ----

SPACES = r"""
__constant__ short table[4] = {-1, 300, -3000, 7};
__device__ int counter[3] = {5, 6, 7};
__device__ const float* pointer = nullptr;
struct Args { char c; short s; double d; int v[5]; };
extern "C" __global__ void
k(const __grid_constant__ Args a, const Args b, int* out, unsigned char u, long long w) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[33];
  int t = threadIdx.x, frame[8];
  for (int i = 0; i < 8; i++) frame[i] = i * t;
  dynamic[t] = t * 3;
  fixed[t] = t * 5;
  __syncthreads();
  int* any = t % 3 == 0 ? dynamic : t % 3 == 1 ? fixed : frame;
  const int* arg = t & 1 ? a.v : b.v;
  if (t == 0) counter[1] += 10;
  __syncthreads();
  out[t] = any[(t + 1) % 8] * 1000 + table[t & 3] + arg[t % 5] + a.c + b.s + (int)a.d + u + (int)(w >> 32)
         + counter[1] + (__isShared(any) ? 1000000 : 0)
         + (__isLocal(any) ? 2000000 : 0) + (__isGlobal(out) ? 4000000 : 0);
}"""


def spaces(t: int, a: tuple, b: tuple, u: int, w: int) -> int:
    i = (t + 1) % 8
    any_ = (3 * i, 5 * i, i * t)[t % 3]
    windows = 4_000_000 + (2_000_000 if t % 3 == 2 else 1_000_000)
    arg = (a if t & 1 else b)[3][t % 5]
    return (
        any_ * 1000
        + (-1, 300, -3000, 7)[t & 3]
        + arg
        + a[0]
        + b[1]
        + int(a[2])
        + u
        + (w >> 32)
        + 16
        + windows
    )


def test_spaces_and_parameters():
    a, b = (-5, 70, 12.75, (1, 2, 3, 4, 5)), (9, -800, 1.0, (-10, -20, -30, -40, -50))
    pack = [struct.pack("<bxhxxxxd5ixxxx", c, s, d, *v) for c, s, d, v in (a, b)]
    out, u, w = np.zeros(33, np.int32), 250, -(7 << 32)
    module = ptxsim.load(compile_ptx(SPACES, "sm_90a"))
    for _ in range(2):
        module.reset()  # the kernel counts in a module variable
        result = module.launch("k", block=33, shared_bytes=256, args=[*pack, out, u, w])
        assert result.verdict == "clean", result.findings
        assert out.tolist() == [spaces(t, a, b, u, w) for t in range(33)]


@pytest.mark.parametrize("align, rest", [(1, 1168), (64, 1216), (1024, 2048)])
def test_shared_memory_is_laid_out_as_by_ptxas(align, rest):
    """Dynamic shared memory lies behind the static one, where its declaration asks for no more."""
    text = """{ .shared .align 4 .b8 one[20]; .shared .align 64 .b8 two[64]; .shared .b8 unused[64];
    mov.u32 %o0, one; mov.u32 %o1, two; mov.u32 %o2, shared; mov.u32 %o3, rest; }"""
    out = np.zeros((4, 1), np.uint32)
    before = f".extern .shared .align {align} .b8 rest[];\n.shared .align 8 .b8 shared[8];\n.visible"
    ptx = register_kernel(text, 0, 4).replace(".visible", before, 1)
    ptxsim.load(ptx).launch("k", shared_bytes=100, args=[np.zeros(1, np.uint32), out])
    assert out[:, 0].tolist() == [1024, 1088, 1152, rest]


def test_local_memory_is_private_and_fresh():
    """Each thread has its own; unwritten memory holds the same poison in every CTA."""
    source = r"""
    extern "C" __global__ void k(int* out, int n) {
      int frame[16];
      asm volatile("" :: "l"(frame) : "memory");
      int id = blockIdx.x * blockDim.x + threadIdx.x;
      out[2 * id] = frame[n & 15];
      for (int i = 0; i < 16; i++) frame[(i + n) & 15] = id * 16 + i;
      out[2 * id + 1] = frame[(n + 3) & 15];
    }"""
    out = np.zeros((96, 2), np.int32)
    ptxsim.load(compile_ptx(source, "sm_90a")).launch("k", grid=3, block=32, args=[out, 5], checks=False)
    assert len(set(out[:, 0].tolist())) == 1 and out[:, 1].tolist() == [i * 16 + 3 for i in range(96)]


# ---- clusters ----

PEERS = r"""
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int* out) {
  __shared__ int box[64];
  int t = threadIdx.x, rank, from;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  box[t] = rank * 1000 + t;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  unsigned own = (unsigned)__cvta_generic_to_shared(box + t), peer;
  unsigned long long generic;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(own), "r"((rank + 1 + t % 3) & 3));
  int a, b, c, d;
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(a) : "r"(peer) : "memory");
  asm("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(box + t), "r"((rank + 2) & 3));
  b = *(volatile int*)generic;
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(c) : "r"(peer));
  asm volatile("getctarank.u64 %0, %1;" : "=r"(d) : "l"(generic));
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("st.shared::cluster.b32 [%0], %1;" :: "r"(peer), "r"(t) : "memory");
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  int* o = out + 5 * (blockIdx.x * blockDim.x + t);
  o[0] = a; o[1] = b; o[2] = c; o[3] = d; o[4] = box[t];
}"""


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_peers_of_a_cluster(order):
    out = np.zeros((8, 64, 5), np.int32)
    result = ptxsim.load(compile_ptx(PEERS, "sm_90a")).launch("k", grid=8, block=64, args=[out], order=order)
    assert result.verdict == "clean", result.findings
    for cta, t in np.ndindex(8, 64):
        rank = cta % 4
        near, far = (rank + 1 + t % 3) % 4, (rank + 2) % 4
        assert out[cta, t].tolist() == [near * 1000 + t, far * 1000 + t, near, far, t]


# ---- what is not legal ----

BAD = [
    ("ld.global.b32 %o0, [%y0+1048576];", "out-of-bounds"),
    ("st.global.b32 [%y0+-8192], %r0;", "out-of-bounds"),
    ("ld.global.b32 %o0, [%y0+2];", "misaligned"),
    ("ld.global.v2.b32 {%o0, %x1}, [%y0+4];", "misaligned"),
    ("ld.shared.b32 %o0, [%sm+4096];", "out-of-bounds"),
    ("ld.shared.b32 %o0, [64];", "out-of-bounds"),
    ("st.shared.b32 [%sm+16777216], %r0;", "cluster"),
    ("ld.shared::cluster.b32 %o0, [%sm+33554432];", "cluster"),
    ("st.local.b32 [frame+400], %r0;", "out-of-bounds"),
    ("ld.b32 %o0, [0];", "out-of-bounds"),
    ("atom.global.add.u32 %o0, [%y0+1048576], 1;", "out-of-bounds"),
    ("red.shared.add.u32 [%sm+2], 1;", "misaligned"),
]  # fmt: skip


def run_faulty(text: str, out=None):
    text = f"{{ .local .align 8 .b8 frame[16]; mov.u32 %o0, 7; sub.u64 %y0, %in, %step; {text} }}"
    text += "add.u32 %o0, %o0, 1;"
    args = [np.zeros((1, 32), np.uint32), np.zeros((1, 32), np.uint32) if out is None else out]
    return ptxsim.load(register_kernel(text, 1, 1, shared=64)).launch("k", block=32, args=args)


@pytest.mark.parametrize("text, kind", BAD)
def test_bad_addresses_are_findings(text, kind):
    """The access is skipped, a load gives 0, the run continues; the finding counts and names the place."""
    out = np.zeros((1, 32), np.uint32)
    result = run_faulty(text, out)
    assert kind in [f.kind for f in result.findings] and result.verdict == "error"
    assert (out[0] >= 1).all()


@pytest.mark.parametrize("text, place", [
    ("ld.global.b32 %o0, [0];", ": null,"),
    ("st.global.b32 [4], %r0;", ": null + 4 B"),
    ("ld.b32 %o0, [8];", ": null + 8 B"),
    ("ld.shared.b32 %o0, [8];", "shared memory"),
])  # fmt: skip
def test_null_is_no_shared_memory_where_the_access_is_global(text, place):
    (finding, *_) = run_faulty(text).findings
    assert place in finding.message + "," and ("shared" in finding.message) == ("shared" in text)


@pytest.mark.parametrize("args, message", [
    ([np.zeros(4, np.int32)], "takes 2 arguments"),
    ([np.zeros((4, 4), np.int32)[:, ::2], np.zeros(4, np.int32)], "not C-contiguous"),
    ([np.zeros(4), "x"], "does not fit"),
    ([np.zeros(4), np.int32(3)], "4 bytes"),
    ([np.zeros(4), 1 << 64], "does not fit"),
])  # fmt: skip
def test_bad_arguments(args, message):
    module = ptxsim.load(register_kernel("", 0, 0))
    with pytest.raises(ValueError, match=message):
        module.launch("k", args=args)
