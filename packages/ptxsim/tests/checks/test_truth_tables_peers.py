"""Truth table of CTAs of a cluster that communicate through memory: scopes (PTX ISA 8.5), CTAs not yet
started.

Also mbarrier states, which belong to the current phase or to the one before (9.7.13.15.16).
"""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
PEER = "xor.b32 %x6, %rank, 1; mapa.shared::cluster.u32 %x5, %sm, %x6;"
FIRST = "@%lead st.shared.u32 [%sm], 0; @%lead st.shared.u32 [%sm+64], 0;"
ROLES = "setp.eq.and.u32 %p, %rank, 0, %lead; setp.eq.and.u32 %q, %rank, 1, %lead;"
DATA = "@%p st.shared::cluster.u32 [%x5+64], 7;"
SET = "@%p st.release.cluster.shared::cluster.u32 [%x5], 1;"
POLL = "A: ld.acquire.cluster.shared.u32 %r0, [%sm]; setp.eq.u32 %p, %r0, 0; @%p bra A;"
READ = "ld.shared.u32 %r1, [%sm+64]; B:"
HANDED = lines(FIRST, MEET, PEER, ROLES, DATA, SET, "@!%q bra B;", POLL, READ, MEET)
COUNTED = "@%p red.release.cluster.shared::cluster.add.u32 [%x5], 1;"

STATE = "mbarrier.arrive.shared.b64 %y5, [%bar];"
ARRIVE = "mbarrier.arrive.shared.b64 _, [%bar];"
ASK = "T: mbarrier.test_wait.shared.b64 %p, [%bar], %y5;"
STATES = lines("@%lead mbarrier.init.shared.b64 [%bar], 1;", "@!%lead bra C;", ARRIVE, STATE, ASK, "C:")

REMOTE = "@%lead st.shared::cluster.u32 [%x5], 7;"

TX = "mbarrier::complete_tx::bytes"
SEND = f"@%lead cp.async.bulk.shared::cluster.shared::cta.{TX} [%x5+1024], [%sm], 256, [%x7];"
WAIT = wait(0)
SENT = lines(
    "@%lead mbarrier.init.shared.b64 [%bar], 1; st.shared.u32 [%mine], 1;",
    "@%lead fence.mbarrier_init.release.cluster; fence.proxy.async;",
    "@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256;",
    MEET,
    f"{PEER} add.u32 %x7, %x5, 8192; {SEND}",
    f"{WAIT} // by all",
    "ld.shared.u32 %r1, [%mine+1024];",
    MEET,
)

CLEAR = "st.shared.u32 [%mine+1024], 0; fence.proxy.async;"

OWN = "ld.shared.u32 %r1, [%mine]; // own"
PUSHED = lines(
    MEET,
    f"{PEER} sub.u32 %x7, %mine, %sm; add.u32 %x7, %x5, %x7; st.shared::cluster.u32 [%x7], %t;",
    f"{MEET} {OWN}",
)

RULES = (
    Rule(
        "read-behind-the-wait-of-the-cluster",
        lines(PUSHED, MEET),
        (f"{MEET} {OWN}", MEET.replace(" ", f" {OWN[:-7]} ")),
        "race",
        words="is not waited for before the read",
        cluster=2,
    ),
    Rule(
        "the-cluster-ends-behind-the-wait",
        PUSHED,
        (f"{MEET} {OWN}", f"{OWN[:-7]} {MEET.partition(' ')[0]}"),
        "cluster",
        words="is not waited for before the end",
        also=("race",),
        cluster=2,
    ),
    Rule(
        "cleared-before-a-peer-sends",
        SENT.replace(MEET, f"{CLEAR} {MEET}", 1),
        (f"{CLEAR} {MEET}", f"{MEET} {CLEAR}"),
        "race",
        words="no barrier of the cluster stands between the write by thread ",
        cluster=2,
    ),
    Rule(
        "a-flag-set-at-the-scope-of-the-cluster",
        HANDED,
        (SET, SET.replace("release.cluster", "release.cta")),
        "race",
        cluster=2,
    ),
    Rule(
        "a-flag-polled-at-the-scope-of-the-cluster",
        HANDED,
        (POLL, POLL.replace("acquire.cluster", "acquire.cta")),
        "race",
        cluster=2,
    ),
    Rule(
        "a-count-at-the-scope-of-the-cluster",
        HANDED.replace(SET, COUNTED),
        (COUNTED, COUNTED.replace("release.cluster", "release.cta")),
        "race",
        cluster=2,
    ),
    Rule(
        "a-peer-that-has-started",
        lines(f"{MEET} // first", PEER, REMOTE, MEET),
        (f"{MEET} // first", ""),
        "cluster",
        words="has started",
        cluster=2,
    ),
    Rule(
        "a-copy-between-two-ctas",
        SENT,
        (f"{WAIT} // by all", f"@%lead bra W; bra X; W: {WAIT} X:"),
        "race",
        words="write by cp.async.bulk of buffer of CTA",
        cluster=2,
    ),
    Rule(
        "a-state-of-the-phase-before",
        STATES,
        (ASK, f"{ARRIVE} {ASK}"),
        "mbarrier",
        "review",
        words="2 phases old",
    ),
)


test_kept, test_broken = kept_and_broken(RULES)
