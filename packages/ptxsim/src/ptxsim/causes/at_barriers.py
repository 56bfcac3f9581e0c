"""Causes that lie in an mbarrier or in who waits for it: counts, phases, elements, bytes, order."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

_COUNT = (
    "init(count) is the number of arrivals in a phase: every thread that arrives, of all CTAs, and 1 "
    "per commit"
)
_PHASE = "flip the phase bit after each wait, and keep it from one loop to the next"
_READY = (
    "who waits for data begins with parity 0; parity 1 passes at once, which is for who waits for a "
    "free buffer"
)
_ONE_ISSUER = "elect one thread of one warp: elect.sync alone elects one in each warp that comes to it"
_BOTH_SIDES = (
    "both sides of a barrier must run the same number of iterations: compare the bounds of their loops"
)
_BYTES = (
    "the bytes given to expect_tx are the sum of all copies that signal this barrier in a phase: every "
    "buffer, bytes and not elements, and the copies of all CTAs that report to it"
)
_FRESH = "the wait for {name}{line} had passed at once, with parity 1 on a fresh barrier"

AT_BARRIERS = (
    Cause(
        "uninitialised",
        40,
        "no condition on the initialising thread may skip mbarrier.init; every element needs its own",
    ),
    Cause(
        "init-fence",
        265,
        "after the inits fence.mbarrier_init, by the thread that made them; then a barrier of the "
        "CTA or cluster",
    ),
    Cause(
        "init-order",
        40,
        "between init and use: fence.mbarrier_init and a barrier of the CTA, or of the cluster for "
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
        "mbarrier.inval, then a barrier of the threads, before its memory holds something else",
    ),
    Cause(
        "empty-commit",
        110,
        "the thread that issues the MMAs commits them: a commit covers only what its own thread "
        "issued before",
        explains=ERRORS,
    ),
    Cause(
        "no-init",
        110,
        "initialise every element of an array of barriers",
        text="{name} is waited on and was never initialised",
    ),
    Cause(
        "own-barrier",
        110,
        "the copies of both CTAs name the barrier of one CTA (mapa): it counts all bytes",
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
        text="the wait for {name}{line} by who signals it let {phase} pass a second time",
    ),
    Cause(
        "not-flipped",
        140,
        _PHASE,
        text="{asks} {name} for parity {parity} again: {seen} seen phase {phase}, phase {next} has "
        "completed too, so this waits for phase {now}; the phase was not flipped",
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
        "the wait stands in front of the first use of what it waits for: move it up",
        text="{name} is waited for{line}, but only after that: in front of it the wait would order them",
    ),
    Cause(
        "wait-phase",
        170,
        "a phase bit begins with 0 for who waits for data, with 1 for who waits for a free buffer, and "
        "flips once a round",
        text="the wait for {name}{line} asks for the parity of another phase; with the other parity they "
        "would be in order",
    ),
    Cause(
        "arrives-again",
        185,
        "who arrives in every iteration waits, in each, for the one that answers",
        text="{who} arrives again before the phase is over, though init({count}) has room for each: nothing "
        "makes it wait",
    ),
    Cause(
        "too-many",
        170,
        _COUNT,
        text="{name} has init({count}), and more arrive in a phase{line}: it does not wait for all of them",
    ),
    Cause(
        "by-thread",
        170,
        "tcgen05.commit signals when the MMAs are done; an arrival does not wait",
        text="{name} was signalled by a thread{line}, not by a commit",
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
        "bytes",
        185,
        _BYTES,
        text="{name} expects {announced} B in phase {phase} and gets {delivered} B: it never completes",
    ),
    Cause(
        "bytes-only",
        185,
        "after issuing the copies, the same thread arrives with expect_tx, once per phase",
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
        "one-cta",
        180,
        "one CTA of the cluster arrives on a barrier that counts one arrival for all: test its "
        "rank, or count both",
        text="{who} arrive on it at line {line}, but it has init({count})",
    ),
    Cause(
        "announced-apart",
        180,
        "the CTA whose barrier counts the bytes of all copies announces them, alone: test the rank",
        text="CTA {mine} announces bytes at its own {name}, where no copy reports and nobody waits; the "
        "copies report to the {name} of CTA {theirs}, which announces them, too",
    ),
    Cause(
        "both-multiply",
        185,
        "with cta_group::2 one CTA of the pair waits for the operands and issues the MMAs, for both: test "
        "the rank around that loop",
        text="{waits} for {name}, which nobody ever signals: CTA {mine} runs the loop with the MMAs of the "
        "pair (cta_group::2), as CTA {theirs} does",
    ),
    Cause(
        "misrouted",
        185,
        "look at the index of the barrier, at the CTA's rank, and at the multicast mask (one bit "
        "per CTA that hears it)",
        text="nobody ever signals {name}; what is meant for it goes to {elsewhere}",
    ),
    Cause(
        "partial-apart",
        185,
        "look at the index of the barrier, and at the CTA's rank, of the arrivals that went elsewhere",
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came "
        "({arrived}), and every thread that signals it has already done so (others went to {elsewhere})",
    ),
    Cause(
        "two-uses",
        135,
        "loads and MMAs signal barriers of their own, and who needs both waits for both: a phase ends when "
        "all that the barrier counts has come",
        text="{name} gets both the bytes of loads ({loads}) and commits of MMAs ({commits}): its phases end "
        "with either",
    ),
    Cause(
        "silent",
        185,
        "the arrive, commit or load for it is missing, or under a condition that no thread meets",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived",
    ),
    Cause(
        "role-ended",
        185,
        "one role a warp: who runs two loops over the same work, one after the other, finds nothing left for "
        "the second",
        text="{waits} for phase {phase} of {name}: {who}, which would signal it ({line}), has issued other "
        "work before ({other}) and left without coming there",
    ),
    Cause(
        "signals-less",
        240,
        "who waits in each round signals, in each, what answers: does one of the two stand in another loop, "
        "or under a condition?",
        text="{waits} for {wants}: {who} has waited for {answer} {passed} and signalled {array} "
        "{times}, and waits again",
    ),
    Cause(
        "role-later",
        185,
        "one role a warp: who stands in the loop of one does not come to that of another",
        text="{waits} for {wants}: {came}, and what is missing is its own ({line}), in a loop that it comes "
        "to only after this one",
    ),
    Cause(
        "ahead-unwaited",
        185,
        "who signals a barrier in every iteration waits, in each, for the one that answers it",
        text="nobody ever waits for {names}",
    ),
    Cause(
        "ahead-arrives",
        185,
        "each wait is answered by one arrival of each thread: does the arrive stand in a loop of its own?",
        text="{who} has arrived {times} times on {name} (line {line}), which lets its signallers go on, "
        "and waited {waits} for this one",
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
        "init(count) counts 1 per commit: where several MMA warps hand back one buffer, as many as they are",
        text="{threads} threads ({who}) commit to it at line {line}, each for MMAs to its own columns, but "
        "it has init({count})",
    ),
    Cause(
        "several-lines",
        185,
        "init(count) is the number of arrivals in a phase: one arrive announces the bytes of all copies, or "
        "each arrive is counted",
        text="{who} arrives on it at {lines} with no wait in between, but it has init({count})",
    ),
    Cause(
        "ahead-issuers",
        185,
        _ONE_ISSUER,
        text="{threads} threads ({who}) commit to it at line {line}, but it has init({count})",
    ),
    Cause(
        "uneven",
        185,
        "who signals in each round waits, in each, for what answers: does one of the two stand in another "
        "loop, or under a condition?",
        text="{who} has signalled {array} {times} times (line {line}), and waited for what answers it, "
        "{answer}, {waits} times",
    ),
    Cause(
        "ahead-rounds",
        185,
        "the loop with the wait must run as many iterations as the one that signals",
        text="{each} {rounds} times, as init({count}) wants it, and is waited for {waits} times",
    ),
    Cause(
        "ahead",
        185,
        "who signals it, and how often in a phase? Compare that with init(count), and with the loop"
        " that waits",
        text="{arrivals} arrivals came, and init({count}) makes {count} of them a phase",
    ),
    Cause(
        "missed",
        185,
        "whoever completes a phase must come after all waits for the one before: arrive after the "
        "wait, and start with the parity of the phase that you mean (a fresh barrier lets parity 1 "
        "pass)",
    ),
    Cause(
        "flipped-early",
        220,
        "a phase bit that all stages share flips when the stage wraps to 0, not from stage to stage",
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
        "one signal lets one wait pass: do both stand in loops, or neither? Is the phase of the wait right?",
        text="{waits} for phase {phase} of {name}, but {who} {signals} it only {times}",
    ),
    Cause(
        "nobody-starts",
        240,
        "one side must start: the first wait for a free buffer asks for parity 1, which passes at once",
        text="nobody starts: {who} wait for each other",
    ),
    Cause(
        "self-wait",
        240,
        "who signals a barrier and waits for it signals first: look at their order, then at the phase",
        text="{waits} for {wants}: {itself}",
    ),
    Cause(
        "more-waits",
        240,
        "the loop that waits runs once too often for the one that signals: compare their bounds",
        text="{waits} for {wants}, though each of its {rounds} so far has been waited for: {itself}",
    ),
    Cause(
        "ring",
        240,
        "both sides must go through stages and phases in the same order, from the same start",
        text="a ring of waits: {who}; each would be ended by the next",
    ),
)
