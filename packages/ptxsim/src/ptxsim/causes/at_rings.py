"""Causes in a ring's index: that of a barrier's element, or of the buffer that goes with it."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

_SLOT = "signal and wait for the same element of the array of barriers"

_OTHERS_WAITED = "{absent} did not wait for {name}: only {waiter} did{line}{bare}"

AT_RINGS = (
    Cause(
        "misnamed",
        185,
        "a role must wait for what the other role signals: let this wait name the barrier that nobody waits "
        "for",
        text="{who} {waits} for {name} ({line}), as another line does, and nobody ever waits for {ignored}: "
        "the wait names the wrong barrier",
    ),
    Cause(
        "one-misnamed",
        185,
        "one of the two waits is meant for the barrier that nobody waits for: a role must wait for what the "
        "other role signals",
        text="two lines wait for {name}, {both}, and nobody ever waits for {ignored}: one of the waits names "
        "the wrong barrier",
    ),
    Cause(
        "missent",
        185,
        "let this line signal the barrier that is waited for and that nobody signals",
        text="nobody signals {silent}, for which {waiter} {waits}, and {who} {signals} {name} ({line}), as "
        "another line does: that line names the wrong barrier",
    ),
    Cause(
        "one-missent",
        185,
        "one of the two signals is meant for the barrier that nobody signals: each barrier must be signalled "
        "by one line",
        text="nobody signals {silent}, for which {waiter} {waits}, and two lines signal {name}: {both}; one "
        "of them names the wrong barrier",
    ),
    Cause(
        "announced-twice",
        40,
        "announce the bytes of all copies of a stage in one arrive: is it inside a loop over the copies?",
        text="{who} announces {bytes} B ({line}) twice in a row, without using another barrier in between",
    ),
    Cause(
        "outside-array",
        38,  # before `no-slot`: a slot still further on, where nobody has initialised a barrier
        "stages run from 0 to depth - 1: does the stage wrap at the depth of this array, and does the array "
        "have as many elements as its ring?",
        text="stage {size} of {array}, a barrier array of {size}, is used at {line}: that is {name}",
        explains=ERRORS,
    ),
    Cause(
        "moved-first",
        235,
        "advance the pipeline state after the wait and the work of its round, not before: the first round is "
        "for the first element, with the state's initial phase",
        text="{waits} for {wants}, which nobody has used yet: its waits began at {first}, and reach {name} "
        "only after a full round, with the phase of the next round",
    ),
    Cause(
        "ring-short",
        185,
        "give the array one element for each round that may be in flight, as many as the buffers have "
        "stages; or let its signaller wait for an answer in every round, on all elements of it if each is "
        "signalled by other threads",
        text="{who} {signals} {array}, which has {count}, and is held back only by {other}, which has "
        "{more}: that many rounds may run ahead of the wait",
    ),
    Cause(
        "past-buffer",
        165,
        "does the stage wrap at the depth of the buffer, and does the buffer have as many stages as its ring "
        "of barriers?",
        text="the load at {line} fills {first}, and after that {buffer}, which follows it in memory",
    ),
    Cause(
        "no-slot",
        40,
        "slots run from 0 to this array's depth - 1: a single barrier has only slot 0",
    ),
    Cause(
        "no-work",
        185,
        "all roles must run the same number of rounds, which may be none in some CTAs: does this role count "
        "its rounds differently?",
        text="{waits} for {name}, and all others have left their loops: in this cluster nobody signals any "
        "barrier, so there is no work for it",
    ),
    Cause(
        "own-arrival",
        170,
        "signal the barrier of the CTA whose thread waits (mapa, and an init that counts the threads of all "
        "CTAs), or let a thread of this CTA wait, too",
        text="{name} is signalled, but nobody waits for it: threads wait for {other}",
    ),
    Cause(
        "unused-back",
        150,
        "hand back a stage once for each use: is the arrive or commit in a loop of its own, or does it name "
        "stages that this round has not used?",
        text="{who} signals {name} {times} ({line}), which says that stages are free, but has waited "
        "for {array} {waits}",
    ),
    Cause(
        "stays",
        140,
        "the stage must advance in every round, whichever branch is taken: after the last element it is 0 "
        "again, and there the phase flips",
        text="{who} uses {name} again and again ({times} times), and nobody uses {others}: the stage does "
        "not move on",
    ),
    Cause(
        "never-waits",
        165,
        "every thread that reads the data must wait for it, in every round: another thread's wait counts "
        "only if a CTA barrier that both reach comes after it",
        text=_OTHERS_WAITED,
    ),
    Cause(
        "others-waited",
        230,
        "one thread's wait does not count for the others: put a CTA barrier after it, or let every thread "
        "wait itself",
        text=_OTHERS_WAITED,
    ),
    Cause(
        "arrives-alone",
        170,
        "every thread that reads must arrive, and init must count them all; or put a barrier of these "
        "threads before the single arrive",
        text="{who} {arrives} on {name}{line} for all, and nothing makes it wait for the reads of {reader}",
    ),
    Cause(
        "sent-by-both",
        150,
        "a multicast lands at the same offset in each CTA of its mask: give each CTA's tile a place of its "
        "own there; or load what only one CTA needs without a mask",
        text="{one} and {other} each multicast their tile to both, to the same place in {buffer}",
    ),
    Cause(
        "lanes-apart",
        150,
        "let the lane that waits also do what depends on the wait, or put a warp barrier between them",
        text="{waiter} waits for {array}, and {who} signals {name} ({line}) without waiting: they are "
        "lanes of one warp, and nothing synchronises them",
    ),
    Cause(
        "arrived-again",
        175,
        "bar.arrive does not wait: before a thread arrives again, a barrier in the other direction must make "
        "it wait; does any thread report that the buffer may be overwritten?",
        text="{waits} at {wants}: {state}; {line} has arrived there again before the phase was over",
    ),
    Cause(
        "skips-phases",
        165,
        "a parity distinguishes a phase only from the one before it: wait in each round, or on a barrier "
        "that completes once, when everything is done",
        text="{reader} {passes} the wait for {name}{line} in {phase}, which has the same parity as the phase "
        "that is meant; {other} {waits} for each phase",
    ),
    Cause(
        "no-mma",
        205,
        "does the MMA loop run at all for this K? What the loads have filled must be multiplied too, after "
        "the loop if not in it",
        text="no MMA has been issued in this cluster{line}",
    ),
    Cause(
        "cleared-late",
        205,
        "after clearing tensor memory: tcgen05.wait::st, tcgen05.fence::before_thread_sync, a barrier; then "
        "tcgen05.fence::after_thread_sync and the first MMA. Or let the first MMA overwrite",
        text="tcgen05.st ({line}) clears them, and nothing makes this MMA wait for it",
    ),
    Cause(
        "columns-of-a-warp",
        280,
        "a warp can access only its own 32 lanes of tensor memory, but all columns: each thread must read "
        "every column of its row and store them all",
    ),
    Cause(
        "leaves-it-to-others",
        170,
        "every warp whose MMAs read a stage must hand it back: each commits, and init counts them all",
        text="{name}, to which warp {theirs} commits, was waited for; warp {mine} issued this {work}, and "
        "commits to none of these barriers",
    ),
    Cause(
        "other-turn",
        170,
        _SLOT,
        text="{other} was waited for{line} where {name}, of the stage that is then signalled, should be",
    ),
    Cause(
        "slot",
        170,
        _SLOT,
        text="{name} is signalled, but {other} was waited for",
    ),
    Cause(
        "other-issuer",
        170,
        "wait for the barrier to which the issuer of these MMAs commits",
        text="{name}, to which warp {theirs} commits, was waited for; warp {mine} issued this {work}",
    ),
    Cause(
        "buffer",
        170,
        "fill and read the same element of this buffer: the one with the same index as its barrier",
        text="{name} is signalled, but {other} was waited for, which is right for {rest}: {buffer} differs, "
        "in its index or its address",
    ),
    Cause(
        "loaded-twice",
        170,
        "each load of a round must fill a place of its own: check the stage that it is given, and that no "
        "two buffers share memory",
        text="the thread loads both to one place in one round ({lines}), and both report to {name}",
    ),
    Cause(
        "loaded-again",
        170,
        "load each tile once: if loads come before a loop, the loop must begin with the tile after theirs "
        "and load each tile into the place that its round has just used",
        text="the thread loads this tile to this place a second time ({lines}), and has not waited for the "
        "first load",
    ),
    Cause(
        "loads-first",
        170,
        "load, wait and use belong to one round of one loop; to load ahead, each load needs its own stage",
        text="the thread loads both to one place ({lines}), and has neither waited for the first nor used it",
    ),
    Cause(
        "load-apart",
        170,
        "all loads of one stage must report to the barrier of that stage: check the one that this load names",
        text="the load reports to {name}, and the one issued with it{line} to {other}, which was waited for",
    ),
    Cause(
        "shifted",
        150,
        _SLOT,
        text="{signaller} signals {signalled} first ({line}), {waiter} waits for {awaited} first{where}, and "
        "so on round the ring, always {distance} apart",
    ),
    Cause(
        "one-slot",
        150,
        "signal the element of the current round: the stage, which changes from round to round",
        text="{who} waits for {names} in turn, and {verb} {name} each time ({line}, {times} times)",
    ),
    Cause(
        "parted",
        220,
        "both sides must advance to the next element after each round, from the same first one and modulo "
        "the same depth",
        text="{waits} for {wants}: wait number {number} of its array is for {awaited}, signal number "
        "{number} ({signaller}, {line}) for {signalled}; before that both go through the same elements",
    ),
    Cause(
        "elements-meet",
        185,
        "give each line barriers of its own: if an array has two per stage, these are 2 * stage and 2 * "
        "stage + 1",
        text="{who} arrives on it at {lines} with no wait in between: these name {names} in the first round, "
        "but the same element later",
    ),
    Cause(
        "out-of-turn",
        240,
        "a loop that continues a ring must begin at the element and phase where the loop before it ended: "
        "carry both over, and advance after each wait",
        text="{waits} for {wants}, where {due} comes next: its waits have gone round {array}, {count} in a "
        "row, and phase {phase} of {due} is complete but has not been waited for",
    ),
    Cause(
        "leaves-ring",
        185,
        "signal the element whose turn it is: a load must signal the one whose reader was just waited for, "
        "and the stage advances after that",
        text="{who} {signals} {array} in order, and then, after {last}, {name} instead of {due}",
    ),
    Cause(
        "ahead-slots",
        185,
        _SLOT,
        text="{names} signalled, but only {others} waited for{line}",
    ),
    Cause(
        "each-for-all",
        185,
        "init(n) counts arrivals: either each thread arrives once, or one thread arrives for all, with their "
        "number as its count",
        text="{who} {verb} with count {makes} each, {all} arrivals where init({count}) expects {count}",
    ),
    Cause(
        "all-at-each",
        185,
        "is each element for some of these threads? Then index it by the stage or by the consumer's number. "
        "Is it for all of them? Then init must count them all",
        text="{who} {verb} on all elements of {array}, {threads} threads where init({count}) expects {count}",
    ),
    Cause(
        "ahead-silent",
        185,
        _SLOT,
        text="{names} waited for, but {line} signals only {others}",
    ),
    Cause(
        "bytes-elsewhere",
        180,
        "a copy and the arrive that announces its bytes must name the same element",
    ),
    Cause(
        "ignored-answer",
        40,
        "repeat try_wait in a loop until it returns true: it gives up after a time that the chip chooses",
        text="{name} is tested once, while its phase is open, and the result is ignored: the thread goes on",
        explains=frozenset({"deadlock", "mbarrier", "race", "uninitialized", "tx-count"}),
    ),
    Cause(
        "unset-parity",
        40,
        "set the phase of each stage to 0 before the first wait: local memory has arbitrary contents when a "
        "launch begins",
        text="the parity of this wait comes from local memory ({name}) that its thread has not set: it waits "
        "for any phase",
        explains=frozenset({"deadlock", "mbarrier", "race", "uninitialized", "tx-count"}),
    ),
    Cause(
        "fresh-late",
        185,
        "the first round either leaves its wait out or uses parity 1, which passes on a fresh barrier: not "
        "both. If the first wait is left out, the next one must ask for phase 0",
        text="{who} has signalled it before its first wait for {name} ({line}), which passes at once because "
        "nobody has signalled that barrier yet: two rounds begin without a wait",
    ),
    Cause(
        "never-arrives",
        40,
        "whoever waits for what is handed over must hand it back: does each of these threads arrive, on the "
        "element that it waited for, or does init count too many?",
        text="{who} {waits} for {other} ({line}), but never {arrives} here",
    ),
    Cause(
        "over-without",
        185,
        "init(count) must be the number of all who arrive in a round, and each of them arrives once",
        text="{waits} for {wants}, and lost a phase: whoever signals it had waited for {back} ({line}), "
        "which has init({count}) ({init}) and was over without {own}: {who} arrived {times} ({at})",
    ),
    Cause(
        "lapped",
        220,
        "a barrier may be signalled again only after all waiting threads have seen the phase before: let "
        "them signal back, by an mbarrier or a CTA barrier in each round, or let them wait for one that does",
        text="{waits} for phase {phase} of {name}, which is already in phase {now}: {signals} went on "
        "without waiting for {who}, and two phases later the parity is the same again",
    ),
)
