"""Registers that a tcgen05.ld or wgmma still uses: results that are read before its wait, and registers of a
wgmma's A that are written before it (PTX ISA 9.7.16.8.1, 9.7.15.7.3).

Found in the program text, reported when the instruction runs. A plain `mov` does not count as a use: ptxas
merges such copies into one register. For a tcgen05.ld this is a `review`, whether its wait comes late or
never: a true dependence through a register is kept without it (PTX ISA 9.7.16.6.4.5), which Triton 3.9 and
FlashAttention-4 rely on. Nothing else is ordered before the wait; races with a reuse of the columns are
reported as races.
"""

from __future__ import annotations

from ptxsim.checks.register_uses import early_writes
from ptxsim.events.observer import Observer
from ptxsim.events.records import TmemCells
from ptxsim.events.views import Cluster, Launch, Split
from ptxsim.report.findings import Reporter

_LD_HINT = "put tcgen05.wait.ld between tcgen05.ld and the first use of its registers"
_WGMMA_HINT = "put wgmma.commit_group, then wgmma.wait_group, between wgmma and the first use of its result"
_A_HINT = "put wgmma.commit_group, then wgmma.wait_group, between wgmma and the next write of A's registers"


class LoadedRegisters(Observer):
    def __init__(self, launch: Launch, reporter: Reporter):
        self.reporter = reporter
        self.early = launch.early_uses

    def tmem_issue(self, cluster: Cluster, split: Split, cells: TmemCells, write: bool) -> None:
        if not write:
            self._report(cluster, split, "review", "tcgen05.ld", "tcgen05.wait::ld", _LD_HINT)

    def wgmma_issue(self, cluster: Cluster, split: Split, columns: int, depth: int) -> None:
        wait = "a wgmma.wait_group that covers it"
        self._report(cluster, split, "error", "wgmma", wait, _WGMMA_HINT)
        row = early_writes(cluster.program).get(split.row)
        if row is not None:
            line = self.reporter.line_text(cluster.program.instrs[row])
            message = f"a register of A of this wgmma is written ({line}) before {wait}"
            self.reporter.add("async-pending", "error", message, _A_HINT, split, key="early-write")

    def _report(self, cluster: Cluster, split: Split, severity: str, what: str, wait: str, hint: str) -> None:
        row = self.early.get(split.row)
        if row is not None:
            line = self.reporter.line_text(cluster.program.instrs[row])
            message = f"a register of this {what} is read ({line}) before {wait}"
            self.reporter.add("async-pending", severity, message, hint, split, key="early")
