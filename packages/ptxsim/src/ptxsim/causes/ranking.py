"""Which finding is the cause: the order in which findings of one severity are told.

A finding may say in evidence["cause"] what it is about. The table goes from what explains others to what
others explain: code that cannot work at all, work that is issued or signalled by the wrong threads, waits
that do not wait, counts of bytes and arrivals, buffers that are not ready, standstills that nothing above
explains, and what is left open or unwritten at the end.
"""

from __future__ import annotations

_WRONG_BARRIER = ("empty commit", "no init", "outside its array", "own barrier")
_FLIP = ("stale", "not flipped", "fresh")
_COUNTS = ("slot", "bytes", "arrivals", "ahead", "bytes only", "partial", "misrouted", "silent", "missed")

ORDER: tuple[tuple[str, tuple[str, ...]], ...] = (  # (kind, causes); no causes: all that are not named
    ("deadlock", ("endless",)),
    ("collective", ()),
    ("collective", ("left",)),
    ("illegal", ()),
    ("mbarrier", ()),
    ("tmem-alloc", ()),
    ("misaligned", ()),
    ("descriptor", ()),
    ("out-of-bounds", ()),
    ("cluster", ()),
    ("deadlock", ("collective", "warpgroup", "alloc", "pair", "registers")),
    ("mbarrier", _WRONG_BARRIER),
    ("deadlock", _WRONG_BARRIER),
    ("race", ("issuers",)),
    ("mbarrier", _FLIP),
    ("deadlock", _FLIP),
    ("uninitialized", ("exchanged", "fresh")),
    ("race", ("fresh", "no sync", "slot", "arrivals", "by thread", "again", "early", "same tile")),
    ("tx-count", ()),
    ("mbarrier", _COUNTS),
    ("deadlock", _COUNTS),
    ("uninitialized", ()),
    ("deadlock", ("flipped early",)),
    ("race", ()),
    ("deadlock", ()),
    ("collective", ("late",)),
    ("proxy-fence", ()),
    ("async-pending", ()),
    ("uninitialized", ("unwritten",)),
    ("tmem-leak", ()),
    ("unsupported", ()),
)
_NAMED = {(kind, cause): at for at, (kind, causes) in enumerate(ORDER) for cause in causes}
_OTHERS = {kind: at for at, (kind, causes) in enumerate(ORDER) if not causes}


def rank(finding) -> int:
    """Position in ORDER."""
    return _NAMED.get((finding.kind, finding.evidence.get("cause")), _OTHERS[finding.kind])
