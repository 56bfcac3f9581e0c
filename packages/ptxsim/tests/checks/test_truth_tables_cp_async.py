"""Truth table of what asynchronous copies release, and of cp.async before the async proxy (PTX ISA 8.9.1.1,
9.7.9.25.2, 9.7.13.15.15).
"""

from __future__ import annotations

import pytest
from truth import ORDERS, Rule, check_kept, kept_and_broken, lines, run_rule, wait

SETUP = "shl.b32 %x1, %t, 4; add.u32 %x1, %sm, %x1; mul.wide.u32 %y1, %t, 16; add.u64 %y1, %in, %y1;"
COPY = "@%w0 cp.async.ca.shared.global [%x1], [%y1], 16;"
BESIDE = "@%w0 st.shared.u32 [%mine+4096], %t;"
NOINC = "@%w0 cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];"
TOLD = "@%w0 cp.async.mbarrier.arrive.shared.b64 [%bar];"
ARRIVE = "@%w0 mbarrier.arrive.shared.b64 _, [%bar];"
SEES_COPY = "@%w1 ld.shared.u32 %r0, [%mine];"  # bytes 128 ..: warp 0 has copied 0 .. 511
SEES_BESIDE = "@%w1 ld.shared.u32 %r1, [%other+4096];"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sm], [%in], 256, [%bar];"
EXPECT = "@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;"
STORE = "@%lead st.shared.u32 [%sm+4096], 7;"
FENCE = "fence.proxy.async.shared::cta;"
SEND = "@%lead cp.async.bulk.global.shared::cta.bulk_group [%out], [%sm], 256;"
SENT = lines(SEND, "@%lead cp.async.bulk.commit_group;", "@%lead cp.async.bulk.wait_group 0;")


def init(count: int) -> str:
    fence = "@%lead fence.mbarrier_init.release.cluster;"
    return f"@%lead mbarrier.init.shared.b64 [%bar], {count}; {fence} bar.sync 0;"


HANDED_ON = (
    Rule(
        "copies-by-their-arrival",
        lines(init(32), SETUP, COPY, NOINC, wait(0), SEES_COPY),
        (wait(0), ""),
        "race",
        also=("uninitialized",),
    ),
    Rule(
        "nothing-but-the-copies",
        lines(init(64), SETUP, BESIDE, COPY, NOINC, ARRIVE, wait(0), SEES_COPY, SEES_BESIDE),
        ("arrive.shared.b64 _,", "arrive.relaxed.cta.shared::cta.b64 _,"),
        "race",
    ),
    Rule(
        "told-before-the-phase-can-end",
        lines(init(32), SETUP, COPY, TOLD, ARRIVE, wait(0), SEES_COPY),
        (ARRIVE, ARRIVE.replace("w0", "w1")),
        "race",
        also=("uninitialized",),
    ),
    Rule(
        "told-then-relaxed",
        lines(
            init(32),
            SETUP,
            COPY,
            f"{TOLD} //",
            ARRIVE.replace("arrive.", "arrive.relaxed.cta."),
            wait(0),
            SEES_COPY,
        ),
        (f"{TOLD} //", ""),
        "race",
        also=("uninitialized",),
    ),
    Rule(
        "bytes-hand-on-only-themselves",
        lines(init(1), f"{STORE} {EXPECT}", f"@%lead {BULK}", wait(0), "@%w1 ld.shared.u32 %r0, [%sm+4096];"),
        (f"{STORE} {EXPECT}", f"{EXPECT} {STORE}"),
        "race",
    ),
    Rule(
        "copies-of-a-thread-have-no-order",
        lines(
            SETUP,
            COPY,
            "cp.async.wait_all; //",
            COPY.replace("[%y1]", "[%y1+64]") + " // again",
            "cp.async.wait_all;",
        ),
        ("cp.async.wait_all; //", ""),
        "race",
    ),
)

TO_THE_ASYNC_PROXY = (
    Rule(
        "fence-by-the-copying-threads",
        lines(SETUP, COPY, "cp.async.wait_all;", FENCE, "bar.sync 0;", SENT),
        (FENCE, ""),
        "proxy-fence",
        words="after a wait for the copy",
    ),
    Rule(
        "fence-behind-the-wait",
        lines(SETUP, COPY, f"cp.async.wait_all; {FENCE}", "bar.sync 0;", SENT),
        (f"cp.async.wait_all; {FENCE}", f"{FENCE} cp.async.wait_all;"),
        "proxy-fence",
    ),
    Rule(
        "fence-by-who-waits-for-the-barrier",
        lines(init(32), SETUP, COPY, NOINC, wait(0), f"@%lead {FENCE}", SENT),
        (f"@%lead {FENCE}", ""),
        "proxy-fence",
    ),
    Rule(
        "fence-of-that-space",
        lines(SETUP, COPY, "cp.async.wait_all;", FENCE, "bar.sync 0;", SENT),
        (FENCE, "fence.proxy.async.global;"),
        "proxy-fence",
    ),
    Rule(
        "fence-before-bytes-over-a-copy",
        lines(
            init(1),
            SETUP,
            COPY,
            "cp.async.wait_all;",
            FENCE,
            "bar.sync 0;",
            EXPECT,
            f"@%lead {BULK}",
            wait(0),
        ),
        (FENCE, ""),
        "proxy-fence",
        "review",
    ),
)


OVERLAP = Rule(
    "rows-of-threads-apart",
    lines(
        "shl.b32 %x1, %t, 4;",
        "add.u32 %x1, %sm, %x1; mul.wide.u32 %y1, %t, 16; add.u64 %y1, %in, %y1;",
        COPY.replace("@%w0", ""),
        "cp.async.wait_all;",
    ),
    ("shl.b32 %x1, %t, 4;", "and.b32 %x1, %t, 31; shl.b32 %x1, %x1, 4;"),
    "race",
    words="threads 0 and 32 both store it: their rows or columns overlap",
)


test_kept, test_broken = kept_and_broken((*HANDED_ON, *TO_THE_ASYNC_PROXY, OVERLAP))


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_copy_twice_is_no_race(order):
    """With zeros in place of all that some lanes, or half of what all lanes would read, too."""
    for size, kept in (("16, 16", 1), ("16, %x2", 1), ("16, 8", 1), ("16, %x3", 0)):
        odd = "and.b32 %x2, %t, 1; shl.b32 %x2, %x2, 4; mov.u32 %x3, %x2;"
        copy = COPY.replace("16;", f"{size};")
        rule = Rule("twice", lines(SETUP, odd, copy, "xor.b32 %x3, %x3, 16;", copy, "cp.async.wait_all;"))
        if kept:
            check_kept(rule, order)
        else:
            assert any(f.kind == "race" for f in run_rule(rule, rule.text, order).findings)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("source, severity", [("%in", "review"), ("%y1", "error")])
def test_copies_of_all_lanes_to_one_place(source, severity, order):
    """CuTe's tiled copies of fewer elements than threads do so (CUTLASS's example 87c)."""
    text = lines(
        f"mul.wide.u32 %y1, %t, 16; add.u64 %y1, %in, %y1; cp.async.ca.shared.global [%sm], [{source}], 16;",
        "cp.async.wait_all;",
    )
    findings = run_rule(Rule("one", text), text, order).findings
    assert [(f.kind, f.severity) for f in findings] == [("race", severity)]
    assert severity == "error" or "both write the same value" in findings[0].message


@pytest.mark.parametrize("more", [0, 10, 40])
def test_another_threads_fence_is_remembered(more):
    """After the barrier it is a review, however many fences follow it."""
    fence = f"@%w1 {FENCE}"
    text = lines("st.shared.u32 [%mine], %t;", "bar.sync 0;", fence, "bar.sync 1;", *[fence] * more, SENT)
    findings = run_rule(Rule("later", text), text, "program").findings
    assert [(f.kind, f.severity) for f in findings] == [("proxy-fence", "review")]


@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_that_tells_a_barrier_needs_a_wait_for_that(order):
    """Not for its group: the program has no groups."""
    rule = Rule("told", lines(init(32), SETUP, COPY, NOINC, wait(0), SEES_COPY), (wait(0), ""))
    races = [f for f in run_rule(rule, rule.broken, order).findings if f.kind == "race"]
    assert races and all("wait_group" not in str(f) for f in races)
    assert all("buffer + 8192 B was not waited for" in f.message for f in races)
