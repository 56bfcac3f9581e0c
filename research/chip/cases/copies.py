"""cp.async and its groups and barriers; bulk copies without tensor maps; st.async, red.async; distributed
memory.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from research.chip.case import Case, program

TX = "mbarrier::complete_tx::bytes"
ADDRESS = "mul.wide.u32 %y0, %t, 16; add.u64 %y0, %in, %y0; shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0;\n"
CLEAR = "mov.b32 %x3, -1; st.shared.v4.b32 [%x1], {%x3, %x3, %x3, %x3}; bar.sync 0;\n"
READ = """bar.sync 0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%x1]; mul.wide.u32 %y1, %t, 16; add.u64 %y1, %out, %y1;
st.global.v4.b32 [%y1], {%o0, %o1, %o2, %o3};
"""


def cases() -> list[Case]:
    found = [
        asynchronous(f"cp.async.{level}.{size}", f"cp.async.{level}.shared.global [%x1], [%y0], {size};")
        for level, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16))
    ]
    part = "and.b32 %x2, %t, 3; shl.b32 %x2, %x2, 2; cp.async.{}.shared.global [%x1], [%y0], 16, %x2;"
    ignore = "and.b32 %x2, %t, 1; setp.eq.u32 %s0, %x2, 1; cp.async.ca.shared.global [%x1], [%y0], 16, %s0;"
    found += [asynchronous(f"cp.async.src-size.{level}", part.format(level)) for level in ("ca", "cg")]
    found += [asynchronous("cp.async.ignore-src", ignore)]
    found += [ring(), *(barrier(noinc) for noinc in ("", ".noinc"))]
    found += [bulk(), *(bulk_reduce(op, kind) for op, kind in REDUCTIONS), *peers(), multicast()]
    return found


def asynchronous(name: str, copy: str) -> Case:
    body = f"{ADDRESS}{CLEAR}{copy}\ncp.async.commit_group; cp.async.wait_group 0;\n{READ}"
    return _simple(name, body, target="sm_80")


def _simple(name: str, body: str, threads: int = 32, words: int = 4, target="sm_90a", **options) -> Case:
    data = np.random.default_rng(3).integers(0, 2**32, (threads, words), dtype=np.uint32)
    arrays = {"in": data, "out": np.zeros((threads, 4), np.uint32)}
    return Case(
        name, program(body, target=target), arrays, ("out",), threads, shared=8192, arch=target, **options
    )


def ring() -> Case:
    """Three stages in flight, one wait_group per stage, the last ones with wait_all."""
    copies = "".join(
        f"cp.async.ca.shared.global [%x1+{512 * i}], [%y0+{512 * i}], 16; cp.async.commit_group;\n"
        for i in range(3)
    )
    sums = "mov.b32 %x4, 0;\n"
    for i, wait in enumerate(("wait_group 2", "wait_group 1", "wait_all")):
        sums += f"cp.async.{wait}; bar.sync 0; xor.b32 %x5, %x0, 16; add.u32 %x5, %sm, %x5;\n"
        sums += f"ld.shared.b32 %x6, [%x5+{512 * i}]; mad.lo.u32 %x4, %x4, 3, %x6;\n"
    body = (
        ADDRESS
        + copies
        + sums
        + "mul.wide.u32 %y1, %t, 4; add.u64 %y1, %out, %y1; st.global.b32 [%y1], %x4;\n"
    )
    return _simple("cp.async.groups", body, words=12, target="sm_80")


def barrier(noinc: str) -> Case:
    """Thread t reads what thread t ^ 32 copied, after an mbarrier wait."""
    arrive = "" if noinc else "mbarrier.arrive.shared.b64 %y5, [%x3];"
    body = f"""{ADDRESS} add.u32 %x3, %sm, 4096; setp.eq.u32 %s0, %t, 0;
    @%s0 mbarrier.init.shared.b64 [%x3], 64; bar.sync 0;
    cp.async.ca.shared.global [%x1], [%y0], 16;
    cp.async.mbarrier.arrive{noinc}.shared.b64 [%x3]; {arrive}
    W: mbarrier.try_wait.parity.shared.b64 %s0, [%x3], 0; @!%s0 bra W;
    xor.b32 %x4, %x0, 512; add.u32 %x1, %sm, %x4;
    {READ}"""
    return _simple(f"cp.async.mbarrier{noinc}", body, threads=64)


# ---- bulk ----

# %x0 offset of the thread's word, %x1 an mbarrier with one arrival, %s0 thread 0
START = """shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; add.u32 %x1, %sm, 4096; setp.eq.u32 %s0, %t, 0;
@%s0 mbarrier.init.shared.b64 [%x1], 1; fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %s1, [%x1], 0; @!%s1 bra W;\n"
ANNOUNCE = "@%s0 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], 128;\n"
FETCH = f"{START}{ANNOUNCE}@%s0 cp.async.bulk.shared::cluster.global.{TX} [%sm], [%in], 128, [%x1];\n{WAIT}"
DRAIN = "@%s0 cp.async.bulk.commit_group; @%s0 cp.async.bulk.wait_group 0;\n"
REDUCTIONS = [
    ("add.u32", np.uint32),
    ("add.s32", np.int32),
    ("add.u64", np.uint64),
    ("min.s32", np.int32),
    ("max.u32", np.uint32),
    ("min.u64", np.uint64),
    ("max.s64", np.int64),
    ("and.b32", np.uint32),
    ("xor.b64", np.uint64),
    ("or.b32", np.uint32),
    ("inc.u32", np.uint32),
    ("dec.u32", np.uint32),
    ("add.f32", np.float32),
    ("add.f64", np.float64),
    ("add.noftz.f16", np.float16),
    ("min.f16", np.float16),
    ("max.f16", np.float16),
    ("add.noftz.bf16", ml_dtypes.bfloat16),
    ("max.bf16", ml_dtypes.bfloat16),
]


def bulk() -> Case:
    body = f"""{FETCH} ld.shared.u32 %x2, [%x0]; add.u32 %x2, %x2, 1; st.shared.u32 [%x0], %x2;
    fence.proxy.async.shared::cta; bar.sync 0;
    @%s0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 128; {DRAIN}"""
    data = np.random.default_rng(4).integers(0, 2**32, 32, dtype=np.uint32)
    arrays = {"in": data, "out": np.zeros(32, np.uint32)}
    return Case("bulk.copy", program(body), arrays, ("out",), shared=8192)


def bulk_reduce(operation: str, kind) -> Case:
    body = f"{FETCH} @%s0 cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%out], [%sm], 128; {DRAIN}"
    count = 128 // np.dtype(kind).itemsize
    rng = np.random.default_rng(5)
    low = 0 if np.dtype(kind).kind == "u" else -9
    new, old = (rng.integers(low, 9, count).astype(kind) for _ in range(2))
    raw = f"u{np.dtype(kind).itemsize}"
    arrays = {"in": new.view(raw), "out": old.view(raw)}
    return Case(f"bulk.reduce.{operation}", program(body), arrays, ("out",), shared=8192)


# CTA 0 acts on CTA 1: %x4, %x5 its buffer and mbarrier, %x7 the thread's word there; CTA 1 stores its data
PEER = """
mov.u32 %x3, %cluster_ctarank; mapa.shared::cluster.u32 %x4, %sm, 1; mapa.shared::cluster.u32 %x5, %x1, 1;
mapa.shared::cluster.u32 %x7, %x0, 1; mul.wide.u32 %y2, %t, 4; add.u64 %y3, %in, %y2; ld.global.u32 %x6, [%y3];
st.shared.u32 [%x0], %x6; setp.eq.u32 %s1, %x3, 1; and.pred %s1, %s1, %s0;
@%s1 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], {bytes};
fence.proxy.async; barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.u32 %s1, %x3, 1; @%s1 bra TAKE;
{send}
bra DONE;
TAKE: {wait}
ld.shared.u32 %x6, [%x0]; add.u64 %y1, %out, %y2; st.global.u32 [%y1], %x6;
DONE: barrier.cluster.arrive; barrier.cluster.wait;
"""
PLAIN = "barrier.cluster.arrive; barrier.cluster.wait;"


def peers() -> list[Case]:
    sends = {
        "bulk.peer": f"@%s0 cp.async.bulk.shared::cluster.shared::cta.{TX} [%x4], [%sm], 128, [%x5];",
        "bulk.peer.add": f"@%s0 cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.add.u32 [%x4], [%sm], 128, [%x5];",
        "st.async": f"st.async.shared::cluster.{TX}.u32 [%x7], %t, [%x5];",
        **{
            f"red.async.{op}": f"red.async.relaxed.cluster.shared::cluster.{TX}.{op} [%x7], %t, [%x5];"
            for op in ("add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "inc.u32", "dec.u32")
        },
    }
    found = [_peer(name, send, WAIT, 128) for name, send in sends.items()]
    for name, send in {
        "cluster.store": "st.shared::cluster.u32 [%x7], %t;",
        "cluster.generic": "cvt.u64.u32 %y4, %x0; cvta.shared.u64 %y4, %y4; mapa.u64 %y4, %y4, 1; st.u32 [%y4], %t;",
        "cluster.atomic": "atom.add.shared::cluster.u32 %x8, [%x7], 5; red.add.shared::cluster.u32 [%x7], %x8;",
        "cluster.load": "ld.shared::cluster.u32 %x8, [%x7]; shl.b32 %x8, %x8, 1; st.shared::cluster.u32 [%x7], %x8;",
        "cluster.rank": "getctarank.shared::cluster.u32 %x8, %x7; st.shared::cluster.u32 [%x7], %x8;",
    }.items():
        found.append(_peer(name, f"{send} {PLAIN}", PLAIN, 0))
    return found


def _peer(name: str, send: str, wait: str, size: int) -> Case:
    data = np.random.default_rng(6).integers(1, 99, 32).astype(np.uint32)
    arrays = {"in": data, "out": np.zeros(32, np.uint32)}
    text = PEER.format(send=send, wait=wait, bytes=size)
    if not size:
        text = text.replace("@%s1 mbarrier.arrive.expect_tx.shared.b64 _, [%x1], 0;", "")
    return Case(name, program(START + text), arrays, ("out",), grid=2, cluster=2, shared=8192)


def multicast() -> Case:
    body = f"""{START} mov.u32 %x3, %cluster_ctarank; {ANNOUNCE} {PLAIN}
    setp.eq.u32 %s1, %x3, 0; and.pred %s1, %s1, %s0; mov.b16 %h0, 3;
    @%s1 cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [%sm], [%in], 128, [%x1], %h0;
    {WAIT}
    ld.shared.u32 %x6, [%x0]; shl.b32 %x7, %x3, 5; add.u32 %x7, %x7, %t; mul.wide.u32 %y2, %x7, 4;
    add.u64 %y1, %out, %y2; st.global.u32 [%y1], %x6; {PLAIN}"""
    arrays = {"in": np.arange(100, 132, dtype=np.uint32), "out": np.zeros(64, np.uint32)}
    return Case("bulk.multicast", program(body), arrays, ("out",), grid=2, cluster=2, shared=8192)
