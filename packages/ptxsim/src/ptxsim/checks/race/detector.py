"""Races by happens-before: conflicting accesses to shared, global and tensor memory that nothing orders.

The parts of the detector observe the machine in the order of `RaceDetector.parts`. Some keep the vector
clocks of threads (synchronization.py, proxy_fences.py, thread_accesses.py), some record what hardware units
access, as agents of their own (async_copies.py, tensor_core.py, tensor_memory.py). access_history.py looks
every access up and finds conflicts; `report` turns them into findings (diagnosis/races.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.checks.race.access_history import AccessHistory
from ptxsim.checks.race.async_copies import BulkCopyOrder, ThreadCopies
from ptxsim.checks.race.async_work import Transfers
from ptxsim.checks.race.barrier_init import BarrierInit
from ptxsim.checks.race.barrier_record import BarrierRecord
from ptxsim.checks.race.conflict import AccessPair
from ptxsim.checks.race.cta_barrier_phases import CtaBarrierPhases
from ptxsim.checks.race.early_copies import EarlyCopies
from ptxsim.checks.race.handshakes import Handshakes
from ptxsim.checks.race.idle_loads import IdleLoads
from ptxsim.checks.race.idle_results import IdleResults
from ptxsim.checks.race.missed_phases import MissedPhases
from ptxsim.checks.race.part import Part
from ptxsim.checks.race.proxy_fences import ProxyFences
from ptxsim.checks.race.synchronization import Synchronization
from ptxsim.checks.race.tensor_core import Tcgen05, Wgmma
from ptxsim.checks.race.tensor_memory import LoadUses, TensorMemoryAccesses
from ptxsim.checks.race.thread_accesses import ThreadAccesses
from ptxsim.checks.race.vector_clocks import MAX_THREADS, VectorClocks
from ptxsim.events.observer import Observer
from ptxsim.events.views import Cluster, Launch
from ptxsim.report.findings import Reporter

Report = Callable[["RaceDetector", dict[tuple, AccessPair]], None]


class RaceDetector(Observer):
    """The race detector of a launch: creates its parts, fixes their order and holds the state they share.

    report(detector, pairs): called at the end of a cluster with the pairs that nothing orders.
    """

    def __init__(self, launch: Launch, reporter: Reporter, report: Report):
        self.launch, self.reporter, self.report = launch, reporter, report
        self.history = AccessHistory(self)
        self.barrier_init = BarrierInit(self)
        self.handshakes = Handshakes(self)
        self.record = BarrierRecord(self)
        self.synchronization = Synchronization(self)
        self.fences = ProxyFences(self)
        self.threads = ThreadAccesses(self)
        self.tensor_memory = TensorMemoryAccesses(self)
        self.bulk = BulkCopyOrder(self)
        self.copies = ThreadCopies(self)
        self.idle_loads, self.results = IdleLoads(self), IdleResults(self)
        self.wgmma = Wgmma(self)
        self.parts: tuple[Part, ...] = (
            self.barrier_init, self.handshakes, CtaBarrierPhases(self), LoadUses(self), self.synchronization,
            MissedPhases(self), EarlyCopies(self), self.fences, self.threads,
            self.bulk, self.copies, self.tensor_memory, Tcgen05(self), self.wgmma, self.record,
            self.idle_loads, self.results, self.history,
        )  # fmt: skip

    def start(self, cluster: Cluster) -> None:
        """Runs before the parts start, which use the clocks of this cluster."""
        self.cluster = cluster
        self.clocks = VectorClocks(cluster)
        for part in self.parts:
            part.clocks = self.clocks
        if self.clocks.threads_per_agent > 1:
            message = (
                f"the cluster has {cluster.warps * 32} threads; above {MAX_THREADS}, the lanes of a warp are "
                f"checked as one thread, so races between lanes may be missed"
            )
            self.reporter.add("unsupported", "incomplete", message, key=("lanes",))
        self.transfers = Transfers()

    def finish(self, cluster: Cluster) -> None:
        self.record.close(cluster)
        self.report(self, self.history.pairs)
