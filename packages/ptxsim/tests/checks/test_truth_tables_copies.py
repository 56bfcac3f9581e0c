"""Truth table of copies: proxy fences, bulk groups, cp.async, wgmma (PTX ISA 9.7.9.25, 9.7.13.4, 9.7.15)."""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
INIT = "@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;"
EXPECT = "@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;"
LOAD = f"@%lead {BULK} [%sm], [%in], 256, [%bar];"
WRITE = "st.shared.u32 [%mine], %t;"
FENCE = "fence.proxy.async.shared::cta;"
SEND = f"@%lead {STORE} [%out], [%sm], 256;"
COMMIT = "@%lead cp.async.bulk.commit_group;"
WAIT = "@%lead cp.async.bulk.wait_group 0;"
SENT = (WRITE, FENCE, "bar.sync 0;", SEND, COMMIT, WAIT)

PROXIES = (
    Rule("fence-before-store", lines(*SENT), (FENCE, ""), "proxy-fence", words="fence.proxy.async"),
    Rule("fence-of-that-space", lines(*SENT), (FENCE, "fence.proxy.async.global;"), "proxy-fence"),
    Rule(
        "fence-for-all-spaces",
        lines(*SENT).replace(FENCE, "fence.proxy.async;"),
        ("fence.proxy.async;", ""),
        "proxy-fence",
    ),
    Rule("fence-by-each-writer", lines(*SENT), (FENCE, f"@%w1 {FENCE}"), "proxy-fence"),
    Rule(
        "fence-behind-the-write",
        lines("// first", WRITE, f"{FENCE} // then", *SENT[2:]),
        (f"{FENCE} // then", "membar.cta;"),
        "proxy-fence",
    ),
    Rule(
        "fence-before-the-barrier",
        lines(WRITE, f"{FENCE} bar.sync 0; // both", *SENT[3:]),
        (f"{FENCE} bar.sync 0; // both", f"bar.sync 0; {FENCE}"),
        "proxy-fence",
        "review",
    ),
    Rule(
        "barrier-before-store",
        lines(*SENT),
        ("bar.sync 0;", ""),
        "race",
        also=("uninitialized", "proxy-fence"),
    ),
    Rule(
        "fence-before-load-of-global-writes",
        lines(
            INIT,
            "st.global.u32 [%myin], %t;",
            "fence.proxy.async.global;",
            "bar.sync 0;",
            EXPECT,
            LOAD,
            wait(0),
        ),
        ("fence.proxy.async.global;", ""),
        "proxy-fence",
    ),
    Rule(
        "fence-before-load-over-own-writes",
        lines(INIT, WRITE, FENCE, "bar.sync 0;", EXPECT, LOAD, wait(0)),
        (FENCE, ""),
        "proxy-fence",
        "review",
    ),
)

AGAIN = "bar.sync 0;\nst.shared.u32 [%mine], 7; // again"
BACK = "ld.global.u32 %r0, [%out]; // back"

GROUPS = (
    Rule(
        "store-committed", lines(*SENT), (COMMIT, ""), "async-pending", "review", words="no committed group"
    ),
    Rule("store-awaited", lines(*SENT), (WAIT, ""), "async-pending", "review", words="never waited for"),
    Rule(
        "read-done-before-overwritten",
        lines(*SENT[:-1], "@%lead cp.async.bulk.wait_group.read 0;", AGAIN),
        (".read 0;", ".read 1;"),
        "race",
        also=("async-pending",),
    ),
    Rule(
        "written-before-read-back",
        lines(*SENT, f"@%lead {BACK}"),
        ("wait_group 0;", "wait_group.read 0;"),
        "race",
        words="waits for reads alone",
    ),
    Rule(
        "group-belongs-to-its-thread",
        lines(*SENT, AGAIN),
        (WAIT, "@%w1 cp.async.bulk.wait_group 0;"),
        "race",
        also=("async-pending",),
    ),
)

SETUP = "shl.b32 %x1, %t, 4; add.u32 %x1, %sm, %x1; mul.wide.u32 %y1, %t, 16; add.u64 %y1, %in, %y1;"
COPY = "cp.async.ca.shared.global [%x1], [%y1], 16;"
READ = "ld.shared.u32 %r0, [%x1]; st.global.u32 [%myout], %r0;"
GROUP = "cp.async.commit_group;"

CP_ASYNC = (
    Rule(
        "copy-awaited",
        lines(SETUP, COPY, GROUP, "cp.async.wait_group 0;", READ),
        ("cp.async.wait_group 0;", ""),
        "race",
    ),
    Rule(
        "copy-committed-by-its-own-thread",
        lines(SETUP, COPY, GROUP, "cp.async.wait_group 0;", READ),
        (GROUP, "@%lead " + GROUP),
        "race",
    ),
    Rule("copy-committed", lines(SETUP, COPY, GROUP, "cp.async.wait_group 0;", READ), (GROUP, ""), "race"),
    Rule(
        "youngest-group-too",
        lines(
            SETUP,
            COPY,
            GROUP,
            COPY.replace("%x1", "%x1+1024"),
            GROUP + " // 2",
            "cp.async.wait_group 1;",
            READ,
        ),
        ("wait_group 1;", "wait_group 2;"),
        "race",
    ),
    Rule(
        "barrier-for-other-threads-copies",
        lines(SETUP, COPY, "cp.async.wait_all;", "bar.sync 0;", "ld.shared.u32 %r0, [%other];"),
        ("bar.sync 0;", ""),
        "race",
    ),
    Rule(
        "read-before-copied-over",
        lines(
            WRITE,
            "bar.sync 0;",
            "ld.shared.u32 %r0, [%other];",
            "bar.sync 1;",
            SETUP,
            COPY,
            "cp.async.wait_all;",
        ),
        ("bar.sync 1;", ""),
        "race",
    ),
)

ONES = "mov.b32 %x4, 0x3c003c00; shl.b32 %x1, %t, 4; add.u32 %x1, %sm, %x1;\n" + "\n".join(
    f"st.shared.v4.b32 [%x1+{at}], {{%x4, %x4, %x4, %x4}};" for at in range(0, 8192, 2048)
)
# no swizzle, leading 16 B, stride 1024 B, at the start of the buffer (window offset 1024)
DESC = f"mov.b64 %y2, {1 << 62 | 64 << 32 | 1 << 16 | 64}; setp.eq.u32 %p, %t, %t;"
ZERO = " ".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %y2, %y2, %p, 1, 1, 0, 0;"
RESULT = "st.global.f32 [%myout], %f0;"
PRODUCT = (
    ONES,
    DESC,
    ZERO,
    FENCE,
    "bar.sync 0;",
    "wgmma.fence.sync.aligned;",
    MMA,
    "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group.sync.aligned 0;",
)
# A in registers: %r1 of the youngest group, %r2 of the group before
BY_REGISTER = (
    PRODUCT[5],
    MMA.replace("%y2, %y2, %p, 1, 1, 0, 0", "{%r1, %r1, %r1, %r1}, %y2, %p, 1, 1, 0"),
    *PRODUCT[7:],
)
TWICE = (
    *PRODUCT,
    "mov.b32 %r1, 0; mov.b32 %r2, 0;",
    BY_REGISTER[1].replace("%r1", "%r2"),
    PRODUCT[7],
    *BY_REGISTER[:3],
)
HOPPER = {"threads": 128, "target": "sm_90a"}

WGMMA = (
    Rule("registers-fenced", lines(*PRODUCT, RESULT), ("wgmma.fence.sync.aligned;", ""), "race", **HOPPER),
    Rule(
        "first-product-fenced-though-it-overwrites",
        lines(*PRODUCT, RESULT).replace("setp.eq", "setp.ne"),
        ("wgmma.fence.sync.aligned;", ""),
        "race",
        words="comes before its first wgmma.fence",
        **HOPPER,
    ),
    Rule(
        "operands-free-once-the-product-is-awaited",
        lines(
            *PRODUCT[:-1],
            "wgmma.wait_group.sync.aligned 0; // first",
            "bar.sync 0; // met",
            "st.shared.b32 [%x1], %x4; wgmma.wait_group.sync.aligned 0;",
            RESULT,
        ),
        ("wgmma.wait_group.sync.aligned 0; // first", ""),
        "race",
        words="no wgmma.wait_group has waited for it",
        orders=("program",),
        **HOPPER,
    ),
    Rule(
        "operands-free-for-a-copy-by-one-of-the-warps",
        lines(INIT, *PRODUCT[:-1], f"{PRODUCT[-1]} // first", EXPECT, LOAD, wait(0), PRODUCT[-1], RESULT),
        (f"{PRODUCT[-1]} // first", ""),
        "race",
        words="no wgmma.wait_group has waited for it",
        orders=("adverse",),
        **HOPPER,
    ),
    Rule(
        "product-committed",
        lines(*PRODUCT, RESULT),
        ("wgmma.commit_group.sync.aligned;", ""),
        "async-pending",
        **HOPPER,
    ),
    Rule(
        "product-awaited",
        lines(*PRODUCT, RESULT),
        ("wgmma.wait_group.sync.aligned 0;", ""),
        "async-pending",
        **HOPPER,
    ),
    Rule(
        "no-group-left-pending",
        lines(*PRODUCT, RESULT),
        ("aligned 0;", "aligned 1;"),
        "async-pending",
        **HOPPER,
    ),
    *(
        Rule(
            f"registers-of-A-read-before-{name}",
            lines(*TWICE, f"wgmma.wait_group.sync.aligned 0; // {name}", write, *BY_REGISTER),
            (f"wgmma.wait_group.sync.aligned 0; // {name}", weaker),
            "async-pending",
            words="a register of A of this wgmma is written",
            **HOPPER,
        )
        for name, write, weaker in (
            ("written", "mov.b32 %r1, %t;", ""),
            ("computed", "xor.b32 %r1, %r2, %t;", "wgmma.wait_group.sync.aligned 1;"),
            ("loaded", "ld.global.u32 %r1, [%myin];", "wgmma.fence.sync.aligned;"),
        )
    ),
    Rule("operands-fenced", lines(*PRODUCT, RESULT), (FENCE, ""), "proxy-fence", **HOPPER),
    Rule(
        "operands-complete",
        lines(*PRODUCT, RESULT),
        ("bar.sync 0;", ""),
        "race",
        "review",  # test_wgmma_stores.py
        also=("proxy-fence",),
        **HOPPER,
    ),
    Rule(
        "operands-read-before-overwritten",
        lines(*PRODUCT, "bar.sync 0; // free", WRITE, RESULT),
        ("wait_group.sync.aligned 0;", "wait_group.sync.aligned 1;"),
        "race",
        also=("async-pending",),
        **HOPPER,
    ),
    Rule(
        "whole-warpgroup", lines(*PRODUCT), (MMA, f"@%lead {MMA}"), "collective", also=("deadlock",), **HOPPER
    ),
)

LEGAL = (
    Rule(
        "loaded-then-read-without-fence",
        lines(INIT, "bar.sync 0;", EXPECT, LOAD, wait(0), "ld.shared.u32 %r0, [%mine];"),
    ),
    Rule(
        "read-then-loaded-over-without-fence",
        lines(
            INIT,
            WRITE,
            FENCE,
            "bar.sync 0;",
            "ld.shared.u32 %r0, [%other];",
            "bar.sync 1;",
            EXPECT,
            LOAD,
            wait(0),
        ),
    ),
    Rule(
        "loaded-then-stored-without-fence",
        lines(INIT, "bar.sync 0;", EXPECT, LOAD, wait(0), SEND, COMMIT, WAIT),
    ),
    Rule("exit-after-read-only-wait", lines(*SENT[:-1], "@%lead cp.async.bulk.wait_group.read 0;")),
    Rule(
        "arrival-covers-copies-waited-for",
        lines(
            "@%lead mbarrier.init.shared.b64 [%bar], 32; bar.sync 0; @%w1 bra READER;",
            "cp.async.ca.shared.global [%mine], [%myin], 4; cp.async.wait_all;",
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar]; bra END;",
            f"READER: {wait(0)} ld.shared.u32 %r0, [%other]; st.global.u32 [%myout], %r0; END:",
        ),
    ),
    Rule("own-copy-read-by-own-thread", lines(SETUP, COPY, "cp.async.wait_all;", READ)),
    Rule("empty-groups-count", lines(SETUP, COPY, GROUP, GROUP, "cp.async.wait_group 1;", READ)),
    Rule("pipelined-wgmma", lines(*PRODUCT[:-2], MMA, *PRODUCT[-2:], RESULT), **HOPPER),
    Rule(
        "registers-of-A-of-an-older-group-rewritten",
        lines(*TWICE, "wgmma.wait_group.sync.aligned 1;", "mov.b32 %r2, %t;", PRODUCT[-1]),
        **HOPPER,
    ),
    Rule(
        "older-group-awaited",
        lines(
            *PRODUCT[:-1],
            ZERO.replace("%f", "%f1"),
            MMA.replace("%f0, %f1, %f2, %f3", "%f10, %f11, %f12, %f13"),
            PRODUCT[-2],
            "wgmma.wait_group.sync.aligned 1;",
            RESULT,
            PRODUCT[-1],
        ),
        **HOPPER,
    ),
)
RULES = PROXIES + GROUPS + CP_ASYNC + WGMMA


test_kept, test_broken = kept_and_broken(RULES, LEGAL)
