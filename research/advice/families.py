"""The family of mistakes that each cause is about, by its id, and the verdict on a first finding."""

from __future__ import annotations


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.split())


# family -> ids of causes that are about it, and so would lead to its repair
FAMILIES: dict[str, frozenset[str]] = {
    "count": _ids(
        "ahead ahead-count announced-apart arrivals commit-for-threads left-open left-over one-cta "
        "commit-uncounted own-twice partial shared-id too-many"
    ),
    "phase": _ids(
        "again again-ahead both-ways flipped-early fresh fresh-late fresh-read fresh-wait lapped missed "
        "nobody-starts not-flipped parity phase-of-many stale wait-phase"
    ),
    "slot": _ids(
        "load-apart ahead-silent ahead-slots shifted misrouted "
        "other-issuer outside-array out-of-turn past-shared skips-element "
        "leaves-ring other-turn silent silent-slot slot slot-by-cta"
    ),
    "buffer": _ids("buffer place-stays"),
    "loop": _ids(
        "ahead ahead-arrives ahead-rounds ended ended-once endless endless-wait first-tiles grid "
        "freed-before "
        "first-left-out incomplete-output last-left-out left-loop load-outside role-ended silent-rest "
        "stores-past unseen-load"
    ),
    "bytes": _ids("announced-apart bytes bytes-announced bytes-only"),
    "wait": _ids(
        "freed-before "
        "ahead-unwaited arrives-again early freed lapped missed not-free not-ready never-waits others-waited "
        "overwritten phase-of-many product-unwaited products-pending read-unawaited unseen-load wait-late "
        "before-turn nobody-waits signals-first waits-first"
    ),
    "signal": _ids(
        "never-arrives "
        "answers-more by-thread bytes-only early ended-once left-open partial products-pending silent "
        "silent-rest unmet unused-third"
    ),
    "fence": _ids("copy-fence init-fence proxy-fence tcgen05-fence"),
    "sync": _ids(
        "early early-exit freed-early init-order left-over no-group-sync no-sync not-all-threads not-free "
        "lane-for-warp warp-left-out not-ready never-waits others-waited shared-id sync word-moves-on "
        "written-again"
    ),
    # families of slips.toml
    "accumulate": _ids("accumulate starts-anew"),
    "epilogue": _ids("early first-tiles incomplete-output not-free not-ready same-tile unset"),
    "layout": _ids("operand-axis operand-part operand-repeats operand-type past-shared"),
    "grid": _ids(
        "endless ended ended-once first-tiles grid "
        "incomplete-output outside same-tile silent-here tiles-too-many useless-stores"
    ),
    "pair": _ids(
        "both-multiply early-exit incomplete-output misrouted no-pair "
        "one-cta own-barrier pair same-tile silent-here stores-diagonal tiles-overlap"
    ),
    "roles": _ids(
        "alloc issuers not-all-threads role-by-turns role-ended role-in-two-warps role-twice "
        "silent-here sync two-roles"
    ),
    "store": _ids("groups late not-free"),
    "tmem": _ids("columns-stay freed-early other-columns unset"),
    "tile": _ids(
        "first-tiles grid incomplete-output outside boxes-overlap "
        "parts-apart same-row same-tile same-tile-of-warps stores-diagonal tiles-overlap tiles-too-many "
        "useless-loads "
        "useless-stores"
    ),
}
# Repairs that a reader would try at once: as advice for another family they lead astray.
SPECIFIC = ("count", "phase", "slot", "buffer", "loop", "bytes")


def judged(family: str, cause: str, localised: str) -> str:
    """ "right": the family's own cause, or no special advice at the right place; "wrong": the advice for
    another family; "vague": neither.
    """
    if cause in FAMILIES[family]:
        return "right"
    if any(cause in FAMILIES[other] for other in SPECIFIC):
        return "wrong"
    return "right" if localised else "vague"
