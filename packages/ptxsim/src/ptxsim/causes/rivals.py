"""Rival explanations that would leave the same record: a finding states what was seen, and asks about its
rivals.

What a run records rarely tells one cause from all others. A barrier that gets one arrival too few may count
one too many, or lack one; a wait that passes too early may ask for the wrong parity, or be signalled too
often. So a hint ends with its rivals, as questions (`Hints.hint`), to be checked before anything is changed.
A cause has its own rivals, or else those of the kind of finding; only causes that the record shows outright
(SHOWN) are reported alone. research/advice/README.md shows how often each cause was right.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rival:
    """Another possible explanation, and the causes whose record it may leave as well."""

    id: str
    asks: str  # a question, in the terms of PTX and CUDA C++
    of: frozenset[str]
    kinds: frozenset[str] = frozenset()  # of findings whose cause has no rivals of its own


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _rival(id: str, asks: str, of: str, kinds: str = "") -> Rival:
    return Rival(id, asks, _ids(of), _ids(kinds))


RIVALS = (
    _rival(
        "kept-away",
        "does a condition (on the CTA, the warp, the lane or the round) prevent an intended arrival",
        "partial arrivals more-waits silent silent-slot silent-rest signals-less bytes-only ended-once "
        "ahead-arrives uneven",
        "mbarrier",
    ),
    _rival(
        "copy",
        "is a copy missing, of a different size, or for another barrier than the one where its bytes are "
        "announced",
        "bytes-announced bytes",
        "tx-count",
    ),
    _rival(
        "meant-to",
        "should all of them do this: should init(count) then count them, or each use a part of its own, or, "
        "if they take turns, each advance its stage and phase over the rounds of the others, too",
        "issuers ahead-issuers",
    ),
    _rival(
        "too-many-arrive",
        "do more threads, CTAs or rounds arrive than intended, or those of two slots on one; or do two "
        "groups run at once that should take turns, each with a phase that counts only its own rounds",
        "ahead-count ahead-commits too-many left-open arrivals",
    ),
    _rival(
        "other-slot",
        "does the signal that should end this wait go to another slot or another barrier",
        "role-ended role-later ended-once more-waits ahead-rounds ahead partial flipped-early "
        "fewer-waits ended",
    ),
    _rival(
        "other-barrier",
        "does a wait name the wrong barrier, or use the stage and phase of another role",
        "nobody-starts not-flipped fresh fresh-wait fresh-read wait-phase stale again ahead-unwaited uneven "
        "signals-less missed "
        "ring self-wait no-slot",
        "mbarrier deadlock",
    ),
    _rival(
        "other-signal",
        "is another barrier meant, one that these threads arrive on themselves",
        "commit-lanes empty-commit",
    ),
    _rival(
        "no-mma",
        "does a condition (on the CTA, the warp, the lane or the round) keep these threads from their MMAs",
        "empty-commit",
    ),
    _rival(
        "moved-early",
        "does its stage advance, or its phase flip, before this wait",
        "nobody-starts fresh-wait",
    ),
    _rival(
        "extra-signal",
        "is it signalled more often than this thread waits for it",
        "not-flipped again again-ahead stale flipped-early missed",
    ),
    _rival(
        "other-warps",
        "does a role run in other warps or CTAs than the barriers expect",
        "self-wait silent sync role-sync few no-slot",
        "deadlock",
    ),
    _rival(
        "wait-missing",
        "is a wait left out in some rounds",
        "ahead ahead-rounds ahead-slots",
    ),
    _rival(
        "one-place",
        "should the two use different places: is an index or a stage wrong, or do two buffers share memory",
        "not-free not-ready wait-late buffer same-row slot overwritten cleared-unordered loaded-too-soon "
        "within-warp",
        "race",
    ),
    _rival(
        "every-wait",
        "does every thread that uses it wait in every round, for that round, and is it signalled only after "
        "the work",
        "not-ready not-free slot",
        "race",
    ),
    _rival(
        "one-of-all",
        "does the test that keeps the others out compare a rank, a warp or a lane that differs between them",
        "one-cta announced-apart both-multiply own-barrier",
    ),
    _rival(
        "read-elsewhere",
        "is it written, but in another place, later, or by too few threads",
        "exchanged unset",
        "uninitialized",
    ),
    _rival(
        "scaled",
        "are coordinates counted in elements, from the right start, and scaled only once",
        "useless-loads useless-stores outside",
    ),
    _rival(
        "own-start",
        "does one side begin at another slot, or advance more or less than once per round",
        "shifted one-slot parted ahead-slots ahead-silent outside-array ring",
    ),
    _rival(
        "own-columns",
        "do the two sides name different columns, or do the columns change from round to round",
        "other-issuer accumulate",
    ),
    _rival(
        "other-round",
        "do loops that belong together run a different number of rounds, or begin with different ones",
        "role-ended accumulate unseen-load",
    ),
)


# Shown outright: by the instruction, by the program's text, or by what two accesses have in common.
SHOWN = _ids(
    "endless endless-outside endless-wait grid shared-place shared-id not-all-threads aligned two-roles "
    "left-over mma-lanes "
    "uninitialised init-fence init-order parity reused freed freed-early freed-in-use gaps early-exit lanes "
    "elect alloc pair registers overlap same-columns two-uses loaded-twice load-apart loads-first "
    "no-sync "
    "no-group-sync announced-twice stays misnamed one-misnamed missent one-missent others-columns same-tile "
    "bytes-elsewhere several-lines moved-columns all-write same-part arrives-alone leaves-it-to-others "
    "tcgen05-fence unacquired unordered-value group-late group-unguarded never-waits others-waited late "
    "products-pending "
    "past-shared dynamic-short null past-local two-swizzles "
    "copy-fence proxy-fence incomplete-output left-blocks "
    "no-work unused-back own-arrival stores-outside stores-pending same-tile-again waits-less "
    "unwritten-local unset-parity each-for-all ignored-answer all-at-each sent-by-both lanes-apart no-mma "
    "signals-first wrong-peer place-stays other-turn nobody-waits phase-again before-turn unmet "
    "arrived-again skips-phases cleared-late columns-of-a-warp role-twice out-of-turn "
    "moved-first past-buffer strange-commit adds-to-nothing accumulate-part no-wait-at-all ring-short "
    "tiles-overlap tiles-too-many stores-past first-tiles no-pair silent-here elements-meet other-group "
    "one-memory load-outside leaves-ring read-unawaited "
    "columns-stay other-columns phase-of-many answers-more waits-first one-word product-unwaited "
    "own-behind loaded-again groups-allowed only-read "
    "shared-word word-moves-on parts-apart boxes-overlap no-rank own-alloc awaited-elsewhere own-twice "
    "before-shared unused-third both-ways written-again "
    "commit-for-threads lane-for-warp role-by-turns last-left-out "
    "warp-left-out commit-uncounted slot-by-cta same-tile-of-warps left-loop "
    "stores-diagonal lanes-differ by-exchange handed-for-warp "
    "matrix-rows starts-anew operand-type operand-repeats operand-axis operand-part operand-negated "
    "never-arrives over-without freed-before "
    "relaxed-meeting peers-unasked variable-of-all other-cta hands-nothing-on "
    "role-in-two-warps skips-element slot-of-others announced-besides beside-tile "
    "overtaken polls elects-lowest arrival-unwaited past-stage arrival-weak "
    "loads-shifted"
)


def rivals_of(cause: str, kind: str = "") -> tuple[str, ...]:
    """The questions of a cause's rivals, for a finding of this kind."""
    own = tuple(rival.asks for rival in RIVALS if cause in rival.of)
    if own or cause in SHOWN:
        return own
    return tuple(rival.asks for rival in RIVALS if kind in rival.kinds)


def with_rivals(cause: str, kind: str, hint: str) -> str:
    """A hint, followed by the questions of the cause's rivals."""
    asked = "".join(f" Or {question}?" for question in rivals_of(cause, kind))
    if not hint:
        return asked.strip().removeprefix("Or ")
    return hint + ("" if hint.endswith("?") or not asked else ".") + asked
