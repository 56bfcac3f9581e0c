"""Truth table of the race detector: what it must not forget, and collective accesses of a warp's lanes."""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

EARLY = ("uninitialized",)
RESULT = "st.global.u32 [%myout], %r0;"

# seven warps read a word and signal warp 7, which overwrites it; in the broken program warp 0 does not signal
SHARED_READERS = lines(
    "@%lead st.shared.u32 [%sm], %t; mov.u32 %x2, 256; mov.u32 %x3, 9;",
    "shr.u32 %x1, %t, 5; bar.sync 0; setp.eq.u32 %p, %x1, 7; @%p bra WRITER;",
    "ld.shared.u32 %r0, [%sm]; setp.eq.u32 %q, %x1, %x3; @%q bra END;",
    "bar.arrive 1, %x2; bra END;",
    "WRITER: bar.sync 1, %x2; setp.eq.u32 %q, %t, 224; @%q st.shared.u32 [%sm], 5;",
    "END: " + RESULT,
)
GLOBAL_READERS = SHARED_READERS.replace("shared.u32", "global.u32").replace("[%sm]", "[%out+8192]")
ONE_LESS = ("mov.u32 %x2, 256; mov.u32 %x3, 9;", "mov.u32 %x2, 224; mov.u32 %x3, 0;")

WARPGROUP = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead mbarrier.init.shared.b64 [%bar+8], 1; bar.sync 0;",
    "@%w4 bra LOADER;",
    "mov.b32 %x4, 0x3c003c00; shl.b32 %x1, %t, 4; add.u32 %x1, %sm, %x1;",
    *(f"st.shared.v4.b32 [%x1+{at}], {{%x4, %x4, %x4, %x4}};" for at in range(0, 8192, 2048)),
    "mov.b64 %y2, 4611686293305360448; setp.eq.u32 %p, %t, %t;",
    *(f"mov.f32 %f{i}, 0f00000000;" for i in range(4)),
    "fence.proxy.async.shared::cta;",
    "bar.sync 1, 128;",
    "wgmma.fence.sync.aligned;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %y2, %y2, %p, 1, 1, 0, 0;",
    "wgmma.commit_group.sync.aligned;",
    "@!%w0 wgmma.wait_group.sync.aligned 0;",
    "@%w0 wgmma.wait_group.sync.aligned 0; // warp 0",
    "@%lead mbarrier.arrive.shared.b64 _, [%bar];",
    "wgmma.wait_group.sync.aligned 0;",
    "st.global.f32 [%myout], %f0; bra END;",
    "LOADER: setp.eq.u32 %q, %t, 128; @!%q bra END;",
    wait(0),
    "add.u32 %x2, %bar, 8; mbarrier.arrive.expect_tx.shared.b64 _, [%x2], 256;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 256, [%x2];",
    wait(0, 8),
    "END:",
)

ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar+64], 64;"
PER_TILE = lines(
    f"@%w0 {ALLOC}",
    "@%w0 ld.shared.u32 %x8, [%bar+64];",
    "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x8, 64;",
    f"@%w0 {ALLOC}",
    "@%w0 ld.shared.u32 %x7, [%bar+64];",
    "@%w0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
    "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x7, 64;",
)

AWAITED = (
    "@%q tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];",
    "@!%w0 bra OVER;",
    f"@!%lead bra SKIP; {wait(0)} SKIP:",
)
ONE_LANE_WAITS = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 1;",
    "@%w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%bar+64], 32;",
    "mov.u32 %x1, 0; FILL: add.u32 %x2, %mine, %x1; st.shared.u32 [%x2], 0; add.u32 %x1, %x1, 512; "
    "setp.lt.u32 %q, %x1, 4096; @%q bra FILL;",
    "fence.proxy.async; bar.sync 0; ld.shared.u32 %x8, [%bar+64]; tcgen05.fence::after_thread_sync;",
    "mov.b64 %y8, 70437463916608; mov.u32 %x9, 134479888; setp.ne.u32 %p, %t, %t; setp.eq.u32 %q, %t, 32;",
    "@%q tcgen05.mma.cta_group::1.kind::f16 [%x8], %y8, %y8, %x9, %p;",
    *AWAITED,
    "tcgen05.fence::after_thread_sync;",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8]; tcgen05.wait::ld.sync.aligned; " + RESULT,
    "OVER: tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;",
    "@%w0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
    "@%w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x8, 32;",
)

CLEARED = lines(
    "st.shared.u32 [%mine], %t; bar.sync 0;",
    "ld.shared.u32 %r1, [%other];",
    "bar.sync 1;",
    "mov.u64 %y1, 256; @%lead st.bulk.weak.shared::cta [%sm], %y1, 0; bar.sync 0;",
    "ld.shared.u32 %r0, [%mine]; add.u32 %r0, %r0, %r1; " + RESULT,
)

RULES = (
    Rule("read-before-st-bulk-clears", CLEARED, ("bar.sync 1;", ""), "race"),
    Rule("every-reader-of-a-shared-word", SHARED_READERS, ONE_LESS, "race", threads=256),
    Rule("every-reader-of-a-global-word", GLOBAL_READERS, ONE_LESS, "race", threads=256),
    Rule(
        "every-atomic-before-a-plain-read",
        lines(
            "@%lead st.shared.u32 [%sm], 0; bar.sync 0; @!%w0 bra SECOND;",
            "red.shared.add.u32 [%sm], 1; bar.arrive 1, 64; bra END;",
            "SECOND: red.shared.add.u32 [%sm], 1;",
            "bar.sync 1, 64;",
            "ld.shared.u32 %r0, [%sm]; st.global.u32 [%myout], %r0;",
            "END:",
        ),
        ("bar.sync 1, 64;", "bar.warp.sync 0xffffffff;"),
        "race",
    ),
    Rule(
        "lanes-of-a-large-cluster",
        lines(
            "xor.b32 %x1, %t, 1; shl.b32 %x1, %x1, 2; add.u32 %x1, %sm, %x1;",
            "st.shared.u32 [%mine], %t;",
            "bar.warp.sync 0xffffffff;",
            "ld.shared.u32 %r0, [%x1];",
        ),
        ("bar.warp.sync 0xffffffff;", ""),
        "race",
        also=EARLY,
        threads=1024,
        cluster=3,
    ),
    Rule(
        "wgmma-groups-complete-for-the-warpgroup",
        WARPGROUP,
        ("@%w0 wgmma.wait_group.sync.aligned 0; // warp 0", ""),
        "race",
        threads=160,
        target="sm_90a",
    ),
    Rule(
        "alloc-joins-the-lanes-of-its-warp",
        PER_TILE,
        ("@%w0 ld.shared.u32 %x8", "ld.shared.u32 %x8"),
        "race",
        also=EARLY,
    ),
    Rule(
        "tcgen05-ld-joins-the-lanes-of-its-warp",
        ONE_LANE_WAITS,
        (f"@!%lead bra SKIP; {wait(0)} SKIP:", ""),
        "race",
        also=(*EARLY, "tmem-alloc", "mbarrier"),
        threads=128,
    ),
    Rule(
        "products-committed",
        ONE_LANE_WAITS.replace("\n".join(AWAITED), " ".join(AWAITED)),
        (" ".join(AWAITED), AWAITED[1]),
        "race",
        words="no tcgen05.commit tells when this MMA is complete",
        also=(*EARLY, "tmem-alloc", "async-pending"),
        threads=128,
    ),
)


test_kept, test_broken = kept_and_broken(RULES)
