"""Truth table of threads and memory: barriers, collectives, atomics, bounds, clusters (PTX ISA 8, 9.7.13)."""

from __future__ import annotations

import numpy as np
import pytest
from truth import Rule, kept_and_broken, lines, wait
from warp_kernels import register_kernel, run_registers

WRITE, READ = "st.shared.u32 [%mine], %t;", "ld.shared.u32 %r0, [%other];"
RESULT = "st.global.u32 [%myout], %r0;"
EXCHANGE = (WRITE, "bar.sync 0;", READ, RESULT)
NEAR = "xor.b32 %x1, %t, 1; shl.b32 %x1, %x1, 2; add.u32 %x1, %sm, %x1;"  # the word of the next lane
WARP = (NEAR, WRITE, "bar.warp.sync 0xffffffff;", "ld.shared.u32 %r0, [%x1];", RESULT)
EARLY = ("uninitialized",)

BARRIERS = (
    Rule("barrier-between-write-and-read", lines(*EXCHANGE), ("bar.sync 0;", ""), "race", also=EARLY),
    Rule(
        "barrier-between-read-and-write",
        lines(*EXCHANGE, "bar.sync 1;", "st.shared.u32 [%mine], 5;"),
        ("bar.sync 1;", ""),
        "race",
    ),
    Rule(
        "barrier-of-both-warps",
        lines(*EXCHANGE).replace("bar.sync 0;", "barrier.sync 0, 64;"),
        ("barrier.sync 0, 64;", "barrier.sync 0, 32;"),
        "race",
        also=EARLY,
    ),
    Rule(
        "threads-counted",
        lines(*EXCHANGE).replace("bar.sync 0;", "bar.sync 0, 64;"),
        ("0, 64;", "0, 96;"),
        "deadlock",
    ),
    Rule(
        "aligned-barrier-by-whole-warps",
        lines(*EXCHANGE),
        ("bar.sync 0;", "@%lead bar.sync 0;"),
        "collective",
        also=("race", "uninitialized", "deadlock"),
    ),
    Rule(
        "barrier-reached-by-all",
        lines(*EXCHANGE),
        ("bar.sync 0;", "@%w0 bar.sync 0, 64;"),
        "deadlock",
        also=("race", "uninitialized"),
    ),
    Rule("warp-barrier", lines(*WARP), ("bar.warp.sync 0xffffffff;", ""), "race", also=EARLY),
    Rule(
        "warp-barrier-of-both-lanes",
        lines(*WARP),
        ("bar.warp.sync 0xffffffff;", "@!%lead bar.warp.sync 0xfffffffe;"),
        "race",
        also=("uninitialized", "collective"),
    ),
    Rule(
        "executing-lane-in-the-mask",
        lines(*WARP),
        ("0xffffffff", "0x7fffffff"),
        "collective",
        also=("race", "uninitialized", "deadlock"),
    ),
    Rule(
        "shuffle-by-all-named-lanes",
        lines("shfl.sync.bfly.b32 %r0, %t, 1, 31, 0xffffffff;", RESULT),
        ("shfl.sync", "@%lead shfl.sync"),
        "deadlock",
    ),
    Rule(
        "elect-by-all-named-lanes",
        lines("elect.sync _|%p, 0xffffffff;"),
        ("elect.sync", "@!%lead elect.sync"),
        "deadlock",
    ),
)

WORD = "ld.global.u32 %r0, [%myin];"
MEMORY = (
    Rule("load-in-bounds", lines(WORD), ("[%myin]", "[%myin+16384]"), "out-of-bounds"),
    Rule(
        "store-in-bounds",
        lines("st.global.u32 [%myout], %t;"),
        ("[%myout]", "[%myout+16384]"),
        "out-of-bounds",
    ),
    Rule("load-in-bounds-below", lines(WORD), ("[%myin]", "[%myin+-4]"), "out-of-bounds"),
    Rule("shared-in-bounds", lines(WRITE), ("[%mine]", "[%mine+32768]"), "out-of-bounds"),
    Rule("aligned", lines(WORD), ("[%myin]", "[%myin+2]"), "misaligned"),
    Rule(
        "vectors-aligned-as-a-whole",
        lines("ld.global.v2.u32 {%r0, %r1}, [%in];"),
        ("[%in]", "[%in+4]"),
        "misaligned",
    ),
    Rule("shared-aligned", lines(WRITE), ("[%mine]", "[%mine+1]"), "misaligned"),
    Rule(
        "shared-written-before-read",
        lines("// fill", *EXCHANGE[1:]).replace("// fill", WRITE),
        (WRITE, ""),
        "uninitialized",
        "review",
    ),
    Rule(
        "stored-register-set",
        lines("mov.u32 %r0, 5;", RESULT),
        ("mov.u32 %r0, 5;", ""),
        "uninitialized",
        words="1 of 1 registers that nothing has set: %r0",
    ),
    Rule(
        "stored-registers-set-before-they-are-copied",
        lines("mov.u32 %r1, %tid.x;", "mov.u32 %r0, %r1;", "st.global.v2.u32 [%out], {%r0, %r0};"),
        ("%r1, %tid.x", "%r2, %r3"),
        "uninitialized",
        words="2 of 2 registers",
        threads=1,
    ),
    Rule(
        "bulk-source-written",
        lines(
            WRITE,
            "fence.proxy.async.shared::cta;",
            "bar.sync 0;",
            "@%lead cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 256;",
            "@%lead cp.async.bulk.commit_group;",
            "@%lead cp.async.bulk.wait_group 0;",
        ),
        ("256;", "512;"),
        "uninitialized",
    ),
    Rule(
        "atomics-among-themselves",
        lines("red.global.add.u32 [%out], 1;"),
        ("red.global.add.u32 [%out], 1;", "st.global.u32 [%out], %t;"),
        "race",
    ),
    Rule(
        "shared-atomics-among-themselves",
        lines("@%lead st.shared.u32 [%sm], 0;", "bar.sync 0;", "atom.shared.add.u32 %r0, [%sm], 1;"),
        ("atom.shared.add.u32 %r0, [%sm], 1;", "ld.shared.u32 %r0, [%sm]; st.shared.u32 [%sm], %t;"),
        "race",
    ),
    Rule(
        "output-words-apart", lines("st.global.u32 [%myout], %t;"), ("[%myout], %t;", "[%out], %t;"), "race"
    ),
)

# CTA 0 writes a word and raises a flag; CTA 1 polls the flag and reads the word
NUMBER = "mov.u32 %x1, %ctaid.x; setp.eq.u32 %p, %x1, 0; setp.eq.and.u32 %q, %x1, 1, %lead;"
RAISE = "@%p st.global.release.gpu.u32 [%out+64], 1;"
POLL = (
    "POLL: @!%q bra PAST; ld.global.acquire.gpu.u32 %r0, [%out+64]; setp.ne.u32 %w1, %r0, 1; @%w1 bra POLL;"
)
PASS = (
    NUMBER,
    "and.pred %p, %p, %lead;",
    "@%p st.global.u32 [%out], 5;",
    RAISE,
    POLL,
    "ld.global.u32 %r1, [%out];",
    "PAST:",
)
FENCED = lines(
    *PASS[:3],
    "@%p fence.acq_rel.gpu; // raise",
    RAISE.replace("release", "relaxed"),
    POLL.replace("acquire", "relaxed"),
    "fence.acq_rel.gpu; // see",
    *PASS[5:],
)
GRID = {"ctas": 2}
UNRELEASED = GRID | {"words": "nothing releases the write before it"}
UNACQUIRED = GRID | {"words": "nothing acquires after it"}

FLAGS = (
    Rule("release-of-the-flag", lines(*PASS), (".release.", ".relaxed."), "race", **UNRELEASED),
    Rule("acquire-of-the-flag", lines(*PASS), (".acquire.", ".relaxed."), "race", **UNACQUIRED),
    Rule("fence-before-the-flag", FENCED, ("@%p fence.acq_rel.gpu; // raise", ""), "race", **UNRELEASED),
    Rule("fence-behind-the-flag", FENCED, ("fence.acq_rel.gpu; // see", ""), "race", **UNACQUIRED),
    Rule(
        "last-block-adds-up",  # each CTA writes a word; the last one to count reads them all
        lines(
            NUMBER,
            "mul.wide.u32 %y1, %x1, 4; add.u64 %y1, %out, %y1; @%lead st.global.u32 [%y1+64], 3;",
            "fence.acq_rel.gpu; bar.sync 0; // written",
            "@!%lead bra PAST; atom.global.add.u32 %r1, [%out], 1;",
            "setp.eq.u32 %p, %r1, 1; fence.acq_rel.gpu; @!%p bra PAST;",
            "ld.global.u32 %r2, [%out+64]; ld.global.u32 %r3, [%out+68];",
            "PAST:",
        ),
        ("fence.acq_rel.gpu; bar.sync 0; // written", "bar.sync 0;"),
        "race",
        **UNRELEASED,
    ),
)

MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PEER = "xor.b32 %x1, %rank, 1; mapa.shared::cluster.u32 %peer, %mine, %x1;"
RESULTS = "mul.wide.u32 %y1, %rank, 4096; add.u64 %y1, %myout, %y1; st.global.u32 [%y1], %r0;"
FETCH = "ld.shared::cluster.u32 %r0, [%peer];"
REMOTE = (PEER, WRITE, MEET + " // written", FETCH, MEET + " // read", RESULTS)
PAIR = {"cluster": 2}
SIGNAL_BOTH = (
    "@%lead mbarrier.init.shared.b64 [%bar], 1;",
    "fence.mbarrier_init.release.cluster; " + MEET,
    "setp.eq.u32 %p, %rank, 0; and.pred %p, %p, %lead; mov.u16 %both, 3;",
    "@%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
    "[%bar], %both;",
)

CLUSTERS = (
    Rule(
        "last-signal-of-a-peer-waited-for",
        lines(".reg .b16 %both;", *SIGNAL_BOTH, wait(0)),
        (wait(0), "// ends"),
        "cluster",
        words="ended",
        also=("async-pending",),
        **PAIR,
    ),
    Rule("peer-alive-while-read", lines(*REMOTE), (MEET + " // read", ""), "cluster", words="ended", **PAIR),
    Rule(
        "cluster-barrier-between",
        lines(*REMOTE),
        (MEET + " // written", "bar.sync 0;"),
        "race",
        also=("uninitialized", "cluster"),
        **PAIR,
    ),
    Rule(
        "address-mapped",
        lines(*REMOTE),
        ("mapa.shared::cluster.u32 %peer, %mine, %x1;", "add.u32 %peer, %mine, 50331648;"),
        "cluster",
        also=("out-of-bounds",),
        **PAIR,
    ),
    Rule(
        "relaxed-arrival-releases-nothing",
        lines(*REMOTE),
        (MEET + " // written", MEET.replace("arrive", "arrive.relaxed")),
        "race",
        also=EARLY,
        **PAIR,
    ),
)

HALF = "and.b32 %x2, %t, 16; shl.b32 %x3, 0xffff, %x2;"  # lanes 0-15 or 16-31
LEGAL = (
    Rule(
        "tiles-with-masks-of-their-own",
        lines(NEAR, HALF, WRITE, "bar.warp.sync %x3;", "ld.shared.u32 %r0, [%x1];", RESULT),
    ),
    Rule(
        "exited-cta-counts-at-the-cluster-barrier",
        lines(*REMOTE, "setp.ne.u32 %q, %rank, 0;", "@!%q bra PAST;", MEET, "PAST:"),
        **PAIR,
    ),
    Rule("own-word-without-barrier", lines(WRITE, "ld.shared.u32 %r0, [%mine];", RESULT)),
    Rule("lanes-of-one-store-to-one-word", lines("@%w0 st.global.u32 [%out], 1;")),
    Rule(
        "arrive-then-sync-of-another-warp",
        lines(f"@%w0 {WRITE}", "@%w0 bar.arrive 1, 64;", "@%w1 bar.sync 1, 64;", f"@%w1 {READ}"),
    ),
    Rule("producer-consumer-flags", lines(*PASS), **GRID),
    Rule(
        "bytes-apart-in-one-word",
        lines("cvt.u64.u32 %y1, %t; add.u64 %y1, %out, %y1;", "st.global.u8 [%y1], %t;"),
    ),
)
RULES = BARRIERS + MEMORY + FLAGS + CLUSTERS


test_kept, test_broken = kept_and_broken(RULES, LEGAL)


@pytest.mark.parametrize("order", ["program", "adverse"])
def test_tiles_with_masks_of_their_own_act_apart(order):
    """Each half of a warp votes, reduces and shuffles separately."""
    text = """and.b32 %x0, %t, 16; mov.b32 %x1, 0xffff; shl.b32 %x1, %x1, %x0; setp.lt.u32 %p, %t, 3;
    vote.sync.ballot.b32 %o0, %p, %x1; redux.sync.add.u32 %o1, %t, %x1;
    shfl.sync.bfly.b32 %o2, %t, 1, 0x101f, %x1;"""
    out = run_registers(register_kernel(text, 0, 3), np.zeros((1, 32), np.uint32), 3, order)
    halves = np.arange(32) < 16
    assert np.array_equal(out[0], np.where(halves, 7, 0))
    assert np.array_equal(out[1], np.where(halves, sum(range(16)), sum(range(16, 32))))
    assert np.array_equal(out[2], np.arange(32) ^ 1)
