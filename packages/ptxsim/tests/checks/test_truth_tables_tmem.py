"""Truth table of tensor memory: allocation, order of tcgen05 instructions (PTX ISA 9.7.16)."""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, kept_and_broken, lines, run_rule, wait

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor

GROUP = "cta_group::1.sync.aligned"
ALLOC = f"@%w0 tcgen05.alloc.{GROUP}.shared::cta.b32 [%bar+64], 64;"
ADDRESS = "ld.shared.u32 %x8, [%bar+64];"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"
RELINQUISH = f"@%w0 tcgen05.relinquish_alloc_permit.{GROUP};"
FREE = f"@%w0 tcgen05.dealloc.{GROUP}.b32 %x8, 64;"
BEGIN = (ALLOC, "bar.sync 0; // allocated", ADDRESS)
END = (f"{BEFORE} bar.sync 0; // last", RELINQUISH, FREE)
STORE = "@%w0 tcgen05.st.sync.aligned.32x32b.x1.b32 [%x8], {%t};"
STORED = "@%w0 tcgen05.wait::st.sync.aligned;"
LOAD = "@%w4 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8];"
LOADED = "@%w4 tcgen05.wait::ld.sync.aligned;"
RESULT = "@%w4 st.global.u32 [%myout], %r0;"
MEET = "bar.sync 1; // meet"
HAND_OVER = (STORE, STORED, BEFORE + " // 1", MEET, AFTER, LOAD, LOADED, RESULT)
PASSED_ON = lines(*BEGIN, *HAND_OVER, *END)
# warp 4 reads what warp 0 then overwrites
GIVEN_BACK = lines(
    *BEGIN,
    *HAND_OVER[:-1],
    BEFORE + " // 2",
    "bar.sync 2;",
    AFTER + " // 2",
    STORE.replace("{%t}", "{%sm}"),
    STORED + " // 2",
    RESULT,
    *END,
)
WARPS = {"threads": 160}

# lane 0 reaches tcgen05.alloc on another path than lanes 1 to 31, as compilers arrange it
FROM_TWO_SIDES = lines(
    "@!%lead bra OTHERS; mov.u32 %x3, 1; bra.uni TOGETHER; OTHERS: @!%w0 bra PAST;",
    "TOGETHER: bar.warp.sync -1;",
    ALLOC.removeprefix("@%w0 "),
    "PAST: bar.sync 0; // allocated",
    *(ADDRESS, *HAND_OVER, *END),
)

LIFE = (
    Rule(
        "lanes-meet-at-bar-warp-sync",
        FROM_TWO_SIDES,
        ("bar.warp.sync -1;", ""),
        "collective",
        also=("tmem-alloc", "tmem-leak", "uninitialized", "race"),
        **WARPS,
    ),
    Rule("freed-before-exit", PASSED_ON, (FREE, ""), "tmem-leak", words="64 columns", **WARPS),
    Rule(
        "freed-by-who-allocated",
        PASSED_ON,
        (FREE, FREE.replace("%w0", "%w1")),
        "tmem-alloc",
        "review",
        **WARPS,
    ),
    Rule(
        "freed-as-allocated",
        PASSED_ON,
        (FREE, FREE.replace("64;", "32;")),
        "tmem-alloc",
        also=("tmem-leak",),
        **WARPS,
    ),
    Rule("freed-once", lines(PASSED_ON, "// again"), ("// again", FREE), "tmem-alloc", **WARPS),
    Rule(
        "freed-by-one-warp",
        lines(PASSED_ON, "bar.sync 0;", "// again"),
        ("// again", FREE.replace("%w0", "%w1")),
        "tmem-alloc",
        "review",
        words="warps 0 and 1 all execute this line",
        **WARPS,
    ),
    Rule(
        "used-before-freed",
        lines(*BEGIN, "// early", *HAND_OVER, *END[:-1]).replace("// early", f"// {FREE}") + f"\n{FREE}",
        (f"// {FREE}", FREE),
        "tmem-alloc",
        also=("uninitialized", "race"),
        **WARPS,
    ),
    Rule(
        "allocated-by-a-whole-warp",
        PASSED_ON,
        (ALLOC, ALLOC.replace("%w0", "%lead")),
        "collective",
        also=("tmem-alloc", "uninitialized", "deadlock", "tmem-leak", "out-of-bounds"),
        **WARPS,
    ),
    Rule(
        "freed-by-a-whole-warp",
        PASSED_ON,
        (FREE, FREE.replace("%w0", "%lead")),
        "collective",
        also=("tmem-leak",),
        **WARPS,
    ),
    Rule(
        "allocated-before-permit-is-given-up",
        lines(*BEGIN, *HAND_OVER, *END, "// more"),
        ("// more", f"{ALLOC} {FREE}"),
        "tmem-alloc",
        words="permit",
        also=("tmem-leak",),
        **WARPS,
    ),
    Rule(
        "columns-a-power-of-two",
        PASSED_ON,
        (ALLOC, ALLOC.replace("64;", "48;")),
        "tmem-alloc",
        also=("tmem-leak", "uninitialized"),
        **WARPS,
    ),
    Rule(
        "columns-inside-the-allocation",
        PASSED_ON,
        (STORE, STORE.replace("[%x8]", "[%x8+64]")),
        "tmem-alloc",
        also=("uninitialized",),
        **WARPS,
    ),
    Rule(
        "lanes-of-the-warp",
        PASSED_ON,
        (STORE, STORE.replace("[%x8]", "[%x8+2097152]")),
        "tmem-alloc",
        severity="review",  # chips ignore the bits of other quarters
        **WARPS,
    ),
    Rule(
        "written-before-read",
        PASSED_ON,
        (STORE, ""),
        "uninitialized",
        words="reads tensor memory columns",
        **WARPS,
    ),
    Rule(
        "room-for-every-warp",
        PASSED_ON.replace("64;", "512;"),
        (ALLOC.replace("64;", "512;"), ALLOC.replace("64;", "512;").replace("@%w0", "@!%w4")),
        "tmem-alloc",
        also=("deadlock",),
        **WARPS,
    ),
    Rule(
        "address-read-after-barrier",
        PASSED_ON,
        ("bar.sync 0; // allocated", ""),
        "race",
        also=("uninitialized", "tmem-alloc"),
        **WARPS,
    ),
)

ORDER = (
    Rule(
        "store-awaited", PASSED_ON, (STORED, ""), "race", words="wait::st", also=("uninitialized",), **WARPS
    ),
    Rule("before-fence", PASSED_ON, (BEFORE + " // 1", ""), "race", "review", words="tcgen05.fence", **WARPS),
    Rule("after-fence", PASSED_ON, (AFTER, ""), "race", "review", words="tcgen05.fence", **WARPS),
    Rule("barrier-between", PASSED_ON, (MEET, ""), "race", also=("uninitialized",), **WARPS),
    Rule(  # the use of the register is ordered (9.7.16.6.4.5), the dealloc after it is not
        "load-awaited-before-freed",
        PASSED_ON,
        (LOADED, ""),
        "race",
        "review",
        words="wait::ld",
        also=("async-pending",),
        **WARPS,
    ),
    Rule(
        "load-awaited-before-use", PASSED_ON, (LOADED, ""), "async-pending", "review", also=("race",), **WARPS
    ),
    Rule(
        "load-awaited-before-overwritten", GIVEN_BACK, (LOADED, ""), "race", also=("async-pending",), **WARPS
    ),
    Rule("before-fence-behind-load", GIVEN_BACK, (BEFORE + " // 2", ""), "race", "review", **WARPS),
    Rule("after-fence-before-store", GIVEN_BACK, (AFTER + " // 2", ""), "race", "review", **WARPS),
)

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
INIT = "@%lead mbarrier.init.shared.b64 [%bar], 1;\n@%lead mbarrier.init.shared.b64 [%bar+8], 1; "
INIT += "@%lead fence.mbarrier_init.release.cluster;"
FILL = (
    f"@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 4096;\n@%lead {BULK} [%sm], [%in], 4096, [%bar];"
)
# A: 128 x 16, B: 16 x 16, float16, no swizzle, both at the start of the buffer (window offset 1024)
DESC = encode_matrix_descriptor(MatrixDescriptor(1024, 128, 256, 0))
SHAPE = 1 << 4 | 2 << 17 | 8 << 24  # float32 result, N = 16, M = 128
SETUP = f"mov.b64 %y8, {DESC}; mov.u32 %x9, {SHAPE}; setp.ne.u32 %p, %t, %t; add.u32 %x7, %bar, 8;"
MMA = "@%lead tcgen05.mma.cta_group::1.kind::f16 [%x8], %y8, %y8, %x9, %p;"
MORE = "@%lead tcgen05.mma.cta_group::1.kind::f16 [%x8], %y8, %y8, %x9, %q; // more"
COMMIT = "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%x7];"
COPY = "@%lead tcgen05.cp.cta_group::1.128x128b [%x8], %y8;"
GENERIC_COMMIT = lines(
    "cvt.u64.u32 %y6, %x7; cvta.shared.u64 %y6, %y6;",
    "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%y6];",
)
DONE = wait(0, at=8)
ALL_LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8];"
ALL_LOADED = "tcgen05.wait::ld.sync.aligned;"
START = (INIT, *BEGIN, SETUP, "setp.eq.u32 %q, %t, %t;", FILL, wait(0), AFTER + " // loaded")
READ = (AFTER, ALL_LOAD, ALL_LOADED, "st.global.u32 [%myout], %r0;")
PRODUCT = lines(*START, MMA, COMMIT, DONE, *READ, *END)
GENERIC = lines(
    INIT,
    *BEGIN,
    SETUP,
    "mov.u32 %x1, 0;",
    "FILL: add.u32 %x2, %mine, %x1; st.shared.u32 [%x2], 0; add.u32 %x1, %x1, 512;",
    "setp.lt.u32 %q, %x1, 4096; @%q bra FILL;",
    "fence.proxy.async.shared::cta;",
    "bar.sync 0;",
    AFTER,
    MMA,
    COMMIT,
    DONE,
    "tcgen05.fence::after_thread_sync; // 2",
    *READ[1:],
    *END,
)

MMAS = (
    Rule("product-awaited", PRODUCT, (DONE, ""), "race", also=("uninitialized", "tmem-alloc"), threads=128),
    Rule("product-committed", PRODUCT, (COMMIT, ""), "deadlock", threads=128),
    Rule(  # as Triton 3.6 writes it: the low half of a generic address is that of the shared window
        "commit-to-a-generic-address",
        PRODUCT.replace(COMMIT, GENERIC_COMMIT),
        ("cvta.shared.u64 %y6, %y6;", ""),
        "mbarrier",
        "review",
        words="generic address",
        threads=128,
    ),
    Rule(
        "commit-to-a-barrier-that-is-none",
        PRODUCT.replace(COMMIT, GENERIC_COMMIT),
        ("cvta.shared.u64 %y6, %y6;", "add.u64 %y6, %y6, 64;"),
        "mbarrier",
        words="not in shared memory",
        also=("deadlock",),
        threads=128,
    ),
    Rule(
        "after-fence-behind-commit",
        PRODUCT,
        ("\n" + AFTER + "\n" + ALL_LOAD, "\n\n" + ALL_LOAD),
        "race",
        "review",
        threads=128,
    ),
    Rule(
        "commit-behind-mma",
        lines(*START, "// early", MMA, COMMIT, DONE, *READ, *END).replace(
            f"{MMA}\n{COMMIT}", f"{MMA} {COMMIT} // both"
        ),
        (f"{MMA} {COMMIT} // both", f"{COMMIT} {MMA}"),
        "race",
        also=("uninitialized", "tmem-alloc"),
        threads=128,
    ),
    Rule(
        "operands-loaded",
        PRODUCT,
        (wait(0), ""),
        "race",
        also=("async-pending", "uninitialized"),
        threads=128,
    ),
    Rule(
        "operands-fenced",
        GENERIC,
        ("fence.proxy.async.shared::cta;", ""),
        "proxy-fence",
        "review",
        threads=128,
    ),
    Rule(
        "operands-complete",
        GENERIC,
        ("bar.sync 0;\n" + AFTER, "\n" + AFTER),
        "race",
        also=("proxy-fence",),
        threads=128,
    ),
    Rule(
        "operands-read-before-overwritten",
        lines(*START, MMA, COMMIT, DONE, "st.shared.u32 [%mine], 0;", *READ, *END),
        (DONE, ""),
        "race",
        also=("uninitialized", "tmem-alloc"),
        threads=128,
    ),
    Rule(
        "first-product-overwrites",
        PRODUCT,
        (MMA, MMA.replace("%p;", "%q;")),
        "uninitialized",
        words="adds",
        threads=128,
    ),
    Rule(
        "one-thread-issues",
        PRODUCT,
        (MMA, MMA.replace("%lead", "%w0")),
        "illegal",
        also=("race",),
        threads=128,
    ),
    Rule(
        "one-thread-copies",
        PRODUCT.replace(MMA, COPY),
        (COPY, COPY.replace("%lead", "%q")),
        "race",
        words="each issue this tcgen05.cp, and their columns overlap",
        also=("illegal", "tmem-alloc"),
    ),
    Rule(
        "descriptor-legal",
        PRODUCT,
        (f"mov.b64 %y8, {DESC};", "mov.b64 %y8, 64;"),
        "descriptor",
        also=("uninitialized",),
        threads=128,
    ),
)

LEGAL = (
    Rule("pipelined-mmas", lines(*START, MMA, MORE, MORE, COMMIT, DONE, *READ, *END), threads=128),
    Rule(
        "stores-and-loads-of-one-warp",
        lines(*BEGIN, STORE, STORED, LOAD.replace("%w4", "%w0"), LOADED.replace("%w4", "%w0"), *END),
        **WARPS,
    ),
    Rule("given-back", GIVEN_BACK, **WARPS),
    Rule(
        "two-allocations-of-one-warp",
        lines(
            *BEGIN,
            ALLOC.replace("+64]", "+68]"),
            "bar.sync 0;",
            "ld.shared.u32 %x9, [%bar+68];",
            *END,
            FREE.replace("%x8", "%x9"),
        ),
        **WARPS,
    ),
)
RULES = LIFE + ORDER + MMAS


test_kept, test_broken = kept_and_broken(RULES, LEGAL)


# warp 1 omits the fence for more cells than a look-up records; warp 2 reads others
MANY = lines(
    *(step.replace("64;", "128;") for step in BEGIN),
    "shr.u32 %x1, %t, 5; setp.eq.u32 %q, %x1, 2;",
    f"@%w1 tcgen05.st.sync.aligned.32x32b.x64.b32 [%x8], {{{', '.join(['%t'] * 64)}}};",
    "@%q tcgen05.st.sync.aligned.32x32b.x1.b32 [%x8], {%t};",
    "tcgen05.wait::st.sync.aligned;",
    "@%q tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%x8];",
    "@%q tcgen05.wait::ld.sync.aligned;",
    "bar.sync 0; // last",
    RELINQUISH,
    FREE.replace("64;", "128;"),
    "@%q st.global.u32 [%myout], %r0;",
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("gone", "verdict"), [("// last", "review"), ("@%q tcgen05.wait::ld.sync.aligned;", "error")]
)
def test_an_error_behind_many_reviews_of_one_look_up_is_told(gone, verdict, order):
    rule = Rule("many", MANY, threads=96)
    result = run_rule(rule, MANY.replace(gone, ""), order)
    assert result.verdict == verdict, [str(f) for f in result.findings]
    assert {f.kind for f in result.findings} - {"async-pending"} == {"race"}
