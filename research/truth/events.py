"""The PTX text of each kind of event. In it, `@@` is replaced by the predicate of the participating lanes."""

from __future__ import annotations

from research.truth.model import BARS, FLAGS, FULL, SLOT, SLOTS, TILE, TILES, Op, Program

BAR_AT = 4 * (SLOTS * SLOT + TILES * TILE)  # bytes from the start of the shared buffer
FLAG_AT = BAR_AT + 8 * BARS
ADDRESS_AT = FLAG_AT + 4 * FLAGS  # where tcgen05.alloc leaves its address
SHARED = ADDRESS_AT + 64
RESULTS = 4096  # words of the output for the sums that threads read; global slots follow
TMEM_COLUMNS = 128
ORIGIN = 1024  # window offset of a kernel's first 1024-byte aligned shared buffer


def choose(program: Program, lanes: int) -> str:
    """PTX that sets %me if this lane is in the mask."""
    if lanes == 1 and program.elect:
        return "elect.sync _|%me, 0xffffffff;"
    if lanes & lanes - 1 == 0:
        return f"setp.eq.u32 %me, %lane, {lanes.bit_length() - 1};"
    return f"mov.b32 %r9, {lanes:#x}; shr.u32 %r9, %r9, %lane; and.b32 %r9, %r9, 1; setp.ne.u32 %me, %r9, 0;"


def place_of(op: Op) -> tuple[str, str, str]:
    """(setup, state space, address) of the word that each lane touches."""
    a = op.a
    if a["space"] == "g":
        return f"cvt.u64.u32 %y0, %{a['at']}; add.u64 %y0, %gs, %y0;", "global", f"%y0+{4 * a['slot'] * SLOT}"
    setup = f"add.u32 %r1, %sm, %{a['at']};"
    if a.get("remote"):
        setup += f" mapa.shared::cluster.u32 %r1, %r1, {a['rank']};"
    return setup, "shared::cluster" if a.get("remote") else "shared", f"%r1+{4 * a['slot'] * SLOT}"


def _st(program, op):
    setup, space, address = place_of(op)
    value = f"mov.b32 %r0, {op.id * 64};" + ("" if op.a["at"] == "one" else " add.u32 %r0, %r0, %lane;")
    return f"{setup} {value} @@ st.{space}.u32 [{address}], %r0;"


def _ld(program, op):
    setup, space, address = place_of(op)
    return f"{setup} mov.b32 %r0, 0; @@ ld.{space}.u32 %r0, [{address}]; @@ mad.lo.u32 %acc, %acc, 31, %r0;"


def _red(program, op):
    setup, space, address = place_of(op)
    return f"{setup} @@ red.relaxed.gpu.{space}.add.u32 [{address}], {op.id};"


def flag_place_of(op: Op) -> tuple[str, str, str]:
    a = op.a
    if a["space"] == "g":
        return "", "global", f"%flag+{4 * (a['rank'] * FLAGS + a['flag'])}"
    at = FLAG_AT + 4 * a["flag"]
    if a.get("remote"):
        setup = f"add.u32 %r1, %sm, {at}; mapa.shared::cluster.u32 %r1, %r1, {a['rank']};"
        return setup, "shared::cluster", "%r1"
    return "", "shared", f"%sm+{at}"


def _flag_set(program, op):
    setup, space, address = flag_place_of(op)
    sem = "" if op.a["sem"] == "weak" else f".{op.a['sem']}.{op.a['scope']}"
    if op.a["rmw"]:
        return f"{setup} @@ red{sem or '.relaxed.gpu'}.{space}.add.u32 [{address}], 1;"
    return f"{setup} @@ st{sem}.{space}.u32 [{address}], 1;"


def _flag_wait(program, op):
    setup, space, address = flag_place_of(op)
    sem = "" if op.a["sem"] == "weak" else f".{op.a['sem']}.{op.a['scope']}"
    load = f"ld{sem}.{space}.u32 %r0, [{address}];"
    again = f"setp.lt.u32 %p, %r0, {op.a['need']}; @%p nanosleep.u32 100;\n@%p bra LOOP{op.id};"
    return f"{setup}\nLOOP{op.id}: {load} {again}"


def _fence(program, op):
    return f"@@ fence.acq_rel.{op.a['scope']};"


def _fence_proxy(program, op):
    return "@@ fence.proxy.async" + {"all": "", "s": ".shared::cta", "g": ".global"}[op.a["space"]] + ";"


def _bar_sync(program, op):
    return f"{'barrier' if op.a.get('loose') else 'bar'}.sync {op.a['id']}, {op.a['count']};"


def _bar_arrive(program, op):
    return f"{'barrier' if op.a.get('loose') else 'bar'}.arrive {op.a['id']}, {op.a['count']};"


def _warp_sync(program, op):
    if op.lanes == FULL:
        return "bar.warp.sync 0xffffffff;"
    chosen = choose(Program(1, 1, [], {}), op.lanes)
    return f"{chosen} @!%me bra S{op.id}; bar.warp.sync {op.lanes:#x};\nS{op.id}:"


def _cl_arrive(program, op):
    return f"barrier.cluster.arrive{'.relaxed' if op.a['sem'] == 'relaxed' else ''}.aligned;"


def _cl_wait(program, op):
    return "barrier.cluster.wait.aligned;"


# ---- mbarriers and copies ----


def bar_of(op: Op) -> tuple[str, str, str]:
    """(setup, state space, address) of the event's mbarrier."""
    rank, index = op.a["bar"]
    setup = f"add.u32 %r2, %sm, {BAR_AT + 8 * index};"
    if op.a.get("remote"):
        return f"{setup} mapa.shared::cluster.u32 %r2, %r2, {rank};", "shared::cluster", "%r2"
    return setup, "shared::cta", "%r2"


def _arrive(program, op):
    setup, space, address = bar_of(op)
    wide = op.a.get("wide") or op.a.get("remote") or op.a["sem"] == "relaxed"
    sem = f".{op.a['sem']}.{'cluster' if op.a.get('wide') or op.a.get('remote') else 'cta'}" if wide else ""
    return f"{setup} @@ mbarrier.arrive{sem}.{space}.b64 _, [{address}];"


def _expect(program, op):
    setup, space, address = bar_of(op)
    if op.a["arrive"]:
        return f"{setup} @@ mbarrier.arrive.expect_tx.{space}.b64 _, [{address}], {op.a['bytes']};"
    return f"{setup} @@ mbarrier.expect_tx.relaxed.cta.{space}.b64 [{address}], {op.a['bytes']};"


def _wait(program, op):
    setup, _, address = bar_of(op)
    sem = ".acquire.cluster" if op.a.get("wide") else ""
    test = f"mbarrier.{op.a.get('test', 'try_wait')}.parity{sem}.shared::cta.b64"
    return f"{setup}\nLOOP{op.id}: {test} %p, [{address}], {op.a['parity']}; @!%p bra LOOP{op.id};"


def _bulk_load(program, op):
    a = op.a
    space, _, first = a["source"]
    setup, _, address = bar_of(op)
    setup += f" add.u32 %r3, %sm, {4 * a['slot'] * SLOT};"
    if a.get("remote"):
        setup += f" mapa.shared::cluster.u32 %r3, %r3, {a['rank']};"
    if space == "s":
        return (
            f"{setup} add.u32 %r4, %sm, {4 * first}; "
            "@@ cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
            f"[%r3], [%r4], {4 * a['words']}, [{address}];"
        )
    if a.get("tensor"):
        return _tensor_load(a, setup, address, first)
    base = "%in" if space == "in" else "%gs"
    return (
        f"{setup} add.u64 %y1, {base}, {4 * first}; "
        f"@@ cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%y1], "
        f"{4 * a['words']}, [{address}];"
    )


def _tensor_load(a: dict, setup: str, address: str, first: int) -> str:
    """The same words loaded through a one-dimensional tensor map; `ranks` makes it a multicast."""
    ranks = a.get("ranks") or ()
    form = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    mask = f", {sum(1 << r for r in ranks)}" if ranks else ""
    return (
        f"{setup} mov.b64 %y1, pmap{a['words']}; cvta.param.u64 %y1, %y1; mov.b32 %r4, {first}; "
        f"@@ {form}{'.multicast::cluster' if ranks else ''} [%r3], [%y1, {{%r4}}], [{address}]{mask};"
    )


def _bulk_store(program, op):
    a = op.a
    return (
        f"add.u32 %r3, %sm, {4 * a['slot'] * SLOT}; add.u64 %y1, %gs, {4 * a['to'] * SLOT}; "
        f"@@ cp.async.bulk.global.shared::cta.bulk_group [%y1], [%r3], {4 * a['words']};"
    )


def _bulk_commit(program, op):
    return "@@ cp.async.bulk.commit_group;"


def _bulk_wait(program, op):
    return f"@@ cp.async.bulk.wait_group{'.read' if op.a['read'] else ''} {op.a['n']};"


def _cp_async(program, op):
    return (
        f"add.u32 %r3, %sm, %own; cvt.u64.u32 %y1, %own; add.u64 %y1, %gs, %y1; "
        f"@@ cp.async.ca.shared.global [%r3+{4 * op.a['slot'] * SLOT}], [%y1+{4 * op.a['from'] * SLOT}], 4;"
    )


def _cp_commit(program, op):
    return "@@ cp.async.commit_group;"


def _cp_wait(program, op):
    return "@@ cp.async.wait_all;" if op.a["n"] < 0 else f"@@ cp.async.wait_group {op.a['n']};"


def _cp_arrive(program, op):
    setup, _, address = bar_of(op)
    noinc = "" if op.a.get("inc") else ".noinc"
    return f"{setup} @@ cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [{address}];"


# ---- tensor core ----


def _tfence(program, op):
    return f"@@ tcgen05.fence::{'after' if op.a['after'] else 'before'}_thread_sync;"


def _tmem_ld(program, op):
    return f"add.u32 %r5, %tmem, {op.a['column']}; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%tl}}, [%r5];"


def _tmem_st(program, op):
    return (
        f"add.u32 %r5, %tmem, {op.a['column']}; add.u32 %r6, %lane, {op.id * 64}; "
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r6};"
    )


def _wait_ld(program, op):
    return "tcgen05.wait::ld.sync.aligned; mad.lo.u32 %acc, %acc, 31, %tl;"


def _wait_st(program, op):
    return "tcgen05.wait::st.sync.aligned;"


def descriptor(tile: int) -> int:
    """K-major, no swizzle: core matrices of 128 B, 128 B apart along K and 256 B along M (9.7.16.4.1)."""
    start = ORIGIN + 4 * (SLOTS * SLOT + tile * TILE)
    return start >> 4 | (128 >> 4) << 16 | (256 >> 4) << 32


def _mma(program, op):
    shape = 1 << 4 | 2 << 17 | 8 << 24  # float32 result, N = 16, M = 128 (9.7.16.4.2)
    return (
        f"mov.b64 %y2, {descriptor(op.a['tile']) | 1 << 46}; mov.u32 %r5, {shape}; "
        f"add.u32 %r6, %tmem, {op.a['column']}; "
        "@@ tcgen05.mma.cta_group::1.kind::f16 [%r6], %y2, %y2, %r5, %never;"
    )


def _tc_commit(program, op):
    setup, _, address = bar_of(op)
    form = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
    return f"{setup} @@ {form} [{address}];"


def _wgmma(program, op):
    return (
        f"mov.b64 %y2, {descriptor(op.a['tile'])}; wgmma.fence.sync.aligned; "
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, "
        "%y2, %y2, %never, 1, 1, 0, 0;"
    )


def _wgmma_commit(program, op):
    return "wgmma.commit_group.sync.aligned;"


def _wgmma_wait(program, op):
    read = "mov.b32 %r0, %f0; mad.lo.u32 %acc, %acc, 31, %r0;" if op.a["n"] == 0 else ""
    return f"wgmma.wait_group.sync.aligned {op.a['n']}; {read}"


TEXTS = {
    "st": _st,
    "ld": _ld,
    "red": _red,
    "flag_set": _flag_set,
    "flag_wait": _flag_wait,
    "fence": _fence,
    "fence_proxy": _fence_proxy,
    "bar_sync": _bar_sync,
    "bar_arrive": _bar_arrive,
    "warp_sync": _warp_sync,
    "cl_arrive": _cl_arrive,
    "cl_wait": _cl_wait,
    "arrive": _arrive,
    "expect": _expect,
    "wait": _wait,
    "bulk_load": _bulk_load,
    "bulk_store": _bulk_store,
    "bulk_commit": _bulk_commit,
    "bulk_wait": _bulk_wait,
    "cp_async": _cp_async,
    "cp_commit": _cp_commit,
    "cp_wait": _cp_wait,
    "cp_arrive": _cp_arrive,
    "tfence": _tfence,
    "tmem_ld": _tmem_ld,
    "tmem_st": _tmem_st,
    "wait_ld": _wait_ld,
    "wait_st": _wait_st,
    "mma": _mma,
    "tc_commit": _tc_commit,
    "wgmma": _wgmma,
    "wgmma_commit": _wgmma_commit,
    "wgmma_wait": _wgmma_wait,
}
