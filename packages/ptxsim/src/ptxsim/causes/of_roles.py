"""Causes in the assignment of roles: a role that two warps have, or a warp that has two roles."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

OF_ROLES = (
    Cause(
        "elects-lowest",
        5,
        "let one predicate choose the thread: that of elect.sync, or threadIdx.x == 0, but not both for one "
        "role",
        text="this kernel relies on elect.sync taking the lowest lane, as known chips do but PTX does not "
        "promise. With another lane: {otherwise}",
    ),
    Cause(
        "polls",
        100,
        "does everyone who should write this word come to that line, and add what the loop waits for? A CTA "
        "that leaves early, a wrong count, or a reset by others keeps it from changing",
        text="{waits} for {wants} ({line}): {state}, and {why}",
    ),
    Cause(
        "role-twice",
        240,
        "a role belongs to one warp of one warpgroup: does its condition test the warpgroup as well as the "
        "warp, and let no more warps in than the barriers count?",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came; {late} {does} "
        "at {line}, in the role of {owner}",
    ),
    Cause(
        "role-ended",
        185,
        "give each warp one role: a warp that runs two loops over the same work, one after the other, "
        "finds nothing left for the second",
        text="{waits} for phase {phase} of {name}: {who}, which would signal it ({line}), issued other work "
        "first ({other}) and ended without reaching that line",
    ),
    Cause(
        "role-later",
        185,
        "give each warp one role: while it is in the loop of one, it cannot reach the loop of another",
        text="{waits} for {wants}: {came}, and {missing} ({line}), in a loop that it reaches only after this "
        "one",
    ),
    Cause(
        "own-behind",
        185,
        "no thread can wait for something that it does itself after the wait: use one barrier to report that "
        "data have arrived, and another to report that they have been used",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came, and the missing one "
        "is that of {who}, which waits here ({line}, after this wait)",
    ),
    Cause(
        "both-multiply",
        185,
        "with cta_group::2 one CTA of the pair waits for the operands and issues the MMAs for both: test "
        "the rank around that loop",
        text="{waits} for {name}, which nobody ever signals: CTA {mine} runs the loop with the MMAs of the "
        "pair (cta_group::2), as CTA {theirs} does",
    ),
    Cause(
        "signals-less",
        240,
        "a thread that waits in every round must signal the answer in every round: is one of the two in "
        "another loop, or under a condition?",
        text="{waits} for {wants}: {who} {has} waited for {answer} {passed} and signalled {array} "
        "{times}, and {goes_on} again",
    ),
    Cause(
        "two-roles",
        10,
        "lanes that loop in a role of their own never reach work of the whole warp: keep roles apart by a "
        "condition on the warpgroup and the warp",
        text="{what}: it {does} ({line}), in a role of its own",
    ),
    Cause(
        "left-loop",
        10,
        "all threads that synchronise in a loop must run it equally often: what its condition counts is a "
        "register of each thread, and advances only in the threads that execute that line",
        text="{what}: it has left the loop at {loop}, in which the others still are",
        explains=ERRORS,
    ),
    Cause(
        "role-sync",
        240,
        "bar.sync 0 is for all threads of the CTA: for one role alone, use a barrier with its number of "
        "threads (bar.sync id, count); for all threads, take it out of the condition",
        text="{waits} at {wants}: {state}, and nobody else comes to {line}",
    ),
    Cause(
        "own-twice",
        185,
        "init(count) is the number of arrivals that one wait is for: count each of these, or wait after "
        "each. Or is one of them too many, or meant for an element of its own?",
        text="{who}, which alone signals it and waits for it itself, arrives {times} in a row ({line}), with "
        "no wait in between, and init({count}) ends a phase after {count} of them",
    ),
    Cause(
        "unused-third",
        150,
        "hand back exactly those stages that were used: a thread that waits for the product of a whole tile "
        "knows that its stages are free, but not which stages these are",
        text="{who} {signals} {name} {times} ({line}), which says that stages are free, but the threads "
        "that use {array} have waited for it only {waits}",
    ),
    Cause(
        "both-ways",
        165,
        "give each direction a barrier of its own: if they share one, each side owns only every second "
        "phase, so that its waits ask for the same parity in each round. Or should a phase have both: does "
        "init(count) count them?",
        text="{name}, init({count}), is signalled by {one} ({line}) and by {other} ({there}), and both "
        "wait for it: each side's signal ends a phase by itself",
    ),
    Cause(
        "commit-for-threads",
        185,
        "a commit is one arrival, and all elements of an array have the same init(count): a barrier, or "
        "array, that a commit signals needs init(1)",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came, a commit by {who} "
        "({line}), and nothing else has ever signalled it",
    ),
    Cause(
        "warp-left-out",
        165,
        "every thread that writes must arrive there, and init must count them all; or use a barrier of the "
        "whole CTA instead",
        text="at {name}, which was waited for, {who} {arrives}{line}, but {writer}, which writes at the same "
        "line, does not: nothing orders its writes before the wait",
    ),
    Cause(
        "commit-uncounted",
        110,
        "a commit is one more arrival, beside those of the threads: either the commit alone ends the phase, "
        "with init(1), and the threads only wait; or init counts it, too",
        text="{name} has init({count}), and {threads} threads arrive there{line}: its phase ends without the "
        "commit ({commit})",
    ),
    Cause(
        "slot-by-cta",
        150,
        "both ends must index the slot by the same number: that of the consumer or the stage that waits "
        "there, not the CTA's rank",
        text="at each slot of {array} ({line}) only threads of one CTA arrive, those of {groups} at the same "
        "slot; {waiters} wait there, each at a slot of its own",
    ),
    Cause(
        "lane-for-warp",
        165,
        "every thread that writes must arrive, and init must count them all; or put __syncwarp() before the "
        "one arrive of each warp",
        text="at {name}, which was waited for, {who} {arrives}{line}, but {writer} of its warp does not: "
        "nothing orders its writes before the wait",
    ),
    Cause(
        "handed-for-warp",
        230,
        "to conform to the PTX memory model, put __syncwarp() (bar.warp.sync) before the one arrive of each "
        "warp",
        text="one lane arrives on {name}{line} for its warp; all its lanes met in a .sync instruction before "
        "that, which orders no memory, although chips that we know keep the order",
    ),
    Cause(
        "peers-unasked",
        165,
        "who loads into several CTAs must wait for the readers in each: let them arrive on the barrier of "
        "the CTA that loads, too (mapa), and let its init count them",
        text="who reads here arrives on {name}{line}, but CTA {cta} loads, and waits for {other}",
    ),
    Cause(
        "role-by-turns",
        215,
        "let one warp go round a ring from its first round to its last; or, if a role goes from warp to "
        "warp, pass stage and phase on with it instead of starting at 0 in each",
        text="{waits} for phase {phase} of {name}, which is already in phase {now}: {others} waited at "
        "{line}, too; each of these warps signals it, but has seen only a part of its phases",
    ),
    Cause(
        "role-in-two-warps",
        110,
        "one thread must issue all MMAs of a product, and commit them: MMAs of two threads that add to the "
        "same columns are not ordered. Or does a condition keep this warp's MMAs away? Or is the test of the "
        "warp wrong?",
        text="both {one} and {other} wait for {name} ({line}): this role runs in both",
        explains=ERRORS,
    ),
    Cause(
        "skips-element",
        185,
        "all threads that signal a ring must begin at the same element and advance once per round: does this "
        "one's stage advance before its first round, or begin elsewhere? Or does a condition keep it from "
        "this element?",
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came ({arrived}); "
        "{who} {has} signalled every other element of {array} ({line}), and never this one",
    ),
    Cause(
        "cluster-parted",
        180,
        "the CTAs of a cluster must go through the same tiles, equally often: do the first tile and the step "
        "to the next depend on the number of the cluster, not that of the CTA? And do all of them load each "
        "time?",
    ),
    Cause(
        "announced-besides",
        180,
        "one thread must announce the bytes of a phase, once, and init(count) counts only that arrival: is "
        "the other arrive one too many, or meant for another barrier?",
    ),
    Cause(
        "slot-of-others",
        185,
        "each element of the array is signalled by threads of its own: does a condition (on the warpgroup, "
        "warp or CTA) keep away those that should signal this one? Or does the wait, or the signal, name "
        "another element than is meant?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived; only {who} {come} "
        "to {line}, and {signal} {other} there each time",
    ),
    Cause(
        "silent-here",
        185,
        "is its signal under a condition on the CTA's number in the grid, where its rank in the cluster is "
        "meant? Or is an arrive, a commit or a load for it under another condition that nobody meets here?",
        text="in the cluster of CTAs {ctas} nobody signals {name}: {waits} for its phase {phase}, "
        "0/{expected} arrived",
    ),
    Cause(
        "neutral",
        185,
        "cp.async.mbarrier.arrive.noinc, if init(count) counts these threads; without .noinc it only delays "
        "the phase, and each thread must also mbarrier.arrive",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came, since those of "
        "cp.async ({lines}) count for nothing: without .noinc, each adds to the pending count what it takes "
        "away",
    ),
    Cause(
        "arrives-twice",
        185,
        "a thread arrives once in a phase: is one of these arrivals too many, or meant for another barrier? "
        "Or must it wait between them?",
        text="{waits} for phase {phase} of {name}, which is already in phase {now}: {arrived} ({lines}) and "
        "passed a wait {passed}, and init({count}) counts one arrival of each thread",
    ),
    Cause(
        "nobody-waits",
        165,
        "whoever uses what is handed on here must first execute bar.sync with the same id and count",
        text="{who} {arrives} on CTA barrier {number} ({line}), but no thread ever waits there (bar.sync)",
    ),
    Cause(
        "phase-again",
        165,
        "between two arrivals on one barrier, a warp must wait for those who waited there: bar.sync at the "
        "barrier by which they answer",
        text="a warp arrives on CTA barrier {number} again ({line}), which may be before its phase is over: "
        "what it hands on is then waited for in the wrong phase",
    ),
    Cause(
        "before-turn",
        165,
        "move the bar.sync up, before the first access to what it guards",
        text="the {verb} ({at}) comes before the wait for its turn, bar.sync {number} ({line})",
    ),
    Cause(
        "unmet",
        170,
        "the other group must execute bar.arrive with the same id and count: is that missing, under a "
        "condition, or with another id?",
        text="{waits} at {wants}: {state}, and no other warp has ever arrived there",
    ),
)
