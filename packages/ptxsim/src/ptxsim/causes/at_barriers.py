"""Causes that lie in an mbarrier or in who waits for it: counts, phases, elements, bytes, order."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

_COUNT = (
    "init(count) must equal the number of arrivals in a phase: one for each thread that arrives, of all "
    "CTAs, and 1 per commit"
)
_PHASE = "flip the phase bit after each wait, and carry it from one loop to the next"
_READY = (
    "to wait for data, start with parity 0; to wait for a free buffer, start with parity 1, which passes "
    "at once on a fresh barrier"
)
_ONE_ISSUER = (
    "is one thread meant to? Then elect one of one warp: elect.sync by itself elects one in every warp that "
    "reaches it"
)
_BOTH_SIDES = (
    "both sides of a barrier must run the same number of iterations: compare the bounds of their loops"
)
_BYTES = (
    "expect_tx must announce the bytes of all copies that signal this barrier in a phase: every buffer, in "
    "bytes and not elements, and the copies of all CTAs that report to it"
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
        "after the inits, the thread that made them runs fence.mbarrier_init; then comes a barrier of the "
        "CTA or cluster",
    ),
    Cause(
        "init-order",
        40,
        "between init and use, run fence.mbarrier_init and a barrier: of the CTA, or of the cluster for "
        "another CTA's barrier",
    ),
    Cause(
        "parity",
        40,
        "the parity of a phase is 0 or 1: phase ^= 1 after each wait",
    ),
    Cause(
        "reused",
        40,
        "run mbarrier.inval, then a barrier of the threads, before its memory is used for something else",
    ),
    Cause(
        "empty-commit",
        110,
        "the thread that issues the MMAs must commit them: a commit covers only what its own thread issued "
        "before it",
        explains=ERRORS,
    ),
    Cause(
        "shared-place",
        5,
        "no buffer may lie where a barrier is: check the offsets and sizes of all that is in shared memory",
        text="mbarrier {name} lies in {buffer}, {offset} B from its start: what is written there destroys it",
        explains=ERRORS,
    ),
    Cause(
        "no-init",
        110,
        "initialise every element of an array of barriers",
        text="{name} is waited on but was never initialised",
    ),
    Cause(
        "own-barrier",
        110,
        "the copies of both CTAs must name the barrier of one CTA (mapa), which counts all bytes",
        text="the loads of CTA {theirs} (line {line}) report to its own {name}, where nobody waits; CTA "
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
        text="a thread that signals it also waits for {name}{line}, and that wait let {phase} pass a second "
        "time",
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
        text="{who} waited for the wrong parity: the first wait for {name} (line {line}) with parity 1 "
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
        "is it meant to come first? Then move the wait up, in front of the first use of what it waits for",
        text="{name} is waited for{line}, but only after that: in front of it, the wait would order them",
    ),
    Cause(
        "wait-phase",
        170,
        "start the phase bit at 0 to wait for data and at 1 to wait for a free buffer, and flip it once a "
        "round",
        text="with the other parity, the wait for {name}{line} would order them",
    ),
    Cause(
        "arrives-again",
        185,
        "a thread that arrives in every iteration must wait in every iteration, before it arrives, for the "
        "barrier that answers",
        text="{who} arrives again before the phase is over: init({count}) has room for one arrival of "
        "each, and nothing makes it wait",
    ),
    Cause(
        "too-many",
        170,
        _COUNT,
        text="{name} has init({count}) but gets more arrivals in a phase{line}: the phase ends before all "
        "of them have come",
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
        "the one elected thread that issued the MMAs commits them",
    ),
    Cause(
        "again",
        170,
        _PHASE,
        text="the wait for {name}{line} let {phase} pass a second time",
    ),
    Cause(
        "bytes-announced",
        180,
        _BYTES,
    ),
    Cause(
        "early-copy",
        180,
        "before it issues a copy for the next phase, the thread must wait for the phase under way",
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
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came "
        "({arrived}), and every thread that signals it has already done so",
    ),
    Cause(
        "strange-commit",
        185,
        "a commit is one arrival: is it meant for another barrier, the one at which the product or the free "
        "buffer is waited for?",
        text="{name} never completes phase {phase}: it counts {expected} arrivals of threads ({line}), none "
        "of which has come, and {who} {commits} to it ({there})",
    ),
    Cause(
        "one-cta",
        180,
        "where a barrier counts one arrival for the whole cluster, only one CTA may arrive: test the rank, "
        "or count all of them",
        text="{who} arrive on it at line {line}, but it has init({count})",
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
        text="nobody ever signals {name}; what is meant for it goes to {elsewhere}",
    ),
    Cause(
        "partial-apart",
        185,
        "check the index of the barrier, and the CTA's rank, of the arrivals that went elsewhere",
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came "
        "({arrived}), and every thread that signals it has already done so (others went to {elsewhere})",
    ),
    Cause(
        "two-uses",
        135,
        "loads and MMAs must signal barriers of their own: a thread that needs both waits for both",
        text="{name} gets both the bytes of loads ({loads}) and commits of MMAs ({commits}): its phases end "
        "with either",
    ),
    Cause(
        "silent-slot",
        185,
        "signals and waits must begin at the same slot: does the stage move on in between, or the wait name "
        "another one?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived, and has never "
        "waited for {others}, to which the signals went",
    ),
    Cause(
        "silent-rest",
        185,
        "are there more waits than signals: does this loop run in more rounds, or over more stages, than are "
        "ever filled?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived; all that came to "
        "{others} has been waited for",
    ),
    Cause(
        "silent",
        185,
        "the arrive, commit or load for it is missing or under a condition that no thread meets, or the wait "
        "is one too many",
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
        "each wait is answered by one arrival of each thread: does the arrive stand in a loop of its own?",
        text="{who} has arrived {times} times on {name} (line {line}), which lets the other side go on, "
        "but waited {waits} for this one",
    ),
    Cause(
        "ahead-count",
        185,
        _COUNT,
        text="{threads} threads ({who}) arrive on it at line {line}, but it has init({count})",
    ),
    Cause(
        "ahead-commits",
        185,
        "init(count) must count 1 per commit: where several MMA warps hand back one buffer, count each",
        text="{threads} threads ({who}) commit to it at line {line}, each for MMAs to its own columns, but "
        "it has init({count})",
    ),
    Cause(
        "several-lines",
        185,
        "init(count) is the number of arrivals in a phase, and each arrive is one, of 0 bytes too, as each "
        "commit is: is one of these too many, or meant for another barrier? Announce the bytes of all copies "
        "in one arrive",
        text="{who} signals it at {lines} with no wait{its} in between, but it has init({count})",
    ),
    Cause(
        "ahead-issuers",
        185,
        _ONE_ISSUER,
        text="{threads} threads ({who}) signal it at line {line}, but it has init({count})",
    ),
    Cause(
        "uneven",
        185,
        "a thread that signals in every round must wait for the answer in every round: is one of the two "
        "in another loop, or under a condition?",
        text="{who} has signalled {array} {times} (line {line}), but waited for its answer, {answer}, "
        "{waits}",
    ),
    Cause(
        "ahead-rounds",
        185,
        "the loop with the wait must run as many iterations as the one that signals",
        text="{each} {rounds} times, as init({count}) asks, but is waited for {waits} times",
    ),
    Cause(
        "ahead",
        185,
        "which threads signal it, and how often in a phase? Compare that with init(count), and with the "
        "loop that waits",
        text="{arrivals} arrivals came, and init({count}) makes {count} of them a phase",
    ),
    Cause(
        "missed",
        185,
        "a phase may complete only after all waits for the one before: arrive after the wait, and start "
        "with the parity of the phase that you mean (a fresh barrier lets parity 1 pass)",
    ),
    Cause(
        "flipped-early",
        220,
        "a phase bit flips behind the wait that has asked for it; one that all stages share flips only when "
        "the stage wraps to 0",
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
        "is one side meant to start? Its first wait for a free buffer asks for parity 1, which passes",
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
        "it is to be signalled as often as it is waited for: compare the bounds of the loops that wait and "
        "of those that signal, and the conditions in them",
        text="{waits} for {wants}, though each of its {rounds} so far has been waited for: {itself}",
    ),
    Cause(
        "ring",
        240,
        "both sides must go through stages and phases in the same order, from the same start",
        text="a ring of waits: {who}; each would be ended by the next",
    ),
)
