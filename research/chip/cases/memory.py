"""Loads, stores, address conversions, special registers, control flow."""

from __future__ import annotations

import numpy as np

from research.chip.case import Case, names, program, rows

TYPES = ["u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"]


def cases() -> list[Case]:
    found = [width(kind, space) for kind in TYPES for space in ("global", "shared", "local")]
    found += [
        vectors(kind, count)
        for kind, count in (("b8", 4), ("b16", 2), ("b16", 4), ("b32", 2), ("b32", 4), ("b64", 2))
    ]
    found += [
        plain("qualifiers", QUALIFIERS),
        plain("generic", GENERIC),
        plain("isspacep", SPACES),
        plain("specials", SPECIALS),
    ]
    found += [plain("branches", BRANCHES), plain("brx", BRX), plain("vector.mov", MOVES), plain("exit", EXIT)]
    return [*found, plain("constants", CONSTANTS), plain("carry", CARRY), plain("pairs", PAIRS), clusters()]


def plain(name: str, text: str, threads: int = 64) -> Case:
    """%r0 a random word; results %o0 .. %o3."""
    data = np.random.default_rng(12).integers(0, 2**32, (1, threads), dtype=np.uint32)
    body = rows(["%r0"]) + text + "\n" + rows(names("o", 4), load=False)
    arrays = {"in": data, "out": np.zeros((4, threads), np.uint32)}
    variables = ".global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8}; .const .align 4 .u32 fixed = 99;\n"
    ptx = program(body).replace(".visible", variables + ".visible") if "bytes" in text else program(body)
    return Case(name, ptx, arrays, ("out",), threads, shared=2048)


def width(kind: str, space: str) -> Case:
    """A load that widens, a store that narrows."""
    size = int(kind[1:]) // 8
    wide = {"f32": "%f0", "f64": "%d0"}.get(kind) or ("%e0" if size == 8 else "%r0")
    extend = (
        "mov.b32 %r0, %f0; cvt.u64.u32 %e0, %r0;"
        if kind == "f32"
        else "mov.b64 %e0, %d0;"
        if kind == "f64"
        else ""
    )
    if size < 8 and kind != "f32":
        extend = "cvt.s64.s32 %e0, %r0;" if kind[0] == "s" else "cvt.u64.u32 %e0, %r0;"
    target = "[%y4]"
    between = f"ld.global.{kind} {wide}, [%y3];"
    if space != "global":
        address = (
            "add.u32 %x0, %sm, %x0;" if space == "shared" else "mov.b32 %x1, frame; add.u32 %x0, %x0, %x1;"
        )
        at = "[%x0]"
        between += f"shl.b32 %x0, %t, 3; {'and.b32 %x0, %x0, 56;' if space == 'local' else ''} {address}"
        between += f"st.{space}.{kind} {at}, {wide}; ld.{space}.{kind} {wide}, {at};"
    body = f"""{".local .align 8 .b8 frame[64];" if space == "local" else ""}
    mul.wide.u32 %y3, %t, {size}; add.u64 %y4, %out, %y3; add.u64 %y3, %in, %y3; {between}
    st.global.{kind} {target}, {wide}; {extend}
    mul.wide.u32 %y5, %t, 8; add.u64 %y5, %out, %y5; st.global.b64 [%y5+512], %e0;"""
    data = np.random.default_rng(13).integers(0, 256, 512).astype(np.uint8)
    arrays = {"in": data.view(np.uint64), "out": np.zeros(128, np.uint64)}
    if kind in ("f32", "f64"):  # no signalling NaNs
        arrays["in"] = (
            np.random.default_rng(13).standard_normal(512 // size).astype(f"f{size}").view(np.uint64)
        )
    return Case(f"ldst.{space}.{kind}", program(body), arrays, ("out",), 64, shared=2048)


def vectors(kind: str, count: int) -> Case:
    size = int(kind[1:]) // 8 * count
    registers = ", ".join(
        f"%e{i}" if kind == "b64" else f"%r{i}" if kind == "b32" else f"%h{i}" for i in range(count)
    )
    swapped = ", ".join(reversed(registers.split(", ")))
    body = f"""mul.wide.u32 %y0, %t, {size}; add.u64 %y1, %in, %y0; add.u64 %y0, %out, %y0; mul.lo.u32 %x0, %t, {size};
    add.u32 %x0, %sm, %x0; ld.global.nc.v{count}.{kind} {{{registers}}}, [%y1];
    st.shared.v{count}.{kind} [%x0], {{{swapped}}}; ld.shared.v{count}.{kind} {{{registers}}}, [%x0];
    st.global.v{count}.{kind} [%y0], {{{registers}}};"""
    data = np.random.default_rng(14).integers(0, 256, 64 * size).astype(np.uint8).view(np.uint32)
    arrays = {"in": data, "out": np.zeros_like(data)}
    return Case(f"ldst.v{count}.{kind}", program(body), arrays, ("out",), 64, shared=2048)


QUALIFIERS = """mul.wide.u32 %y0, %t, 4; add.u64 %y0, %out, %y0; add.u64 %y1, %y0, 256;
st.global.wt.b32 [%y0], %r0; ld.volatile.global.b32 %x0, [%y0]; st.volatile.global.b32 [%y0], %x0;
st.relaxed.gpu.global.b32 [%y0], %x0; ld.relaxed.gpu.global.b32 %x1, [%y0]; st.release.cta.global.b32 [%y1], %x1;
ld.acquire.cta.global.b32 %o0, [%y1]; ld.global.cg.b32 %o1, [%y1]; ld.global.cv.b32 %o2, [%y1];
ld.weak.global.L1::evict_last.L2::128B.b32 %o3, [%y1];"""
GENERIC = """shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; cvt.u64.u32 %y0, %x0; cvta.shared.u64 %y0, %y0;
st.b32 [%y0], %r0; ld.b32 %o0, [%y0]; cvta.to.shared.u64 %y1, %y0; cvt.u32.u64 %x1, %y1; ld.shared.b32 %o1, [%x1];
mul.wide.u32 %y2, %t, 4; ld.param.u64 %y3, [p_in]; add.u64 %y2, %y3, %y2; ld.b32 %o2, [%y2]; sub.u32 %o3, %x1, %x0;"""
SPACES = """cvt.u64.u32 %y0, %sm; cvta.shared.u64 %y0, %y0; isspacep.shared %s0, %y0; selp.b32 %o0, 1, 0, %s0;
isspacep.global %s0, %in; selp.b32 %o1, 1, 0, %s0; isspacep.local %s0, %in; selp.b32 %o2, 1, 0, %s0;
isspacep.shared::cluster %s0, %y0; selp.b32 %o3, 1, 0, %s0;"""
SPECIALS = """mov.u32 %x0, %laneid; mov.u32 %x1, %lanemask_lt; mov.u32 %x2, %lanemask_ge; mov.u32 %x3, %lanemask_eq;
add.u32 %o0, %x0, %x1; xor.b32 %o1, %x2, %x3; mov.u32 %x4, %lanemask_le; mov.u32 %x5, %lanemask_gt;
sub.u32 %o2, %x4, %x5; mov.u32 %x6, %ntid.x; mov.u32 %x7, %nctaid.x; mov.u32 %x8, %ctaid.y; mov.u32 %x9, %tid.z;
mad.lo.u32 %o3, %x6, 100, %x7; add.u32 %o3, %o3, %x8; add.u32 %o3, %o3, %x9; mov.u32 %x10, WARP_SZ;
mad.lo.u32 %o3, %x10, 100000, %o3; mov.u32 %x11, %dynamic_smem_size; add.u32 %o2, %o2, %x11;"""
BRANCHES = """and.b32 %x0, %r0, 7; mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;
LOOP: setp.eq.u32 %s0, %x0, 0; @%s0 bra OUT;
and.b32 %x1, %x0, 1; setp.eq.u32 %s1, %x1, 1; @%s1 bra ODD_; add.u32 %o0, %o0, %x0; bra NEXT;
ODD_: add.u32 %o1, %o1, %x0; setp.gt.u32 %s2, %x0, 4; @%s2 bra NEXT; add.u32 %o2, %o2, 1;
NEXT: sub.u32 %x0, %x0, 1; bra LOOP;
OUT: activemask.b32 %x5; vote.sync.ballot.b32 %o3, %p, 0xffffffff;"""
BRX = """and.b32 %x0, %r0, 3; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0; TARGETS: .branchtargets A0, A1, A2, A3;
brx.idx %x0, TARGETS; A0: mov.b32 %o0, 10; bra END; A1: mov.b32 %o0, 11; bra END; A2: mov.b32 %o0, 12; bra END;
A3: mov.b32 %o0, 13; END:"""
MOVES = """mov.b32 {%h0, %h1}, %r0; mov.b32 %o0, {%h1, %h0}; mov.b64 %y0, {%r0, %o0}; mov.b64 {%o1, %o2}, %y0;
mov.b32 {%h2, _}, %o0; cvt.u32.u16 %o3, %h2;"""
EXIT = """mov.b32 %o0, 1; mov.b32 %o1, 2; mov.b32 %o2, 3; mov.b32 %o3, 4; and.b32 %x0, %r0, 1;
setp.eq.u32 %s0, %x0, 1; @%s0 exit; mov.b32 %o1, 5;"""
CONSTANTS = """ld.global.b32 %x0, [bytes+4]; ld.const.b32 %x1, [fixed]; add.u32 %o0, %x0, %x1;
mov.f32 %f0, 0f3FC00000; mov.b32 %o1, %f0; mov.b32 %o2, 0x7fffffff; mov.f64 %d0, 2.5; cvt.rn.f32.f64 %f1, %d0;
mov.b32 %o3, %f1;"""
PAIRS = """lop3.b32 %o0, %r0, %t, %n, 0x1e; setp.lt.u32 %s2, %t, 9; lop3.or.b32 %o1|%s0, %r0, %t, %n, 0x80, %s2;
selp.b32 %x0, 1, 0, %s0; setp.gt.u32 %s0|%s1, %r0, 0x40000000; selp.b32 %o2, 5, 6, %s0; selp.b32 %x1, 7, 8, %s1;
mad.lo.u32 %o3, %x0, 100, %x1; lop3.and.b32 _|%s3, %r0, %t, %n, 0x80, %s2; selp.b32 %x2, 1000, 0, %s3;
add.u32 %o3, %o3, %x2; setp.lt.and.s32 %s4|%s5, %r0, 5, %s2; selp.b32 %x3, 10000, 0, %s4; add.u32 %o3, %o3, %x3;
selp.b32 %x3, 50000, 0, %s5; add.u32 %o3, %o3, %x3;"""
CARRY = """add.cc.u32 %o0, %r0, %r0; addc.cc.u32 %o1, %r0, 7; addc.u32 %o2, 0, 0; sub.cc.u32 %x0, %r0, 9;
subc.u32 %o3, %r0, %x0;"""


def clusters() -> Case:
    """Special registers of clusters."""
    body = """mov.u32 %x0, %cluster_ctarank; mov.u32 %x1, %cluster_nctarank; mov.u32 %x2, %clusterid.x;
    mov.u32 %x3, %nclusterid.x; mov.u32 %x4, %cluster_ctaid.x; mov.u32 %x5, %ctaid.x; mul.lo.u32 %x0, %x0, 10;
    add.u32 %x0, %x0, %x1; mad.lo.u32 %x0, %x0, 10, %x2; mad.lo.u32 %x0, %x0, 10, %x3;
    mad.lo.u32 %x0, %x0, 10, %x4; mad.lo.u32 %x7, %x5, %n, %t; mul.wide.u32 %y0, %x7, 4; add.u64 %y0, %out, %y0;
    st.global.u32 [%y0], %x0;"""
    arrays = {"in": np.zeros(4, np.uint32), "out": np.zeros(128, np.uint32)}
    return Case("specials.cluster", program(body), arrays, ("out",), 32, grid=4, cluster=2)
