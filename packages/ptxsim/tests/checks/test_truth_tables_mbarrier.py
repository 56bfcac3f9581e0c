"""Truth table of mbarriers: init, counts, bytes, phases, barriers of other CTAs (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

BARE_INIT = "@%lead mbarrier.init.shared.b64 [%bar], 1;"
INIT_FENCE = "@%lead fence.mbarrier_init.release.cluster;"
INIT = f"{BARE_INIT} {INIT_FENCE}"
INIT_ALL = "@%lead mbarrier.init.shared.b64 [%bar], 64;"
ARRIVE = "mbarrier.arrive.shared.b64 _, [%bar];"
ONE_ARRIVE = f"@%lead {ARRIVE}"
PROXY_FENCE = "@%lead fence.proxy.async.shared::cta;"
EXPECT = "@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
LOAD = f"@%lead {BULK} [%sm], [%in], 256, [%bar];"
LOAD_MORE = LOAD.replace("[%sm], [%in]", "[%sm+256], [%in+256]")
BOTH = EXPECT.replace("256", "512")
READ = "ld.shared.u32 %r0, [%mine]; st.global.u32 [%myout], %r0;"
PEER = "xor.b32 %x1, %rank, 1; mapa.shared::cluster.u32 %peer, %bar, %x1;"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;"
ARRIVE_PEER = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer];"
ACQUIRE = wait(0).replace(".parity", ".parity.acquire.cluster")
ONE_PHASE = (INIT_ALL, "bar.sync 0;", ARRIVE, wait(0))
LOADED = (INIT, "bar.sync 0;", EXPECT, LOAD, wait(0))
READ_LATE = "@%lead ld.shared.u32 %r0, [%sm+128];"
SECOND_WARP = wait(0).replace("AGAIN:", "@!%w1 bra PAST; AGAIN:").replace("}", "PAST: }")
ONE_WARP = wait(0).replace("AGAIN:", "@!%w0 bra PAST; AGAIN:").replace("}", "PAST: }")

HANDED_TO_PEER = lines(
    *(INIT_ALL, PEER, MEET, "st.shared.u32 [%mine], %t;", ARRIVE_PEER, ACQUIRE),
    *("mapa.shared::cluster.u32 %x2, %mine, %x1;", "ld.shared::cluster.u32 %r0, [%x2];", MEET + " // end"),
)
USED_AGAIN = lines(
    *(*ONE_PHASE, "bar.sync 1;", "@%lead mbarrier.inval.shared.b64 [%bar];"),
    "@%lead st.shared.u32 [%bar], 12345;",
)

RULES = (
    Rule(
        "release-reaches-the-peer",
        HANDED_TO_PEER,
        (ARRIVE_PEER, ARRIVE_PEER.replace("release.cluster", "release.cta")),
        "race",
        cluster=2,
    ),
    Rule(
        "memory-of-a-barrier-after-inval",
        USED_AGAIN,
        ("@%lead mbarrier.inval.shared.b64 [%bar];", ""),
        "mbarrier",
        "review",
        words="written to while it is in use",
    ),
    Rule(
        "count-of-all-that-arrive",
        lines(
            *(INIT_ALL, "bar.sync 0;", "mov.u32 %x2, 0;"),
            f"ROUND: {ARRIVE} and.b32 %x3, %x2, 1;",
            wait("%x3"),
            "add.u32 %x2, %x2, 1; setp.lt.u32 %q, %x2, 3; @%q bra ROUND;",
        ),
        (INIT_ALL, INIT_ALL.replace(" 64;", " 63;")),
        "mbarrier",
        words="64 threads arrive in each round, and init(63)",
        also=("race", "deadlock"),
    ),
    Rule(
        "inits-of-a-cluster-fenced",
        lines(BARE_INIT, INIT_FENCE, MEET, EXPECT, LOAD, wait(0), MEET + " // 2"),
        (INIT_FENCE, ""),
        "mbarrier",
        "review",
        words="no fence.mbarrier_init",
        cluster=2,
    ),
    Rule(
        "init-fenced-for-a-copy",
        lines(BARE_INIT, INIT_FENCE, "bar.sync 0;", EXPECT, LOAD, wait(0)),
        (INIT_FENCE, ""),
        "mbarrier",
        "review",
        words="neither fence.mbarrier_init nor fence.proxy.async",
    ),
    Rule(
        "init-fenced-for-a-copy-by-the-other-fence",
        lines(BARE_INIT, PROXY_FENCE, "bar.sync 0;", EXPECT, LOAD, wait(0)),
        ("shared::cta;", "global;"),
        "mbarrier",
        "review",
        words="neither",
    ),
    Rule(
        "init-fenced-by-who-issues-the-copy",
        lines(
            *(BARE_INIT, "setp.eq.u32 %p, %t, 32; setp.eq.u32 %q, %t, 33; bar.sync 0;"),
            *(step.replace("lead", "p") for step in (PROXY_FENCE, EXPECT, LOAD)),
            wait(0),
        ),
        ("@%p fence", "@%q fence"),
        "mbarrier",
        "review",
        words="neither",
    ),
    Rule(
        "init-before-use",
        lines(*ONE_PHASE),
        (INIT_ALL, ""),
        "mbarrier",
        also=("deadlock",),
    ),
    Rule(
        "peer-initialised-before-arrival",
        lines(INIT_ALL, INIT_FENCE, PEER, MEET, ARRIVE_PEER, ACQUIRE, MEET + " // end"),
        (MEET + "\n", "bar.sync 0;\n"),
        "mbarrier",
        words="before its mbarrier.init",
        also=("deadlock",),
        cluster=2,
    ),
    Rule(
        "init-visible-to-other-warps",
        lines(*ONE_PHASE),
        ("bar.sync 0;", ""),
        "mbarrier",
        also=("deadlock",),
    ),
    Rule(
        "init-visible-to-peer",
        lines(PEER, INIT_ALL, MEET + " // start", ARRIVE_PEER, ACQUIRE, MEET),
        (MEET + " // start", "bar.sync 0;"),
        "mbarrier",
        also=("deadlock",),
        cluster=2,
    ),
    Rule(
        "init-fence-before-relaxed-cluster-barrier",
        lines(PEER, INIT_ALL, "fence.mbarrier_init.release.cluster;", RELAXED, ARRIVE_PEER, ACQUIRE, MEET),
        ("fence.mbarrier_init.release.cluster;", ""),
        "mbarrier",
        "review",  # the init has been executed, and chips run CUTLASS's pairs of CTAs, which have no fence
        words="its arrival (PTX line",
        cluster=2,
    ),
    Rule(
        "init-once",
        lines(INIT_ALL, "// once", "bar.sync 0;", ARRIVE, wait(0)),
        ("// once", INIT_ALL),
        "mbarrier",
        "review",
        words="init",
    ),
    Rule(
        "inval-once",
        lines(*ONE_PHASE, "bar.sync 0;", "@%lead mbarrier.inval.shared.b64 [%bar];"),
        ("inval.shared.b64 [%bar];", "inval.shared.b64 [%bar]; @%lead mbarrier.inval.shared.b64 [%bar];"),
        "mbarrier",
        words="that mbarrier.inval has ended",
    ),
    Rule(
        "inval-before-init-again",
        lines(INIT, "@%lead mbarrier.inval.shared.b64 [%bar];", *ONE_PHASE),
        ("@%lead mbarrier.inval.shared.b64 [%bar];", ""),
        "mbarrier",
        "review",
        words="init",
    ),
    Rule(
        "inval-of-a-barrier",  # not of memory that holds none yet, though the init comes next
        lines("// inval", *ONE_PHASE),
        ("// inval", "@%lead mbarrier.inval.shared.b64 [%bar];"),
        "mbarrier",
        words="mbarrier.inval on buffer + 8192 B of CTA 0, which nobody has initialised",
    ),
    Rule(
        "count-not-above-arrivals",
        lines(*ONE_PHASE),
        ("[%bar], 64;", "[%bar], 65;"),
        "deadlock",
        words="64",
    ),
    Rule(
        "count-not-below-arrivals",
        lines(*ONE_PHASE),
        ("[%bar], 64;", "[%bar], 16;"),
        "mbarrier",
        also=("deadlock",),
    ),
    Rule(
        "arrivals-not-above-pending",
        lines(INIT, "bar.sync 0;", "@%lead mbarrier.arrive.shared.b64 %y1, [%bar], 1;", wait(0)),
        ("%y1, [%bar], 1;", "%y1, [%bar], 2;"),
        "mbarrier",
        also=("deadlock",),
    ),
    Rule(
        "own-arrive-before-own-wait",
        lines(INIT, "bar.sync 0;", f"{ONE_ARRIVE} {wait(0)}"),
        (f"{ONE_ARRIVE} {wait(0)}", f"{wait(0)} {ONE_ARRIVE}"),
        "deadlock",
        words="warps 0-1 wait for buffer + 8192 B, parity 0: what would end this wait comes after it",
    ),
    Rule(
        "arrive-behind-last-read",
        lines(
            INIT, "@%w1 st.shared.u32 [%mine], %t;", "bar.sync 0;",
            f"{READ_LATE} {ONE_ARRIVE}", SECOND_WARP, "@%w1 st.shared.u32 [%mine], 7;",
        ),
        (f"{READ_LATE} {ONE_ARRIVE}", f"{ONE_ARRIVE} {READ_LATE}"),
        "race",
        words="was signalled (PTX line",
        orders=("program",),
    ),
    Rule("count-in-range", lines(INIT), ("[%bar], 1;", "[%bar], 1048576;"), "mbarrier"),
    Rule("count-not-zero", lines(INIT), ("[%bar], 1;", "[%bar], 0;"), "mbarrier"),
    Rule("barrier-aligned", lines(INIT), ("[%bar], 1;", "[%bar+4], 1;"), "misaligned"),
    Rule(
        "bytes-not-below-announced",
        lines(*LOADED),
        ("_, [%bar], 256;", "_, [%bar], 512;"),
        "tx-count",
        words="512 B",
        also=("deadlock",),
    ),
    Rule(
        "bytes-not-above-announced",
        lines(*LOADED),
        ("_, [%bar], 256;", "_, [%bar], 128;"),
        "tx-count",
        words="128 B",
        also=("deadlock",),
    ),
    Rule(
        "bytes-of-all-copies-announced",
        lines(INIT, "bar.sync 0;", BOTH, LOAD, LOAD_MORE, wait(0)),
        ("_, [%bar], 512;", "_, [%bar], 256;"),
        "tx-count",
        words="256 B more",
    ),
    Rule(
        "load-awaited-before-exit",
        lines(*LOADED),
        (wait(0), ""),
        "async-pending",
        words="in flight",
    ),
    Rule(
        "load-awaited-by-every-reader",
        lines(*LOADED, READ),
        (wait(0), ONE_WARP),
        "race",
        words="not ordered",
    ),
    Rule(
        "bytes-need-an-arrival",
        lines(*LOADED),
        ("mbarrier.arrive.expect_tx.shared.b64 _,", "mbarrier.expect_tx.relaxed.cta.shared.b64"),
        "deadlock",
    ),
    Rule(
        "phase-flipped",
        lines(*LOADED, EXPECT.replace("_,", "%y1,"), LOAD.replace("[%sm]", "[%sm+256]"), wait(1)),
        (wait(1), wait(0).replace("AGAIN", "ONCE")),
        "mbarrier",
        also=("deadlock", "async-pending"),
        orders=("adverse",),
        threads=32,
    ),
    Rule(
        "arrival-releases-to-waiters",
        lines(INIT_ALL, "bar.sync 0;", "st.shared.u32 [%mine], %t;", ARRIVE, wait(0),
              "ld.shared.u32 %r0, [%other];"),
        (wait(0), ""),
        "race",
    ),
    Rule(
        "relaxed-arrival-releases-nothing",
        lines(INIT_ALL, "bar.sync 0;", "st.shared.u32 [%mine], %t;",
              "mbarrier.arrive.release.cta.shared::cta.b64 _, [%bar];", wait(0),
              "ld.shared.u32 %r0, [%other];"),
        (".arrive.release.cta", ".arrive.relaxed.cta"),
        "race",
    ),
)  # fmt: skip

TO_ZERO = "mapa.shared::cluster.u32 %peer, %bar, 0; mapa.shared::cluster.u32 %x2, %sm, 0;"
SECOND = f"@%p {BULK} [%x2], [%in], 256, [%peer];"

LEGAL = (
    Rule("copy-before-expect", lines(INIT, "bar.sync 0;", LOAD, EXPECT, wait(0), READ)),
    Rule(
        "arrive-then-expect",
        lines(
            "@%lead mbarrier.init.shared.b64 [%bar], 2;", INIT_FENCE, "bar.sync 0;",
            "@%lead mbarrier.arrive.shared.b64 _, [%bar];", EXPECT, LOAD, wait(0), READ,
        ),
    ),
    Rule(
        "bytes-of-peer-before-local-expect",  # CTA 1 loads into CTA 0, which announces the bytes afterwards
        lines(
            TO_ZERO, INIT, MEET,
            "setp.eq.and.u32 %p, %rank, 1, %lead;", SECOND, MEET,
            "setp.eq.u32 %q, %rank, 1; @%q bra END;", EXPECT, wait(0), READ, "END:", MEET,
        ),
        cluster=2,
    ),
    Rule(
        "ring-of-two-stages",  # thread 0 fills two stages in turn, all threads read and hand them back
        lines(
            "add.u32 %x1, %bar, 16;",
            *(f"@%lead mbarrier.init.shared.b64 [%bar+{8 * i}], {1 if i < 2 else 64};" for i in range(4)),
            INIT_FENCE,
            "bar.sync 0;",
            *(
                step
                for k in range(6)
                for step in (
                    "@!%lead bra L{k};".replace("{k}", str(k)),
                    wait((k // 2 & 1) ^ 1, at=16 + 8 * (k % 2)) if k > 1 else "",
                    f"mbarrier.arrive.expect_tx.shared.b64 _, [%bar+{8 * (k % 2)}], 256;",
                    f"add.u32 %x2, %sm, {256 * (k % 2)}; add.u32 %x3, %bar, {8 * (k % 2)};",
                    f"{BULK} [%x2], [%in], 256, [%x3];",
                    f"L{k}:",
                    wait(k // 2 & 1, at=8 * (k % 2)),
                    f"ld.shared.u32 %r0, [%mine+{256 * (k % 2)}];",
                    f"mbarrier.arrive.shared.b64 _, [%bar+{16 + 8 * (k % 2)}];",
                )
            ),
            "st.global.u32 [%myout], %r0;",
        ),
    ),
    Rule(
        "inval-and-other-use",
        lines(
            *ONE_PHASE, "bar.sync 0;", "@%lead mbarrier.inval.shared.b64 [%bar];", "bar.sync 0;",
            "st.shared.u32 [%mine+8192], %t;", "ld.shared.u32 %r0, [%mine+8192];",
        ),
    ),
)  # fmt: skip


test_kept, test_broken = kept_and_broken(RULES, LEGAL)
