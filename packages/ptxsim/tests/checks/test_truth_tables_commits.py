"""Truth table of tcgen05.commit by a thread that has issued no MMA (PTX ISA 9.7.16.9.4).

It tracks what its own thread has issued, and so arrives at once. If a product is then read too early, that is
the cause; otherwise it may be meant as an arrival, and has no part in a race of others.
"""

from __future__ import annotations

from test_truth_tables_tmem import COMMIT, DONE, END, INIT, MMA, PRODUCT, READ, START
from truth import Rule, kept_and_broken, lines, wait

OTHER_COMMIT = COMMIT.replace("@%lead", "setp.eq.u32 %q, %t, 32; @%q")
OTHER_INIT = "@%lead mbarrier.init.shared.b64 [%bar+16], 1;"
TO_OTHER = OTHER_COMMIT.replace("[%x7]", "[%x6]").replace("setp", "add.u32 %x6, %bar, 16; setp")
WRITTEN = "@%lead st.shared.u32 [%bar+128], 1; bar.sync 0; // written"
REWRITTEN = "@%w1 st.shared.u32 [%bar+128], 2;"
ARRIVED = lines(*START, MMA, COMMIT, DONE, *READ, WRITTEN, REWRITTEN, TO_OTHER, wait(0, at=16), *END)

TO_THIRD = "add.u32 %x6, %bar, 16; " + COMMIT.replace("[%x7]", "[%x6]")
SEEN_BEFORE = wait(0, at=16)
# the first phase of DONE's barrier is over as well when a later commit of the same thread has signalled
IN_TURN = lines(*START, MMA, COMMIT, MMA, TO_THIRD, MMA, COMMIT, SEEN_BEFORE, wait(1, at=8), *READ, *END)

RULES = (
    Rule(
        "commits-signal-in-turn",
        IN_TURN.replace(INIT, OTHER_INIT + INIT),
        (SEEN_BEFORE, ""),
        "race",
        also=("uninitialized", "tmem-alloc", "async-pending"),
        threads=128,
    ),
    Rule(
        "committed-by-the-issuer",
        PRODUCT,
        (COMMIT, OTHER_COMMIT),
        "mbarrier",
        words="covers no MMA",
        also=("race", "uninitialized", "tmem-alloc"),
        threads=128,
    ),
    Rule(
        "a-commit-as-an-arrival",
        ARRIVED.replace(INIT, OTHER_INIT + INIT),
        ("bar.sync 0; // written", ""),
        "race",
        threads=128,
    ),
)


test_kept, test_broken = kept_and_broken(RULES)
