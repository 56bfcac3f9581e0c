"""Truth table of a run's choices: the elected lane, columns of tensor memory, registers of the pool."""

from __future__ import annotations

from test_truth_tables_tmem import ADDRESS, PASSED_ON
from truth import Rule, kept_and_broken, lines, wait

ADVERSE = ("adverse",)
ELECT = "elect.sync %r1|%q, -1;"
INIT = "@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead fence.mbarrier_init.release.cluster;"
FILL = "st.shared.u32 [%mine], %t; fence.proxy.async.shared::cta;"
OUT = "@%q cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 128;"
COMMIT = "@%q cp.async.bulk.commit_group;"
DONE = "@%q cp.async.bulk.wait_group 0;"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 128, [%bar];"
LOAD = f"@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;\n@%lead {BULK}"
ONE_WAITS = wait(0).replace("{ ", "{ @!%lead bra PAST; ").replace(" }", " PAST: }")

ELECTED = (
    Rule(
        "lane-0-inits-elected-uses",
        lines(INIT, "bar.warp.sync -1; // seen", ELECT, "@%q mbarrier.arrive.shared.b64 _, [%bar];", wait(0)),
        ("bar.warp.sync -1; // seen", ""),
        "mbarrier",
        words="after its mbarrier.init",
        orders=ADVERSE,
        threads=32,
    ),
    Rule(
        "elected-stores-and-waits",
        lines(FILL, "bar.warp.sync -1;", ELECT, OUT, COMMIT, DONE),
        (DONE, DONE.replace("%q", "%lead")),
        "async-pending",
        "review",
        orders=ADVERSE,
        threads=32,
    ),
    Rule(
        "who-issues-has-waited",
        lines(INIT, "bar.warp.sync -1;", LOAD, wait(0), ELECT, OUT, COMMIT, DONE),
        (wait(0), ONE_WAITS),
        "race",
        "review",
        orders=ADVERSE,
        threads=32,
    ),
)

COLUMNS = (
    Rule(
        "address-that-alloc-returned",
        PASSED_ON,
        (ADDRESS, "mov.u32 %x8, 0;"),
        "tmem-alloc",
        words="these belong to another CTA",
        also=("tmem-leak", "uninitialized", "race"),
        orders=ADVERSE,
        threads=160,
    ),
)

# two warpgroups: one releases registers, one requests more
GIVE = "@!%w4 setmaxnreg.dec.sync.aligned.u32 104;"
TAKE = "@%w4 setmaxnreg.inc.sync.aligned.u32 152;"
POOL = {"threads": 256, "directives": ".maxnreg 128"}
REGISTERS = (
    Rule("dec-frees-enough", lines(GIVE, TAKE), (GIVE, ""), "deadlock", words="registers", **POOL),
    Rule(
        "counts-fit-the-pool",
        lines(GIVE, TAKE),
        (TAKE, TAKE.replace("152", "160")),
        "deadlock",
        words="the pool",
        **POOL,
    ),
    Rule(
        "dec-gives-back",
        lines(GIVE, TAKE),
        (GIVE, GIVE.replace("104", "136")),
        "illegal",
        words="has 128 registers",
        also=("deadlock",),
        **POOL,
    ),
    Rule(
        "a-multiple-of-8",
        lines(GIVE, TAKE),
        (GIVE, GIVE.replace("104", "100")),
        "illegal",
        also=("deadlock",),
        **POOL,
    ),
    Rule(
        "all-lanes-give-back",
        GIVE,
        (GIVE, GIVE.replace("!%w4", "%lead")),
        "collective",
        "review",
        words="is for the whole warp",
        **POOL,
    ),
    Rule(
        "all-warps-of-a-warpgroup-give-back",
        GIVE,
        (GIVE, GIVE.replace("!%w4", "%w0")),
        "collective",
        "review",
        words="warps of a warpgroup execute different setmaxnreg",
        **POOL,
    ),
    Rule(
        "all-warps-of-a-warpgroup-give-back-to-one-count",
        GIVE,
        (
            GIVE,
            f"mov.u32 %x1, %t; @%w0 {GIVE[6:-4]}96; setp.ge.u32 %q, %x1, 32; @%w4 bra O; @%q {GIVE[6:]} O:",
        ),
        "collective",
        "review",
        words="warp 0 dec 96",
        **POOL,
    ),
    Rule(
        "all-warps-of-a-warpgroup-take-up-to-one-count",
        lines(GIVE, TAKE),
        (
            TAKE,
            "mov.u32 %x1, %t; setp.ge.u32 %q, %x1, 160; @!%w4 bra O;"
            f"@!%q {TAKE[5:].replace('152', '144')} @%q {TAKE[5:]} O:",
        ),
        "collective",
        "review",
        words="inc 144",
        **POOL,
    ),
    Rule(
        "all-warps-of-a-warpgroup-take",
        lines(GIVE, TAKE),
        (TAKE, f"mov.u32 %x1, %t; setp.ge.u32 %q, %x1, 160; @%q {TAKE[5:]}"),
        "collective",
        words="inc 152",
        **POOL,
    ),
    Rule(
        "one-count-for-a-warpgroup",
        lines(GIVE, ""),
        (lines("", ""), lines("", "@%w0 setmaxnreg.dec.sync.aligned.u32 96;")),
        "collective",
        words="warps of a warpgroup execute different setmaxnreg",
        **POOL,
    ),
)
RULES = (*ELECTED, *COLUMNS, *REGISTERS)


test_kept, test_broken = kept_and_broken(RULES)
