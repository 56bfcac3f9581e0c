"""Truth table of what the checks must remember: arrivals that completed a
phase, every fence, every reader.
"""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

ARRIVE = "mbarrier.arrive.shared.b64 _, [%bar];"
FOURTH = wait(0).replace("AGAIN:", "@!%w4 bra PAST; AGAIN:").replace("}", "PAST: }")
ONCE_MORE = "has init(127) but gets more arrivals in a phase"

# Threads 0 .. 127 arrive, warp 4 waits for them and overwrites what thread 0 has read or copied.
READ_THEN_ARRIVE = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 128;",
    "@%lead st.shared.u32 [%sm], %t; bar.sync 0;",
    "@%lead ld.shared.u32 %r0, [%sm];",
    f"@!%w4 {ARRIVE}",
    FOURTH,
    "@%w4 st.shared.u32 [%sm], 7;",
)
COPIED_THEN_ARRIVE = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 128; bar.sync 0;",
    "@!%w4 cp.async.ca.shared.global [%mine], [%myin], 4;",
    "@!%w4 cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];",
    FOURTH,
    "@%w4 ld.shared.u32 %r0, [%sm]; st.global.u32 [%myout], %r0;",
    "cp.async.wait_all;",
)
# 30 threads of warp 0 arrive by one instruction and wait; three of warp 1 come later.
AHEAD = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 33; bar.sync 0;",
    "setp.gt.and.u32 %p, %t, 1, %w0; setp.lt.u32 %q, %t, 35; @%w0 bra FIRST;",
    f"@%q {ARRIVE} bra END;",
    f"FIRST: @%p {ARRIVE}",
    wait(0),
    "END:",
)
# Warp 1 arrives again without having seen phase 0, but after warp 0's first round: it knows lane 0's work.
TWO_ROUNDS = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 64; @%lead mbarrier.init.shared.b64 [%bar+8], 1;",
    "@%lead st.shared.u32 [%sm], %t; bar.sync 0; @%w1 bra SECOND;",
    f"{ARRIVE} @%lead mbarrier.arrive.shared.b64 _, [%bar+8];",
    wait(0),
    f"st.shared.u32 [%sm], 7; {ARRIVE} bra END;",
    f"SECOND: ld.shared.u32 %r0, [%sm]; {ARRIVE}",
    wait(0, 8).replace("AGAIN", "ON"),
    ARRIVE,
    "END:",
)

FENCED = lines(
    "st.shared.u32 [%mine], %t;",
    "fence.proxy.async.shared::cta; // before",
    "bar.sync 0;",
    "@%w1 bra LATER;",
    "@%lead cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 256;",
    "@%lead cp.async.bulk.commit_group; @%lead cp.async.bulk.wait_group 0; bra END;",
    "LATER: " + " ".join(["fence.proxy.async.shared::cta;"] * 40),
    "END:",
)

GROUP = "cta_group::1.sync.aligned"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
LOAD = f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%x8]; tcgen05.wait::ld.sync.aligned; {BEFORE}"
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%x8], {%t}; tcgen05.wait::st.sync.aligned;"
# Warps 0, 4, .. 20 read one column; warp 0 overwrites it when all have reached barrier 2.
SIX_READERS = lines(
    f"@%w0 tcgen05.alloc.{GROUP}.shared::cta.b32 [%bar], 32;",
    "shr.u32 %x1, %t, 5; and.b32 %x2, %x1, 3; setp.ne.u32 %q, %x2, 0; bar.sync 0; ld.shared.u32 %x8, [%bar];",
    f"@!%w0 bra STORED; {STORE} STORED: {BEFORE} bar.sync 0; {AFTER} @%q bra OVER;",
    "setp.eq.u32 %p, %x1, 12; @%p bra FOURTH;",
    f"{LOAD} bar.sync 2, 192; {AFTER} bra READ;",
    f"FOURTH: {LOAD} bar.sync 2, 192;",
    f"READ: st.global.u32 [%myout], %r0; @!%w0 bra OVER; {STORE}",
    f"OVER: {BEFORE} bar.sync 0;",
    f"@%w0 tcgen05.relinquish_alloc_permit.{GROUP}; @%w0 tcgen05.dealloc.{GROUP}.b32 %x8, 32;",
)
FREED = lines(
    f"@%w0 tcgen05.alloc.{GROUP}.shared::cta.b32 [%bar], 32;",
    "bar.sync 0; ld.shared.u32 %x8, [%bar];",
    f"@!%w0 bra STORED; {STORE} STORED: {BEFORE} bar.sync 0; {AFTER} @!%w4 bra OVER;",
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8]; tcgen05.wait::ld.sync.aligned;",
    f"OVER: {BEFORE} bar.sync 0;",
    f"@%w0 tcgen05.relinquish_alloc_permit.{GROUP}; @%w0 tcgen05.dealloc.{GROUP}.b32 %x8, 32;",
)

ATOMICS = lines(
    "shr.u32 %x1, %t, 5; mov.u32 %x2, 1; setp.eq.u32 %q, %x1, 2;",
    "@%q bra THIRD;",
    "@%lead st.shared.u32 [%sm], 0; bar.sync 1, 64;",
    "@%w1 red.shared.add.u32 [%sm], 1; bar.arrive 2, 96; bra END;",
    "THIRD: bar.sync 2, 96;",
    "red.shared.add.u32 [%sm], 1;",
    "END:",
)
LAST_ALONE = ("THIRD: bar.sync 2, 96;", "THIRD: bar.arrive 2, 96; nanosleep.u32 100; nanosleep.u32 100;")

RULES = (
    Rule(
        "a-phase-has-all-its-arrivals",
        READ_THEN_ARRIVE,
        ("[%bar], 128;", "[%bar], 127;"),
        "race",
        words=ONCE_MORE,
        also=("mbarrier",),
        threads=160,
    ),
    Rule(
        "a-phase-has-all-its-copies",
        COPIED_THEN_ARRIVE,
        ("[%bar], 128;", "[%bar], 127;"),
        "race",
        words=ONCE_MORE,
        also=("mbarrier",),
        threads=160,
    ),
    Rule(
        "ahead-without-harm",
        AHEAD,
        ("33; bar", "3; bar"),
        "mbarrier",
        "review",
        words="runs ahead",
        orders=(7,),
    ),
    Rule(
        "who-knows-one-lane-is-behind-all-that-came-with-it",
        TWO_ROUNDS,
        (wait(0), ""),
        "race",
        also=("mbarrier",),
    ),
    Rule(
        "every-proxy-fence",
        FENCED,
        ("fence.proxy.async.shared::cta; // before", ""),
        "proxy-fence",
        orders=("adverse",),
    ),
    Rule(
        "every-reader-of-a-column",
        SIX_READERS,
        (f"FOURTH: {LOAD} bar.sync 2, 192;", f"FOURTH: bar.arrive 2, 192; {LOAD}"),
        "race",
        threads=672,
    ),
    Rule(
        "freed-behind-the-reads-of-others",
        FREED,
        (f"OVER: {BEFORE} bar.sync 0;", "OVER: bar.sync 0;"),
        "race",
        "review",
        words="no tcgen05.fence::before_thread_sync between that and the barrier",
        threads=160,
    ),
    Rule(
        "atomics-of-a-scope-that-holds-both",
        "red.relaxed.gpu.global.add.u32 [%out], 1;",
        (".gpu.", ".cta."),
        "race",
        cluster=2,
    ),
    # warp 1's atomic comes after what warp 0 did; warp 2's comes after warp 1's barrier, or after nothing
    Rule("plain-write-before-every-atomic", ATOMICS, LAST_ALONE, "race", threads=96, also=("uninitialized",)),
    Rule(
        "plain-read-before-every-atomic",
        ATOMICS.replace("@%lead st.shared.u32 [%sm], 0;", "@%lead ld.shared.u32 %r0, [%sm];").replace(
            "mov.u32 %x2, 1;", "mov.u32 %x2, 1; @%lead st.shared.u32 [%sm], 0; bar.sync 0;"
        ),
        LAST_ALONE,
        "race",
        threads=96,
    ),
)
LEGAL = (
    Rule(
        "atomics-within-a-cta",
        lines("@%lead st.shared.u32 [%sm], 0; bar.sync 0;", "red.relaxed.cta.shared.add.u32 [%sm], 1;"),
    ),
    Rule(
        "barriers-of-one-warp-each",
        lines("@%w0 bar.sync 1, 32;", "@%w4 bar.arrive 1, 32;"),
        threads=160,
    ),
)


test_kept, test_broken = kept_and_broken(RULES, LEGAL)
