"""Causes that lie in who does what: a role that two warps have, or a warp that has two."""

from __future__ import annotations

from ptxsim.causes.cause import Cause

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
        text="{waits} for {wants}: {who} has waited for {answer} {passed} and signalled {array} "
        "{times}, and waits again",
    ),
    Cause(
        "two-roles",
        10,
        "lanes that loop in a role of their own never come to work of the whole warp: keep roles apart by "
        "a condition on the warpgroup and the warp",
        text="{what}: it {does} ({line}), in a role of its own",
    ),
    Cause(
        "role-sync",
        240,
        "bar.sync 0 is for all threads of the CTA: for one role alone, use a barrier with its number of "
        "threads (bar.sync id, count); for all threads, take it out of the condition",
        text="{waits} at {wants}: {state}, and nobody else comes to {line}",
    ),
)
