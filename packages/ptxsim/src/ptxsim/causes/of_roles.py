"""Causes that lie in who does what: a role that two warps have, or a warp that has two."""

from __future__ import annotations

from ptxsim.causes.cause import ERRORS, Cause

OF_ROLES = (
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
        text="{waits} for phase {phase} of {name}: {who}, which would signal it ({line}), issued other "
        "work first ({other}) and left without coming there",
    ),
    Cause(
        "role-later",
        185,
        "give each warp one role: while it is in the loop of one, it cannot come to the loop of another",
        text="{waits} for {wants}: {came}, and {missing} ({line}), in a loop that it "
        "comes to only after this one",
    ),
    Cause(
        "own-behind",
        185,
        "no thread can wait for what it does itself behind the wait: that data have come, and that they were "
        "used, are told by a barrier each",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came, and the missing one "
        "is that of {who}, which waits here ({line}, behind this wait)",
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
        "lanes that loop in a role of their own never come to work of the whole warp: keep roles apart by "
        "a condition on the warpgroup and the warp",
        text="{what}: it {does} ({line}), in a role of its own",
    ),
    Cause(
        "left-loop",
        10,
        "all threads that meet in a loop must run it equally often: what its condition counts is a register "
        "of each thread, and moves on in those alone that execute that line",
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
        "each. Or is one of them one too many, or meant for an element of its own?",
        text="{who}, which alone signals it and waits for it itself, arrives {times} in a row "
        "({line}), with no wait in between, and init({count}) makes {count} of them a phase",
    ),
    Cause(
        "unused-third",
        150,
        "hand back a stage for each one that was used, and no other: who waits for the product of a whole "
        "tile knows that its stages are free, but not which these are",
        text="{who} {signals} {name} {times} (line {line}), which says that stages are free, but anybody "
        "who uses {array} has waited for it only {waits}",
    ),
    Cause(
        "both-ways",
        165,
        "give each direction a barrier of its own: on one for both, only every second phase is a side's own, "
        "so that its waits ask for the same parity in each round. Or is a phase meant to have both: does "
        "init(count) count them?",
        text="{name}, init({count}), is signalled by {one} ({line}) and by {other} ({there}), and both "
        "wait for it: each side's signal ends a phase by itself",
    ),
    Cause(
        "commit-for-threads",
        185,
        "a commit is one arrival, and all elements of an array have one init(count): what a commit signals "
        "needs a barrier, or an array, with init(1)",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came, a commit by {who} "
        "({line}), and nothing else has ever signalled it",
    ),
    Cause(
        "partial-late",
        185,
        "is the number in init(count) right for this barrier, and is who waits there meant to signal it "
        "without that wait?",
        text="{name} never completes phase {phase}: {count} of {expected} arrivals came ({arrived}); {late} "
        "would signal it ({line}), and waits for {wants}: {state}",
    ),
    Cause(
        "warp-left-out",
        165,
        "every thread that writes arrives there, and init counts them all; or a barrier of the whole CTA "
        "stands in place of it",
        text="at {name}, which was waited for, {who} {arrives}{line}, and {writer}, which writes by the same "
        "line, does not: nothing orders what it writes before that",
    ),
    Cause(
        "commit-uncounted",
        110,
        "a commit is one arrival more, beside those of the threads: either the commit alone ends the phase, "
        "init(1), and the threads only wait; or init counts it, too",
        text="{name} has init({count}), and {threads} threads arrive there{line}: its phase ends without the "
        "commit ({commit})",
    ),
    Cause(
        "slot-by-cta",
        150,
        "both ends name the slot by one and the same number: that of who waits there (the consumer, the "
        "stage), not the CTA's rank",
        text="at each slot of {array} ({line}) the threads of one CTA alone arrive, those of {groups} at "
        "the same; {waiters} wait there, each at a slot of its own",
    ),
    Cause(
        "lane-for-warp",
        165,
        "every thread that writes arrives, and init counts them all; or __syncwarp() comes in front of "
        "the one arrive of each warp",
        text="at {name}, which was waited for, {who} {arrives}{line}, and {writer} of its warp does not: "
        "nothing orders what it writes before that",
    ),
    Cause(
        "role-by-turns",
        215,
        "one warp goes round a ring from its first round to its last: or, where a role goes from warp to "
        "warp, stage and phase must go with it, not begin at 0 in each",
        text="{waits} for phase {phase} of {name}, which is in phase {now} already: {others} waited at "
        "{line}, too; each of these warps signals it, and has seen a part of its phases",
    ),
    Cause(
        "role-in-two-warps",
        110,
        "one thread issues all MMAs of a product, and commits them: those of two threads are in no order, "
        "where they add to the same columns. Or does a condition keep this warp's MMAs away? Or is the test "
        "of the warp wrong?",
        text="both {one} and {other} wait for {name} ({line}): this role runs in both",
        explains=ERRORS,
    ),
    Cause(
        "skips-element",
        185,
        "all who signal a ring begin at the same element and move on once a round: does its stage move on "
        "before its first round, or begin elsewhere? Or does a condition keep it from this element?",
        text="{name} never completes phase {phase}: only {count} of {expected} arrivals came ({arrived}); "
        "{who} {has} signalled every other element of {array} ({line}), and never this one",
    ),
    Cause(
        "cluster-parted",
        180,
        "the CTAs of a cluster must go through the same tiles, equally often: do the first one and the step "
        "to the next follow the number of the cluster, not that of the CTA? And do all of them load each "
        "time",
    ),
    Cause(
        "announced-besides",
        180,
        "one thread announces the bytes of a phase, once, and init(count) counts it alone: is the other "
        "arrive one too many, or meant for another barrier?",
    ),
    Cause(
        "slot-of-others",
        185,
        "each element of the array has threads that signal it alone: does a condition (on the warpgroup, "
        "warp or CTA) keep away those who would signal this one? Or does the wait, or the signal, name "
        "another element than is meant?",
        text="nobody signals {name}: {waits} for its phase {phase}, 0/{expected} arrived; {who}, who alone "
        "{come} to {line}, {signal} {other} there each time",
    ),
    Cause(
        "silent-here",
        185,
        "does who signals it stand under a condition on the CTA's number in the grid, where its rank in the "
        "cluster is meant? Or does an arrive, a commit or a load for it stand under another condition that "
        "nobody meets here?",
        text="in the cluster of CTAs {ctas} nobody signals {name}: {waits} for its phase {phase}, "
        "0/{expected} arrived",
    ),
)
