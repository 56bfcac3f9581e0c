"""Cases of lanes and threads that act together: shuffles, votes, reductions, barriers, fences and hints."""

from __future__ import annotations

import numpy as np

from research.chip.case import Case, names, program, rows


def cases() -> list[Case]:
    found = [
        warp(
            f"shfl.{mode}.{i}",
            f"shfl.sync.{mode}.b32 %o0|%s0, %r0, {b}, {c}, 0xffffffff; selp.b32 %o1, 1, 0, %s0;",
        )
        for mode, clamps in SHUFFLES.items()
        for i, (b, c) in enumerate(clamps)
    ]
    found += [
        warp(
            f"vote.{m}",
            f"{BIT} vote.sync.{m}.pred %s1, {s}%s0, 0xffffffff; selp.b32 %o0, 1, 0, %s1; mov.b32 %o1, 0;",
        )
        for m in ("all", "any", "uni")
        for s in ("",)
    ]
    found += [
        warp(
            "vote.ballot",
            f"{BIT} vote.sync.ballot.b32 %o0, %s0, 0xffffffff; vote.sync.ballot.b32 %o1, !%s0, 0xffffffff;",
        )
    ]
    found += [warp(f"match.{k}", MATCH[k]) for k in MATCH]
    found += [
        warp(
            f"redux.{op}",
            f"redux.sync.{op} %o0, %r0, 0xffffffff; and.b32 %x0, %t, 1; {ODD}{REDUX.format(op)}",
        )
        for op in (
            "add.u32",
            "add.s32",
            "min.u32",
            "min.s32",
            "max.u32",
            "max.s32",
            "and.b32",
            "or.b32",
            "xor.b32",
        )
    ]
    found += [warp("elect", ELECT), warp("activemask", ACTIVE), warp("bar.warp", BARWARP)]
    found += [
        block("bar.sync", BAR),
        block("bar.arrive", ARRIVE),
        block("barrier.cta", BAR.replace("bar.sync 0", "barrier.sync 3")),
    ]
    found += [block(f"{op}.sync", BAR.replace("bar.sync", f"{op}.sync")) for op in OF_CTA]
    found += [block(f"{op}.arrive", ARRIVE.replace("bar.", f"{op}.")) for op in ("barrier", *OF_CTA)]
    found += [block(f"bar.red.{m}", RED.format(op="bar.red", mode=m)) for m in ("and", "or")]
    found += [block(f"{op}.red.popc", POPC.format(op=f"{op}.red")) for op in ("bar", "barrier", *OF_CTA)]
    found += [block(f"{op}.red.and", RED.format(op=f"{op}.red", mode="and")) for op in ("barrier", *OF_CTA)]
    found += [block("mbarrier", MBARRIER), block("mbarrier.tx", TRANSACTIONS), block("mbarrier.drop", DROP)]
    found += [
        block("mbarrier.test", TEST),
        block("fences", FENCES),
        block("hints", HINTS),
        block("setmaxnreg", REGISTERS),
    ]
    return found


SHUFFLES = {
    "up": [("3", "0"), ("1", "0x1800"), ("%x0", "0")],
    "down": [("3", "31"), ("1", "0x181f"), ("%x0", "31")],
    "bfly": [("1", "31"), ("16", "31"), ("5", "0x181f")],
    "idx": [("7", "31"), ("%x0", "31"), ("3", "0x181f"), ("9", "0x1807")],
}
BIT = "and.b32 %x0, %r0, 1; setp.eq.u32 %s0, %x0, 1;"
MATCH = {
    "any": "and.b32 %x0, %r0, 3; match.any.sync.b32 %o0, %x0, 0xffffffff; mov.b32 %o1, 0;",
    "any64": "and.b32 %x0, %r0, 3; mov.b64 %y0, {%x0, %x0}; match.any.sync.b64 %o0, %y0, 0xffffffff; mov.b32 %o1, 0;",
    "all": "mov.b32 %x0, 5; match.all.sync.b32 %o0|%s0, %x0, 0xffffffff; selp.b32 %o1, 1, 0, %s0;",
    "all.not": "match.all.sync.b32 %o0|%s0, %r0, 0xffffffff; selp.b32 %o1, 1, 0, %s0;",
}
ODD = "setp.eq.u32 %s0, %x0, 1; mov.b32 %o1, 0;"
REDUX = "@%s0 redux.sync.{} %o1, %r0, 0xaaaaaaaa;"
ELECT = """elect.sync %x0|%s0, 0xffffffff; vote.sync.ballot.b32 %x1, %s0, 0xffffffff; popc.b32 %o0, %x1;
setp.eq.u32 %s1, %x0, %t; xor.pred %s1, %s1, %s0; selp.b32 %o1, 1, 0, %s1;"""  # whichever lane it is
ACTIVE = "activemask.b32 %o0; setp.lt.u32 %s0, %t, 5; mov.b32 %o1, 7; @%s0 activemask.b32 %o1;"
OF_CTA = ("bar.cta", "barrier.cta")
BARWARP = """shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; st.shared.b32 [%x0], %r0; bar.warp.sync 0xffffffff;
xor.b32 %x1, %t, 5; shl.b32 %x1, %x1, 2; add.u32 %x1, %sm, %x1; ld.shared.b32 %o0, [%x1]; mov.b32 %o1, 0;"""
WORD = "shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; st.shared.b32 [%x0], %r0;"
OTHER = "xor.b32 %x1, %t, 64; shl.b32 %x1, %x1, 2; add.u32 %x1, %sm, %x1; ld.shared.b32 %o0, [%x1]; mov.b32 %o1, 0;"
BAR = f"{WORD} bar.sync 0; {OTHER}"
ARRIVE = f"""mov.b32 %o0, 0; mov.b32 %o1, 0; setp.lt.u32 %s0, %t, 64; @%s0 bra GIVE;
bar.sync 1, 128; {OTHER} bra END;
GIVE: {WORD} bar.arrive 1, 128;
END:"""
RED = """and.b32 %x0, %r0, 1; setp.eq.u32 %s0, %x0, 1; {op}.{mode}.pred %s1, 2, %s0; selp.b32 %o0, 1, 0, %s1;
{op}.{mode}.pred %s1, 2, 128, %p; selp.b32 %o1, 1, 0, %s1;"""
POPC = """and.b32 %x0, %r0, 1; setp.eq.u32 %s0, %x0, 1; {op}.popc.u32 %o0, 2, %s0; {op}.popc.u32 %o1, 2, 128, !%s0;"""
INIT = "add.u32 %x2, %sm, 2048; setp.eq.u32 %s0, %t, 0; @%s0 mbarrier.init.shared.b64 [%x2], {}; bar.sync 0;"
SPIN = "{0}: mbarrier.try_wait.parity.shared.b64 %s1, [%x2], {1}; @!%s1 bra {0};"
MBARRIER = f"""{INIT.format(128)} {WORD} mbarrier.arrive.shared.b64 %y0, [%x2];
W: mbarrier.test_wait.shared.b64 %s1, [%x2], %y0; @!%s1 bra W; {OTHER}
mbarrier.arrive.shared.b64 %y0, [%x2]; V: mbarrier.try_wait.shared.b64 %s1, [%x2], %y0; @!%s1 bra V;
bar.sync 0; @%s0 mbarrier.inval.shared.b64 [%x2];"""
TRANSACTIONS = f"""{INIT.format(128)} {WORD}
@%s0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%x2], 64;
@%s0 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%x2], 64;
mbarrier.arrive.release.cta.shared::cta.b64 %y0, [%x2], 1;
{SPIN.format("W", 0)} {OTHER}"""
DROP = f"""{INIT.format(128)} setp.lt.u32 %s2, %t, 64; @%s2 bra LEAVE;
mbarrier.arrive.shared.b64 _, [%x2]; bra JOINED;
LEAVE: mbarrier.arrive_drop.shared.b64 _, [%x2];
JOINED: {SPIN.format("W", 0)} bar.sync 0;
mov.b32 %o1, 0; mov.b32 %o0, 3; @!%s2 mbarrier.arrive.shared.b64 _, [%x2];
{SPIN.format("V", 1)} mov.b32 %o1, 9;"""
TEST = f"""{INIT.format(129)} mbarrier.test_wait.parity.shared.b64 %s1, [%x2], 1; selp.b32 %o0, 1, 0, %s1;
mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %y0, [%x2], 1;
mbarrier.test_wait.parity.shared.b64 %s1, [%x2], 0; selp.b32 %o1, 1, 0, %s1; bar.sync 0;
@%s0 mbarrier.arrive.shared.b64 %y0, [%x2]; {SPIN.format("W", 0)} @%s0 mbarrier.pending_count.b64 %o1, %y0;"""
FENCES = f"""{WORD} fence.acq_rel.cta; fence.sc.gpu; membar.gl; membar.cta; fence.acq_rel.cluster;
fence.proxy.async; fence.proxy.async.global; fence.proxy.async.shared::cta; fence.proxy.alias;
fence.mbarrier_init.release.cluster; bar.sync 0; {OTHER}"""
HINTS = f"""{WORD} nanosleep.u32 20; prefetch.global.L2 [%in]; prefetchu.L1 [%in]; pmevent 1;
griddepcontrol.launch_dependents; griddepcontrol.wait;
createpolicy.fractional.L2::evict_first.b64 %y0, 1.0; ld.param.u64 %y1, [p_in]; applypriority.global.L2::evict_normal [%y1], 128;
cp.async.bulk.prefetch.L2.global [%y1], 64; ld.param.u64 %y1, [p_out]; discard.global.L2 [%y1], 128;
bar.sync 0; {OTHER}"""
REGISTERS = f"{WORD} bar.sync 0; {OTHER} setmaxnreg.dec.sync.aligned.u32 64;"


def warp(name: str, text: str) -> Case:
    """%r0 a random word, %x0 lane 5 t modulo 37; results %o0, %o1."""
    start = "mul.lo.u32 %x0, %t, 5; rem.u32 %x0, %x0, 37;\n" if "%x0, 0" not in text[:9] else ""
    return _case(name, start + text, 32, "sm_90" if "elect" in name else "sm_80")


def block(name: str, text: str) -> Case:
    return _case(name, text, 128, "sm_90a")


def _case(name: str, text: str, threads: int, arch: str) -> Case:
    data = np.random.default_rng(9).integers(0, 2**32, (1, threads), dtype=np.uint32)
    body = rows(["%r0"]) + text + "\n" + rows(names("o", 2), load=False)
    ptx = program(body, target=arch)
    if name == "setmaxnreg":
        ptx = ptx.replace(") {", ")\n.maxntid 128, 1, 1 .minnctapersm 1 .maxnreg 96 {")
    arrays = {"in": data, "out": np.zeros((2, threads), np.uint32)}
    return Case(name, ptx, arrays, ("out",), threads, shared=4096, arch=arch)
