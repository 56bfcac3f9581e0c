"""Truth table of phases that pass or are missed by chance: waits and arrivals that are in their phase only in
this run (PTX ISA 9.7.13.15.16, 9.7.13.1).
"""

from __future__ import annotations

from truth import Rule, kept_and_broken, lines, wait

INIT = "@%lead mbarrier.init.shared.b64 [%bar], 1; @%lead mbarrier.init.shared.b64 [%bar+8], 1; bar.sync 0;"
SIGNAL = "@%lead mbarrier.arrive.shared.b64 _, [%bar];"
ANSWER = "setp.eq.u32 %q, %t, 32; @%q mbarrier.arrive.shared.b64 _, [%bar+8];"
ARRIVE = "@%q mbarrier.arrive.shared.b64 _, [%bar];"
WRITE = "@%w0 st.shared.u32 [%mine], %t; bar.warp.sync 0xffffffff;"
READ = "@%w1 ld.shared.u32 %r0, [%other];"
BY_WARPS_0_AND_2 = "@%lead mbarrier.init.shared.b64 [%bar], 64; setp.ne.u32 %q, %x1, 1; bar.sync 0;"

TEST = "T: mbarrier.test_wait.parity.shared.b64 %q, [%bar], 1;"


def only(guard: str, text: str, label: str) -> str:
    """The lines, executed only by the warps of a predicate."""
    return f"@!{guard} bra {label}; {text} {label}:"


def handed(label: str) -> str:
    """Warp 0 arrives at barrier 1, warp 1 waits there."""
    return only("%w0", "bar.arrive 1, 64;", f"A{label}") + only("%w1", "bar.sync 1, 64;", f"B{label}")


PHASES = (
    Rule(
        "a-wait-before-its-next-phase-ends",
        lines(INIT, only("%w1", wait(1), "A"), "bar.sync 1;", SIGNAL),
        ("bar.sync 1;", ""),
        "mbarrier",
        words="may be over before the wait comes",
        orders=("program", "adverse"),  # in the other one the wait comes late, and hangs
    ),
    Rule(
        "a-test-that-nobody-repeats-cannot-hang",
        lines(INIT, only("%w1", TEST, "A"), SIGNAL),
        (TEST, f"{TEST} @!%q bra T;"),
        "mbarrier",
        words="may be over before the wait comes",
        orders=("program", "adverse"),
    ),
    Rule(
        "a-wait-behind-the-phase-before",
        lines(
            INIT,
            SIGNAL,
            only("%w1", wait(0), "A"),
            ANSWER,
            only("%w0", wait(0, at=8), "B"),
            WRITE,
            SIGNAL,
            only("%w1", wait(1), "C"),
            READ,
        ),
        (only("%w1", wait(0), "A"), ""),
        "race",
        also=("uninitialized", "mbarrier"),
    ),
    Rule(
        "both-arrive-and-wait-and-one-looks-twice",
        lines(
            "@%lead mbarrier.init.shared.b64 [%bar], 2; bar.sync 0;",
            "and.b32 %x2, %t, 31; setp.eq.u32 %q, %x2, 0;",
            ARRIVE,
            wait(0),
            only("%w1", wait(0), "A"),
            ARRIVE,
        ),
        ("[%bar], 2", "[%bar], 1"),
        "mbarrier",
        words="does not pass, and hangs",
        also=("deadlock",),
        orders=("program", "adverse"),
    ),
    Rule(
        "a-phase-for-each-of-31-lanes-counts-from-the-first",
        lines(
            INIT,
            "@%w0 st.shared.u32 [%mine], %t;",
            "@%w0 bar.warp.sync -1;",
            "mov.u32 %x2, 1;",
            "TURN: setp.eq.and.u32 %q, %t, %x2, %w0;",  # one lane after another
            "@%q mbarrier.arrive.shared.b64 _, [%bar];",
            "add.u32 %x2, %x2, 1; setp.lt.u32 %q, %x2, 32; @%q bra TURN;",
            only("%w1", wait(0), "A"),
            READ,
        ),
        ("@%w0 bar.warp.sync -1;", ""),
        "race",
    ),
    Rule(
        "a-wait-after-all-arrivals-of-the-phase-before",
        lines(
            BY_WARPS_0_AND_2,
            ARRIVE,
            "bar.sync 1;",
            only("%q", wait(0), "A"),
            WRITE,
            ARRIVE,
            only("%w1", wait(1), "B"),
            READ,
        ),
        ("bar.sync 1;", ""),
        "race",
        also=("uninitialized", "mbarrier"),
        threads=96,
    ),
    Rule(
        "arrivals-after-all-of-the-phase-before",
        lines(
            BY_WARPS_0_AND_2,
            ARRIVE,
            "bar.sync 1;",
            WRITE,
            ARRIVE,
            only("%w1", wait(1), "A"),
            READ,
        ),
        ("bar.sync 1;", ""),
        "race",
        also=("uninitialized", "mbarrier"),
        threads=96,
    ),
    Rule(
        "a-round-behind-the-one-before",
        lines(handed("1"), "bar.sync 2;", handed("2")),
        ("bar.sync 2;", ""),
        "collective",
        words="is luck, and in another order a warp is left over",
        orders=(7,),  # in the others warp 0 arrives twice in one round, and warp 1 hangs
    ),
    Rule(
        "a-barrier-of-32-is-its-warps-own",
        lines("bar.sync 1, 32;", WRITE, "bar.sync 2;", READ),
        ("bar.sync 2;", ""),
        "race",
    ),
)


test_kept, test_broken = kept_and_broken(PHASES)
