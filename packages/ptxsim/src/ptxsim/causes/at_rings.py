"""Causes that lie in an index of a ring: of a barrier's element, or of the buffer that goes with it."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

_SLOT = "signal and wait for the same element of the array of barriers"

_OTHERS_WAITED = "{absent} did not wait for {name}: only {waiter} did{line}{bare}"

AT_RINGS = (
    Cause(
        "misnamed",
        185,
        "a role waits for what the other role signals: name in this wait the barrier that nobody waits for",
        text="{who} {waits} for {name} ({line}), for which another line waits, too, and nobody ever waits "
        "for {ignored}: the wait names the wrong barrier",
    ),
    Cause(
        "one-misnamed",
        185,
        "one of the two waits is meant for the barrier that nobody waits for: a role waits for what the "
        "other role signals",
        text="two lines wait for {name}, {both}, and nobody ever waits for {ignored}: one of the waits names "
        "the wrong barrier",
    ),
    Cause(
        "missent",
        185,
        "signal in this line the barrier that is waited for and that nobody signals",
        text="nobody signals {silent}, for which {waiter} {waits}, and {who} {signals} {name} ({line}), as "
        "another line does: that line names the wrong barrier",
    ),
    Cause(
        "one-missent",
        185,
        "one of the two signals is meant for the barrier that nobody signals: each barrier is signalled by "
        "one line",
        text="nobody signals {silent}, for which {waiter} {waits}, and two lines signal {name}: {both}; one "
        "of them names the wrong barrier",
    ),
    Cause(
        "announced-twice",
        40,
        "announce the bytes of all copies of a stage in one arrive: does it stand in a loop over the copies?",
        text="{who} announces {bytes} B ({line}) twice in a row, and goes to no other barrier in between",
    ),
    Cause(
        "outside-array",
        38,  # in front of `no-slot`: a slot yet further on, in a barrier that nobody initialised
        "stages run from 0 to depth - 1: does the stage wrap at the depth of this array, and has the array "
        "as many elements as its ring?",
        text="stage {size} of {array}, a barrier array of {size}, is used at line {line}: that is {name}",
        explains=ERRORS,
    ),
    Cause(
        "moved-first",
        235,
        "a state moves on behind the wait and the work of its round, not in front: the first round is for "
        "the first element, with the phase that the state begins with",
        text="{waits} for {wants}, which nobody has used yet: its waits have begun at {first}, and come to "
        "{name} only when they have gone round, with the phase of the next round",
    ),
    Cause(
        "ring-short",
        185,
        "give the array an element for each round that may be under way, one for each stage of the buffers; "
        "or let its signaller wait for an answer in every round, at all elements of it where each is "
        "signalled by others",
        text="{who} {signals} {array}, which has {count}, and is held back by {other} alone, which has "
        "{more}: so many rounds may be ahead of the wait",
    ),
    Cause(
        "past-buffer",
        165,
        "does the stage wrap at the depth of the buffer, and has the buffer as many stages as its ring of "
        "barriers?",
        text="the load at {line} fills {first}, and further on {buffer}, which lies behind it",
    ),
    Cause(
        "no-slot",
        40,
        "slots run from 0 to depth - 1 of this very array: a single barrier has slot 0 alone",
    ),
    Cause(
        "no-work",
        185,
        "all roles run equally many rounds, in some CTAs none: does this one count its rounds by itself?",
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
        "hand back a stage when it has been used, once each time: does the arrive or commit stand in a loop "
        "of its own, or name stages that this round has not used?",
        text="{who} signals {name} {times} (line {line}), which says that stages are free, but has waited "
        "for {array} {waits}",
    ),
    Cause(
        "stays",
        140,
        "the stage moves on in every round, whichever branch it takes: behind the last element it is 0 "
        "again, and there the phase flips",
        text="{who} comes to {name} time and again ({times} times), and nobody to {others}: the stage does "
        "not move on",
    ),
    Cause(
        "never-waits",
        165,
        "who reads the data waits for it, in every round: another thread's wait counts only with a barrier "
        "of the CTA behind it, to which both come",
        text=_OTHERS_WAITED,
    ),
    Cause(
        "others-waited",
        230,
        "one thread's wait does not count for the others: put a barrier of the CTA after it, or let every "
        "thread wait itself",
        text=_OTHERS_WAITED,
    ),
    Cause(
        "arrives-alone",
        170,
        "every thread that reads arrives, and init counts them all; or a barrier of these threads comes "
        "before the one arrive",
        text="{who} {arrives} on {name}{line} for all, and nothing makes it wait for the reads of {reader}",
    ),
    Cause(
        "sent-by-both",
        150,
        "a multicast lands at the same offset in each CTA of its mask: give each CTA's tile a place of its "
        "own there; or load without a mask what one CTA alone is to have",
        text="{one} and {other} each send their tile to both, to the same place of {buffer}",
    ),
    Cause(
        "lanes-apart",
        150,
        "let one and the same lane wait and do what comes after its wait, or put a warp barrier between them",
        text="{waiter} waits for {array}, and {who} signals {name} (line {line}) without: they are lanes of "
        "one warp, and nothing makes them meet",
    ),
    Cause(
        "arrived-again",
        175,
        "bar.arrive does not wait: who arrives must hear from the other side before it arrives again, by a "
        "barrier on the way back; does anybody say that the buffer may be overwritten?",
        text="{waits} at {wants}: {state}; line {line} has arrived there again before a phase was over",
    ),
    Cause(
        "skips-phases",
        165,
        "by its parity a wait tells a phase from the one before it alone: wait in each round, or for a "
        "barrier that completes once, when all is done",
        text="{reader} {passes} the wait for {name}{line} in {phase}, which has the parity of the one that "
        "is meant; {other} {waits} for each phase",
    ),
    Cause(
        "no-mma",
        205,
        "does the loop that multiplies run, at this K? What the loads have filled has to be multiplied too, "
        "behind the loop where it is not done in it",
        text="no MMA has been issued in this cluster{line}",
    ),
    Cause(
        "cleared-late",
        205,
        "who clears tensor memory: tcgen05.wait::st, tcgen05.fence::before_thread_sync, a barrier; then "
        "tcgen05.fence::after_thread_sync and the first MMA. Or let the first MMA overwrite",
        text="tcgen05.st ({line}) clears them, and nothing makes this MMA wait for it",
    ),
    Cause(
        "columns-of-a-warp",
        280,
        "a warp reaches its own 32 lanes of tensor memory, in all columns: each thread reads every column of "
        "its row, and stores them all",
    ),
    Cause(
        "leaves-it-to-others",
        170,
        "every warp whose MMAs read a stage hands it back: each commits, and init counts them",
        text="{name}, to which warp {theirs} commits, was waited for; warp {mine} issued this MMA, and "
        "commits to none of them",
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
        text="{name}, to which warp {theirs} commits, was waited for; warp {mine} issued this MMA",
    ),
    Cause(
        "buffer",
        170,
        "fill and read the same element of this buffer: the one whose index its barrier has",
        text="{name} is signalled, but {other} was waited for, which is right for {rest}: {buffer} "
        "differs, in its index or in where it lies",
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
        "each tile is loaded once: where loads stand in front of a loop, the loop begins with the tile "
        "behind theirs, and loads each into the place that its round has used",
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
        "both sides must go to the next element after each round, from the same first one, modulo the same "
        "depth",
        text="{waits} for {wants}: wait number {number} of its array is for {awaited}, signal number "
        "{number} ({signaller}, {line}) for {signalled}; up to there both go through the same elements",
    ),
    Cause(
        "elements-meet",
        185,
        "give each line barriers of its own: where an array has two for each stage, these are 2 * stage and "
        "2 * stage + 1",
        text="{who} arrives on it at {lines} with no wait in between: these name {names} in the first "
        "round, and meet at one element later",
    ),
    Cause(
        "out-of-turn",
        240,
        "a loop that goes on with a ring begins at the element where the loop before has ended, with its "
        "phase: carry both, and move on after each wait",
        text="{waits} for {wants}, where {due} comes next: its waits have gone round {array}, {count} in a "
        "row, and phase {phase} of {due} is complete and has not been waited for",
    ),
    Cause(
        "leaves-ring",
        185,
        "signal the element whose turn it is: a load goes to the one whose reader was waited for just "
        "before, and the stage moves on behind it",
        text="{who} {signals} {array} in turn, and behind {last} comes to {name}, where {due} is next",
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
        "init(n) counts arrivals: each thread arrives for itself, or one of them for all, with their number",
        text="{who} {verb} with count {makes} each, {all} arrivals where init({count}) expects {count}",
    ),
    Cause(
        "all-at-each",
        185,
        "is each element for some of them: then index it by the stage, or by the consumer's number. Is it "
        "for all of them: then init counts them all",
        text="{who} {verb} on all elements of {array}, {threads} threads where init({count}) expects {count}",
    ),
    Cause(
        "ahead-silent",
        185,
        _SLOT,
        text="{names} waited for, but line {line} signals only {others}",
    ),
    Cause(
        "bytes-elsewhere",
        180,
        "a copy and the arrive that announces its bytes must name the same element",
    ),
    Cause(
        "ignored-answer",
        40,
        "ask in a loop until the answer is true: try_wait gives up after a time of the chip's choice",
        text="{name} is asked once, with its phase open, and nobody looks at the answer: the thread goes on",
        explains=frozenset({"deadlock", "mbarrier", "race", "uninitialized", "tx-count"}),
    ),
    Cause(
        "unset-parity",
        40,
        "set the phase of each stage to 0 before the first wait: local memory holds anything when a launch "
        "begins",
        text="the parity of this wait comes from local memory ({name}) that its thread has not set: it waits "
        "for any phase",
        explains=frozenset({"deadlock", "mbarrier", "race", "uninitialized", "tx-count"}),
    ),
    Cause(
        "fresh-late",
        185,
        "the first round leaves its wait out or begins with parity 1, which passes on a fresh barrier: "
        "not both. Where the first wait is left out, the next one asks for phase 0",
        text="{who} has signalled it before its first wait for {name} ({line}), which passes at once, as "
        "nobody has signalled that one yet: two rounds begin with nothing to wait for",
    ),
    Cause(
        "lapped",
        220,
        "whoever signals a barrier again must know that all who wait have seen the phase before: let them "
        "signal back, by an mbarrier or a CTA barrier in each round, or wait for one of them that does",
        text="{waits} for phase {phase} of {name}, which is in phase {now} already: {signals} went on "
        "without waiting for {who}, and two phases later the parity is the same again",
    ),
)
