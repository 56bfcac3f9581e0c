"""What else would leave the same record: a finding states what was seen, and asks for its rivals, too.

Few causes can be told apart from all others by what a run records. Who gets one arrival too few may count
one too many, or lack one; a wait that passes too early may ask for the wrong parity, or be signalled too
often. Such a cause names its rivals here, and its hint ends with them, as questions (`Hints.hint`): whoever
follows it looks at each before anything is changed. What a record does show, a check names alone: its cause
then stands for no row below. research/advice/README.md has how often each cause was right.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rival:
    """One other explanation, and the causes that a record may show in its place."""

    id: str
    asks: str  # a question, in the words of PTX and CUDA C++; other words: `Hints`
    of: frozenset[str]


def _rival(id: str, asks: str, of: str) -> Rival:
    return Rival(id, asks, frozenset(of.split()))


RIVALS = (
    _rival(
        "kept-away",
        "does a condition (on the CTA, the warp, the lane or the round) keep an arrival away that is meant",
        "partial arrivals silent signals-less bytes-only ended-once ahead-arrives uneven",
    ),
    _rival(
        "copy",
        "is a copy left out, of another size, or for another barrier than the one that its bytes are "
        "announced at",
        "bytes-announced bytes",
    ),
    _rival(
        "meant-to",
        "are all of them meant to: should init(count) then count them, or each name a part of its own",
        "issuers ahead-issuers",
    ),
    _rival(
        "too-many-arrive",
        "do more threads, CTAs or rounds arrive than are meant, or those of two slots at one",
        "ahead-count ahead-commits too-many left-open arrivals",
    ),
    _rival(
        "other-slot",
        "does what would end this wait go to another slot or another barrier",
        "role-ended role-later self-wait ended-once more-waits ahead-rounds ahead partial flipped-early "
        "fewer-waits ended",
    ),
    _rival(
        "other-barrier",
        "does a wait name another barrier than is meant, or the stage and phase of another role",
        "nobody-starts not-flipped fresh fresh-wait fresh-read wait-phase stale again ahead-unwaited uneven "
        "signals-less missed",
    ),
    _rival(
        "extra-signal",
        "is it signalled more often than this thread waits for it",
        "not-flipped again again-ahead stale flipped-early missed",
    ),
    _rival(
        "other-warps",
        "does a role run in other warps or CTAs than the barriers expect",
        "nobody-starts self-wait silent sync role-sync few no-slot",
    ),
    _rival(
        "wait-missing",
        "is a wait left out in some rounds",
        "slot ahead ahead-rounds ahead-slots",
    ),
    _rival(
        "one-place",
        "are the two meant to touch different places: is an index wrong, or do two buffers share memory",
        "not-free not-ready wait-late buffer same-row",
    ),
    _rival(
        "signalled-early",
        "is what was waited for signalled before that work is done",
        "not-ready not-free slot",
    ),
    _rival(
        "own-start",
        "does one side begin at another slot, or go on more or less than once a round",
        "shifted one-slot parted ahead-slots ahead-silent outside-array ring",
    ),
    _rival(
        "own-columns",
        "does one side name other columns than the other, or the columns change from round to round",
        "other-issuer accumulate",
    ),
    _rival(
        "other-round",
        "do loops that belong together run unequally often, or begin with different rounds",
        "role-ended accumulate unseen-load",
    ),
)


def rivals_of(cause: str) -> tuple[str, ...]:
    """What each rival of a cause asks."""
    return tuple(rival.asks for rival in RIVALS if cause in rival.of)


def with_rivals(cause: str, hint: str) -> str:
    """A hint, and after it the questions of the cause's rivals."""
    asked = "".join(f" Or {question}?" for question in rivals_of(cause))
    return hint + ("" if hint.endswith("?") or not asked else ".") + asked
