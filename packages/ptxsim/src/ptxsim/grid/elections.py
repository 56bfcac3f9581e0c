"""A second run, where elect.sync takes the lowest lane, of a launch that goes wrong where it takes another.

The ISA promises the same lane for the same members (9.7.13.14), not which one; an H200 takes the lowest. So
what goes wrong only with another lane is a `review`, and the memory is left as the second run leaves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ptxsim.causes.catalogue import CAUSES
from ptxsim.machine.choices import choices
from ptxsim.machine.late_operations import Order, base_of
from ptxsim.machine.launch_view import Launch
from ptxsim.report.findings import Finding


def run_elections(launch: Launch, run: Callable, order: Order):
    """Runs the launch, if need be twice; returns a Part. run(order) runs it once and returns its Part."""
    elects = any(instr.op == "elect" for instr in launch.program.by_row.values())
    if not (elects and choices(launch, base_of(order)).elected):
        return run(order)
    before = launch.memory.copies()
    another = run(order)
    if not _wrong(another):
        return another
    launch.memory.restore(before)
    launch.elects_lowest = True
    try:
        lowest = run(order)
    finally:
        launch.elects_lowest = False
    known = {_what(finding) for finding in _wrong(lowest)}
    relying = [finding for finding in _wrong(another) if _what(finding) not in known]
    if relying:
        first, cause = replace(relying[0], severity="review", count=1), CAUSES["elects-lowest"]
        lowest.reporter.blame(first, cause, cause.tell(otherwise=first.message))
        lowest.reporter.by_identity["elections",] = first
    return lowest


def _wrong(part) -> list[Finding]:
    return [finding for finding in part.reporter.findings if finding.severity != "review"]


def _what(finding: Finding) -> tuple:
    return finding.kind, finding.evidence.get("cause")
