"""The order in which findings of one severity are reported: causes before their consequences.

First comes code that cannot work at all, then work issued or signalled by the wrong threads, waits that do
not wait, wrong counts of bytes and arrivals, buffers that are not ready, deadlocks that nothing above
explains, and what is left open or unwritten at the end. A finding that names a cause has that cause's rank;
any other has the rank of its kind.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES

KINDS = {  # kind of a finding without a cause -> rank; equal ranks are ordered as listed
    "collective": 10,
    "illegal": 30,
    "mbarrier": 40,
    "tmem-alloc": 50,
    "misaligned": 60,
    "descriptor": 70,
    "out-of-bounds": 80,
    "cluster": 90,
    "tx-count": 180,
    "uninitialized": 210,
    "race": 230,
    "deadlock": 240,
    "proxy-fence": 260,
    "async-pending": 270,
    "tmem-leak": 290,
    "unsupported": 300,
}
_ORDER = {kind: at for at, kind in enumerate(KINDS)}


def rank(finding) -> tuple[int, int]:
    """The rank of a finding's cause, or else of its kind; ties are ordered by kind."""
    cause = CAUSES.get(finding.evidence.get("cause"))
    return cause.rank if cause is not None else KINDS[finding.kind], _ORDER[finding.kind]
