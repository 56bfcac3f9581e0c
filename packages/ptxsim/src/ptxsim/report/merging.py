"""Findings of parts of one launch, which other processes or other orders have run, merged into one list."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

SEVERITIES = ("error", "incomplete", "review")  # of findings, the worst first


class Appeared(NamedTuple):
    """The numbers of the clusters in which a finding first appeared, and whose instance of it is kept."""

    first: int
    kept: int


class Found(Protocol):
    """A Reporter, as far as it is needed here."""

    cluster: int  # number of the cluster that runs, or ran last
    by_identity: dict[tuple, Any]
    appeared: dict[tuple, Appeared]


def absorb(reporter: Found, *others: Found) -> None:
    """Adds the findings of others, as if one process had run all clusters one after the other: in order of
    first appearance; of those that are merged, the worst is kept, the first one of several.
    """
    here = Appeared(reporter.cluster, reporter.cluster)
    each = [(i, f, other.appeared.get(i, here)) for other in others for i, f in other.by_identity.items()]
    for identity, finding, at in sorted(each, key=lambda one: one[2].first):
        known, before = reporter.by_identity.get(identity), reporter.appeared.get(identity, here)
        if known is None:
            reporter.by_identity[identity], reporter.appeared[identity] = finding, at
            continue
        count = known.count + finding.count
        if _precedence(finding, at) < _precedence(known, before):
            reporter.by_identity[identity] = finding
            reporter.appeared[identity] = before._replace(kept=at.kept)
        reporter.by_identity[identity].count = count


def _precedence(finding, at: Appeared) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), at.kept
