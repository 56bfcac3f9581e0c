"""A copy with source and destination swapped: it reads a shared buffer that nobody has written, and writes
the array that should have filled it.
"""

from __future__ import annotations

from ptxsim.causes.catalogue import CAUSES
from ptxsim.checks.phrases import SourceLine, line_at, line_of, lines_text
from ptxsim.checks.race.across_processes import FIRST, WHAT, detector, summary
from ptxsim.checks.race.shadow_bytes import MEMORY
from ptxsim.checks.race.shadow_order import ROW_MASK
from ptxsim.checks.race.wording import place_of_conflict
from ptxsim.events.views import Cluster
from ptxsim.report.findings import Reporter


def exchanged_copies(cluster: Cluster, reporter: Reporter) -> None:
    """Promotes a load of unwritten bytes (review) to the cause of a unit's read of the same unwritten buffer,
    if the line of that load also stores to a global array.
    """
    found = [f for f in reporter.by_identity.values() if f.kind == "uninitialized" and f.where.get("line")]
    read = {f.evidence.get("buffer") for f in found if f.severity == "error" and "reader" in f.evidence}
    loads = [f for f in found if f.severity == "review" and f.evidence.get("buffer") in read]
    written = _written(cluster) if loads else {}
    for finding in loads:
        line, buffer = line_at(cluster.program, finding.where), finding.evidence["buffer"]
        if line in written:
            finding.severity = "error"
            text = f"{lines_text([line])} copies {buffer}, which nobody has written, into {written[line]}"
            reporter.blame(finding, CAUSES["exchanged"], text)


def _written(cluster: Cluster) -> dict[SourceLine, str]:
    """Source line -> a global array that this cluster has written there."""
    races = detector(cluster.bus)
    if races is None:
        return {}
    arrays = {}
    for span in summary(cluster.bus, [cluster.index])["write"]:
        row = int(span[WHAT]) & ROW_MASK
        line = line_of(cluster.program, row)
        if cluster.program.instrs[row].src and line not in arrays:
            arrays[line] = place_of_conflict(races, MEMORY, int(span[FIRST]))[1]
    return arrays
