"""A program as PTX text. Each event comes after a `// @src ID` mark, so that findings name events."""

from __future__ import annotations

from research.truth.events import (
    ADDRESS_AT,
    BAR_AT,
    FLAG_AT,
    RESULTS,
    SHARED,
    TEXTS,
    TMEM_COLUMNS,
    choose,
)
from research.truth.model import FULL, SLOT, SLOTS, TILE, Op, Program

HEAD = """.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pflag,
    .param .align 64 .b8 pmap32[128], .param .align 64 .b8 pmap64[128]) {{
.reg .b32 %t, %lane, %rank, %gw, %sm, %acc, %r<12>, %own, %next, %flip, %one, %tmem, %tl, %ret;
.reg .b64 %in, %out, %gs, %flag, %y<8>, %tok; .reg .f32 %f<4>; .reg .pred %me, %p, %q, %never;
.shared .align 1024 .b8 buffer[{shared}];
mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; mov.u32 %rank, %cluster_ctarank; mov.u32 %sm, buffer;
shr.u32 %gw, %t, 5; mad.lo.u32 %gw, %rank, {warps}, %gw; mov.u32 %acc, 1; mov.u32 %tl, 0;
shl.b32 %own, %lane, 2; xor.b32 %next, %own, 4; sub.u32 %flip, 124, %own; mov.u32 %one, 0;
setp.ne.u32 %never, %t, %t; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
ld.param.u64 %in, [pin]; cvta.to.global.u64 %in, %in;
ld.param.u64 %out, [pout]; cvta.to.global.u64 %out, %out;
ld.param.u64 %flag, [pflag]; cvta.to.global.u64 %flag, %flag; add.u64 %gs, %out, {results};
shl.b32 %r1, %t, 2; add.u32 %r1, %sm, %r1; shl.b32 %r0, %t, 2;
ZERO: st.shared.u32 [%r1], 0; add.u32 %r1, %r1, {step}; add.u32 %r0, %r0, {step};
setp.lt.u32 %p, %r0, {slots}; @%p bra ZERO;
"""
FOOT = """
mad.lo.u32 %r0, %rank, {threads}, %t; mul.wide.u32 %y0, %r0, 4; add.u64 %y0, %out, %y0;
st.global.u32 [%y0], %acc;
ret;
"""


def ptx_of(program: Program) -> str:
    warps = program.warps
    parts = [
        HEAD.format(
            target=program.target,
            shared=SHARED,
            warps=warps,
            results=4 * RESULTS,
            step=128 * warps,
            slots=4 * _extent(program),
        ),
        _prologue(program),
    ]
    for number, code in enumerate(program.code):
        body = "\n".join(_event(program, op) for op in code)
        parts.append(f"setp.ne.u32 %p, %gw, {number}; @%p bra W{number};\n{body}\nW{number}:")
    parts += [_epilogue(program), FOOT.format(threads=32 * warps), _shared_blocks(program), "}"]
    return "\n".join(parts)


def _blocks(program: Program) -> dict:
    """Block number -> the events that form one instruction of several warps (wgmma, 9.7.15: `.aligned`)."""
    found: dict = {}
    for op in program.ops():
        if "block" in op.a:
            found.setdefault(op.a["block"], []).append(op)
    return found


def _shared_blocks(program: Program) -> str:
    parts = []
    for block, ops in _blocks(program).items():
        back = ", ".join(f"R{block}_{k}" for k in range(len(ops)))
        text = TEXTS[ops[0].kind](program, ops[0])
        parts.append(
            f"T{block}: .branchtargets {back};\nG{block}:\n// @src {ops[0].id}\n{text}\n"
            f"brx.idx %ret, T{block};"
        )
    return "\n".join(parts)


def _uses_tmem(program: Program) -> bool:
    return any(op.kind in ("mma", "tmem_ld", "tmem_st") for op in program.ops())


def _extent(program: Program) -> int:
    """The number of words of shared memory that are zeroed at the start: all that events name."""
    slots = [op.a["slot"] + max(op.a.get("words", 0) // SLOT, 1) for op in program.ops() if "slot" in op.a]
    tiles = [op.a["tile"] + 1 for op in program.ops() if "tile" in op.a]
    sources = [op.a["source"] for op in program.ops() if op.a.get("source", "g")[0] == "s"]
    ends = [*(s * SLOT for s in slots), *(SLOTS * SLOT + t * TILE for t in tiles)]
    return max([SLOT, *ends, *(word + 2 * SLOT for _, _, word in sources)])


def _prologue(program: Program) -> str:
    lines = ["// @src 900000", "setp.eq.u32 %p, %t, 0;"]
    for (rank, index), count in program.bars.items():
        lines.append(f"setp.eq.and.u32 %q, %rank, {rank}, %p;")
        lines.append(f"@%q mbarrier.init.shared::cta.b64 [%sm+{BAR_AT + 8 * index}], {count};")
    flags = sorted({op.a["flag"] for op in program.ops() if "flag" in op.a and op.a["space"] == "s"})
    lines += [f"@%p st.shared.u32 [%sm+{FLAG_AT + 4 * i}], 0;" for i in flags]
    if _uses_tmem(program):
        lines += [
            "setp.lt.u32 %q, %t, 32;",
            f"add.u32 %r2, %sm, {ADDRESS_AT};",
            f"@%q tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], {TMEM_COLUMNS};",
        ]
    lines += ["fence.mbarrier_init.release.cluster;", "fence.proxy.async;", _everyone(program)]
    if _uses_tmem(program):
        lines += [f"ld.shared.u32 %tmem, [%sm+{ADDRESS_AT}];", "tcgen05.fence::after_thread_sync;"]
    return "\n".join(lines)


def _everyone(program: Program) -> str:
    cluster = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
    return cluster if program.ctas > 1 else "barrier.sync 0;"


def _epilogue(program: Program) -> str:
    lines = ["// @src 900001"]
    if _uses_tmem(program):
        lines.append("tcgen05.fence::before_thread_sync;")
    lines.append(_everyone(program))
    if _uses_tmem(program):
        lines += [
            "tcgen05.fence::after_thread_sync;",
            "setp.lt.u32 %q, %t, 32;",
            "@%q tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
            f"@%q tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, {TMEM_COLUMNS};",
        ]
    return "\n".join(lines)


# ---- events ----


def _event(program: Program, op: Op) -> str:
    mark = f"// @src {op.id}\n"
    if op.kind == "arms":
        return mark + _arms(program, op)
    if "block" in op.a:
        block = op.a["block"]
        place = _blocks(program)[block].index(op)
        return f"{mark}mov.u32 %ret, {place}; bra G{block};\nR{block}_{place}:"
    text = TEXTS[op.kind](program, op)
    if op.lanes == FULL or op.kind == "warp_sync":
        return mark + text.replace("@@ ", "").replace("@@", "")
    if "LOOP" in text:  # a loop of some lanes: the others skip it
        end = f"E{op.id}"
        return f"{mark}{choose(program, op.lanes)}\n@!%me bra {end};\n{text.replace('@@ ', '')}\n{end}:"
    return f"{mark}{choose(program, op.lanes)}\n{text.replace('@@', '@%me')}"


def _arms(program: Program, op: Op) -> str:
    (mask, first), (_, second) = op.arms
    plain = Program(program.warps, program.ctas, [], {}, program.target)  # no elect here: lanes are diverged
    a, b = ("\n".join(_event(plain, x) for x in arm) for arm in (first, second))
    return f"{choose(plain, mask)}\n@!%me bra A{op.id};\n{a}\nbra B{op.id};\nA{op.id}:\n{b}\nB{op.id}:"
