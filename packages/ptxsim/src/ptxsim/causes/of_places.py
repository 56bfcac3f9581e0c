"""Causes that lie in where two accesses meet, and in which phase of a barrier was waited for in between."""

from __future__ import annotations

from ptxsim.causes.cause import Cause

OF_PLACES = (
    Cause(
        "load-outside",
        160,
        "loads must end with the last part of their tensor: how many rounds does the loop in front of this "
        "load make, how far does the condition around it reach, and does its coordinate count elements? Or, "
        "if the load is meant, who waits for it before its place is used again?",
        text="this load lies wholly behind the end of {tensor}, which has {end} columns: it brings zeros",
    ),
    Cause(
        "one-memory",
        165,
        "give each buffer memory of its own; where they are meant to share it, whoever uses it as the one "
        "must wait for those who use it as the other",
        text="{one} and {other} share this memory ({other} begins {apart} B behind the start of {one}), and "
        "nothing makes one use wait for the other",
    ),
    Cause(
        "loaded-too-soon",
        165,
        "load into a place only when the MMA that reads it has been waited for: move the load behind that "
        "wait, or give it a buffer of its own",
        text="this load is issued behind the wait for {name}{waited}, and in front of the MMA{issued} that "
        "was to take what lies there",
    ),
    Cause(
        "other-columns",
        165,
        "columns and slot must go together on both sides: take both from the same index, before it moves on",
        text="the MMAs that {name} announces, which was waited for, write columns {first} to {last}; those "
        "that write column {column} are announced by {other}",
    ),
    Cause(
        "read-unawaited",
        205,
        "wait for every barrier at which data of this operation arrive, before it is issued, in each round",
    ),
    Cause(
        "columns-stay",
        165,
        "products that are announced by turns need columns of their own: let these take turns as the barrier "
        "does, on both sides; or give the barrier one element, and wait for its reader before each product",
        text="the products that {names} announce are all written to columns {first} to {last}",
    ),
    Cause(
        "phase-of-many",
        170,
        "wait for each phase, also before what the MMAs read is overwritten; or commit once, behind the "
        "last MMA",
        text="{name} is committed to with each MMA{line}, {phases} so far, and this reader has waited for "
        "it {waits}: that wait{at} may pass in an earlier phase",
    ),
    Cause(
        "answers-more",
        170,
        "each wait is answered by one arrival of each thread: does the arrive stand in a loop of its own, or "
        "in front of what it tells of?",
        text="who reads it has signalled {back} {times}{line} and waited for {name} {passed}",
    ),
    Cause(
        "waits-first",
        240,
        "first all copies of a phase and the arrival that announces their bytes, then the wait: one barrier "
        "tells of all of them together",
        text="{waits} for {name}, in front of the line by which it announces the bytes that are to come "
        "there ({line})",
    ),
    Cause(
        "product-unwaited",
        165,
        "wait for the data of every MMA, in each round, the first one included",
        text="this MMA{product} is issued with no wait for {name} in front of it; {where}",
    ),
    Cause(
        "awaited-elsewhere",
        185,
        "is this wait for something that reports elsewhere: a bulk store to its group (wait_group), MMAs to "
        "the barrier of their commit? Or is it one too many?",
        text="{waits} for {wants}, and each of the {phases} of {name} has been waited for already ({at}): "
        "nothing signals it again",
    ),
    Cause(
        "written-again",
        230,
        "a barrier of all who read it stands behind the reads, in front of the next write: the one between "
        "write and read lets each thread go on as soon as it has read itself",
        text="a barrier stands between the write and the read, and none on the way from the read{read} "
        "to the next write{write}",
    ),
)
