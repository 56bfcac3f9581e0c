"""Which finding is the cause: the order in which findings of one severity are told.

From what explains others to what others explain: code that cannot work at all, work that is issued or
signalled by the wrong threads, waits that do not wait, counts of bytes and arrivals, buffers that are not
ready, standstills that nothing above explains, and what is left open or unwritten at the end. A finding
that names a cause has that cause's rank; any other has the rank of its kind.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES

KINDS = {  # kind of a finding without a cause -> rank; the order also parts kinds of one rank
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
    """The rank of its cause, else of its kind; then by kind."""
    cause = CAUSES.get(finding.evidence.get("cause"))
    return cause.rank if cause is not None else KINDS[finding.kind], _ORDER[finding.kind]
