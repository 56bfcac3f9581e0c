"""Causes at an mbarrier or in its waiters: counts, phases, elements, bytes, order."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

_COUNT = (
    "init(count) must equal the number of arrivals in a phase: one for each arriving thread of every CTA, "
    "and one for each commit"
)
_PHASE = "flip the phase bit after each wait, and carry it from one loop to the next"
_READY = (
    "to wait for data, start with parity 0; to wait for a free buffer, start with parity 1, which passes "
    "at once on a fresh barrier"
)
_ONE_ISSUER = (
    "should only one thread do this? Then elect one thread of one warp: elect.sync alone elects one in every "
    "warp that reaches it"
)
_BOTH_SIDES = (
    "both sides of a barrier must run the same number of iterations: compare the bounds of their loops"
)
_BYTES = (
    "expect_tx must announce the bytes of all copies that signal this barrier in a phase: every buffer, in "
    "bytes rather than elements, and the copies of every CTA that signals it"
)
_FRESH = "the wait for {name}{line} passed at once: parity 1 on a fresh barrier"

AT_BARRIERS = (
    Cause(
        "uninitialised",
        40,
        "make sure that no condition skips mbarrier.init; every element of an array needs its own",
    ),
    Cause(
        "init-fence",
        265,
        "after the inits, the thread that made them must run fence.mbarrier_init; then comes a CTA or "
        "cluster barrier",
    ),
    Cause(
        "init-order",
        40,
        "between init and use, run fence.mbarrier_init and a CTA barrier, or a cluster barrier for another "
        "CTA's mbarrier",
    ),
    Cause(
        "parity",
        40,
        "the parity of a phase is 0 or 1: phase ^= 1 after each wait",
    ),
    Cause(
        "reused",
        40,
        "run mbarrier.inval and then a barrier of the threads before its memory is used for something else",
    ),
    Cause(
        "empty-commit",
        110,
        "the thread that issues the MMAs must commit them: a commit covers only what its own thread has "
        "issued before it",
        explains=ERRORS,
    ),
    Cause(
        "shared-place",
        5,
        "no buffer may overlap a barrier: check the offsets and sizes of everything in shared memory",
        text="mbarrier {name} lies in {buffer}, {offset} B from its start: writing the buffer there destroys "
        "it",
        explains=ERRORS,
    ),
    Cause(
        "own-barrier",
        110,
        "the copies of both CTAs must name the barrier of one CTA (mapa), which counts all bytes",
        text="the loads of CTA {theirs} ({line}) report to its own {name}, where nobody waits; CTA "
        "{mine} waits for them at the {name} of CTA {mine}",
    ),
    Cause(
        "issuers",
        130,
        _ONE_ISSUER,
        text="{threads} each issue this {what}",
    ),
    Cause(
        "stale",
        140,
        _PHASE,
    ),
    Cause(
        "again-ahead",
        140,
        _PHASE,
        text="a thread that signals it also waits for {name}{line}, and that wait passed twice on {phase}",
    ),
    Cause(
        "not-flipped",
        140,
        _PHASE,
        text="{asks} {name} for parity {parity} again: {seen} seen phase {phase}, phase {next} has "
        "completed too, so this waits for phase {now}",
    ),
    Cause(
        "fresh-wait",
        140,
        _READY,
        text="{who} waited for the wrong parity: the first wait for {name} ({line}) with parity 1 "
        "{passes}; data comes with phase 0",
    ),
    Cause(
        "fresh-read",
        160,
        _READY,
        text=_FRESH,
    ),
    Cause(
        "fresh",
        170,
        _READY,
        text=_FRESH,
    ),
    Cause(
        "wait-late",
        170,
        "should the wait come first? Then move it up, before the first use of what it waits for",
        text="{name} is waited for{line}, but only after that: an earlier wait would order them",
    ),
    Cause(
        "wait-phase",
        170,
        "start the phase bit at 0 to wait for data and at 1 to wait for a free buffer, and flip it once per "
        "round",
        text="with the other parity, the wait for {name}{line} would order them",
    ),
    Cause(
        "arrives-again",
        185,
        "a thread that arrives in every iteration must also wait in every iteration, before it arrives, for "
        "the barrier that answers",
        text="{who} {arrives} again before the phase is over: init({count}) has room for one arrival of each "
        "thread, and nothing makes it wait",
    ),
    Cause(
        "signals-first",
        185,
        "move the wait up, before what it makes room for",
        text="{name} is waited for{line} only after this arrival",
    ),
    Cause(
        "too-many",
        170,
        _COUNT,
        text="{name} has init({count}) but gets more arrivals in a phase{line}: the phase ends before all "
        "of them have come (init: {init})",
    ),
    Cause(
        "by-thread",
        170,
        "tcgen05.commit signals when the MMAs are done; an arrive does not wait for them",
        text="{name} was signalled by a thread{line}, not by a commit",
    ),
    Cause(
        "commit-lanes",
        30,
        "the elected thread that issued the MMAs must also commit them",
    ),
    Cause(
        "again",
        170,
        _PHASE,
        text="the wait for {name}{line} passed twice on {phase}",
    ),
    Cause(
        "bytes-announced",
        180,
        _BYTES,
    ),
    Cause(
        "early-copy",
        180,
        "a thread must wait for the current phase before it issues a copy for the next one",
    ),
    Cause(
        "bytes",
        185,
        _BYTES,
        text="{name} expects {announced} B in phase {phase} and gets {delivered} B: it never completes",
    ),
    Cause(
        "bytes-only",
        185,
        "the thread that issues the copies must also arrive with expect_tx, once per phase",
        text="{name}: TMA has delivered {bytes} B, but nobody has arrived (0/{expected}) to expect them",
    ),
    Cause(
        "arrivals",
        185,
        _COUNT,
    ),
    Cause(
        "left-open",
        40,
        _COUNT,
    ),
    Cause(
        "partial",
        185,
        _COUNT,
        text="{name} ({init}) never completes phase {phase}: only {count} of {expected} arrivals came "
        "({arrived}), and every thread that signals it has already done so",
    ),
    Cause(
        "strange-commit",
        185,
        "a commit is one arrival: is it meant for another barrier, the one where threads wait for the "
        "product or for the free buffer?",
        text="{name} never completes phase {phase}: it counts {expected} arrivals of threads ({line}), none "
        "of which has come, and {who} {commits} to it ({there})",
    ),
    Cause(
        "one-cta",
        180,
        "if a barrier counts one arrival for the whole cluster, only one CTA may arrive: test the rank, or "
        "count all of them",
        text="{who} arrive on it at {line}, but it has init({count})",
    ),
    Cause(
        "announced-apart",
        180,
        "only the CTA whose barrier counts the bytes of all copies may announce them: test the rank",
        text="CTA {mine} announces bytes at its own {name}, where no copy reports and nobody waits; the "
        "copies report to the {name} of CTA {theirs}, which announces them, too",
    ),
    Cause(
        "misrouted",
        185,
        "check the index of the barrier, the CTA's rank, and the multicast mask (one bit for each CTA that "
        "receives the signal)",
        text="nobody ever signals {name}; the signals meant for it go to {elsewhere}",
    ),
    Cause(
        "partial-apart",
        185,
        "check the barrier index and the CTA rank of the arrivals that went elsewhere",
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came "
        "({arrived}), and every thread that signals it has already done so (others went to {elsewhere})",
    ),
    Cause(
        "two-uses",
        135,
        "loads and MMAs must signal separate barriers: a thread that needs both waits for both",
        text="{name} gets both the bytes of loads ({loads}) and commits of MMAs ({commits}): either may end "
        "its phases",
    ),
    Cause(
        "silent-slot",
        185,
        "signals and waits must start at the same slot: does the stage advance in between, or does the wait "
        "name another slot?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived, and has never "
        "waited for {others}, to which the signals went",
    ),
    Cause(
        "silent-rest",
        185,
        "are there more waits than signals: does this loop run more rounds, or use more stages, than are "
        "ever filled?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived; every phase of "
        "{others} has been waited for",
    ),
    Cause(
        "silent",
        185,
        "the arrive, commit or load for it is missing or under a condition that no thread meets, or this "
        "wait is one too many",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived",
    ),
    Cause(
        "ahead-unwaited",
        185,
        "a thread that signals a barrier in every iteration must wait, in every iteration, for the barrier "
        "that answers",
        text="nobody ever waits for {names}",
    ),
    Cause(
        "ahead-arrives",
        185,
        "each wait must be answered by one arrival per thread: is the arrive in a loop of its own?",
        text="{who} has arrived {times} times on {name} ({line}), which lets the other side continue, "
        "but waited {waits} for this one",
    ),
    Cause(
        "ahead-count",
        185,
        _COUNT,
        text="{threads} threads ({who}) arrive on it at {line}, but it has init({count})",
    ),
    Cause(
        "ahead-commits",
        185,
        "init(count) must count one per commit: if several MMA warps hand back one buffer, count each of "
        "them",
        text="{threads} threads ({who}) commit to it at {line}, each for MMAs to its own columns, but "
        "it has init({count})",
    ),
    Cause(
        "several-lines",
        185,
        "init(count) is the number of arrivals in a phase; each arrive is one, even with 0 bytes, and so is "
        "each commit: is one of these too many, or meant for another barrier? Announce the bytes of all "
        "copies in one arrive",
        text="{who} signals {it} at {lines} with no wait{its} in between, but it has init({count})",
    ),
    Cause(
        "ahead-issuers",
        185,
        _ONE_ISSUER,
        text="{threads} threads ({who}) signal it at {line}, but it has init({count})",
    ),
    Cause(
        "uneven",
        185,
        "a thread that signals in every round must wait for the answer in every round: is one of the two "
        "in another loop, or under a condition?",
        text="{who} has signalled {array} {times} ({line}), but waited for its answer, {answer}, {waits}",
    ),
    Cause(
        "ahead-rounds",
        185,
        "the loop with the wait must run as many iterations as the one that signals",
        text="{each} {rounds} times, as init({count}) asks, but the barrier is waited for {waits} times",
    ),
    Cause(
        "ahead",
        185,
        "which threads signal it, and how often in a phase? Compare that with init(count), and with the "
        "loop that waits",
        text="{arrivals} arrivals came, and init({count}) ends a phase after {count} of them",
    ),
    Cause(
        "missed",
        185,
        "a phase may complete only after all waits for the previous one: arrive after the wait, and start "
        "with the parity of the phase that you mean (a fresh barrier lets parity 1 pass)",
    ),
    Cause(
        "flipped-early",
        220,
        "flip a phase bit only after the wait that used it; a bit that all stages share flips only when the "
        "stage wraps to 0",
        text="{waits} for phase {phase} of {name}, but {has} never waited for phase {missed}, which is "
        "complete: the phase was flipped too early{first}",
    ),
    Cause(
        "ended",
        240,
        _BOTH_SIDES,
        text="{waits} for phase {phase} of {name}, but {who} {has} left {its} loop after {rounds} "
        "({line}) and will not signal again",
    ),
    Cause(
        "ended-once",
        240,
        "one signal lets one wait pass: are both in loops, or neither? Is the phase of the wait right?",
        text="{waits} for phase {phase} of {name}, but {who} {signals} it only {times}",
    ),
    Cause(
        "nobody-starts",
        240,
        "should one side start? Its first wait for a free buffer must ask for parity 1, which passes at once",
        text="nobody starts: {who} wait for each other",
    ),
    Cause(
        "self-wait",
        240,
        "a thread that both signals a barrier and waits for it must signal first: check their order, then "
        "the phase",
        text="{waits} for {wants}: {itself}",
    ),
    Cause(
        "more-waits",
        240,
        "a barrier must be signalled as often as it is waited for: compare the loops that wait with those "
        "that signal, both their bounds and the conditions in them",
        text="{waits} for {wants}, though each of its {rounds} so far has been waited for: {itself}",
    ),
    Cause(
        "ring",
        240,
        "both sides must go through stages and phases in the same order, from the same start",
        text="a ring of waits: {who}; each would be ended by the next",
    ),
)
