"""Dynamic checks, implemented as observers of machine events.

A check is a class `Check(launch, reporter)` derived from `events.observer.Observer` and listed in OBSERVERS.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxsim.checks.barrier_history import History
from ptxsim.checks.barrier_names import BarrierNames
from ptxsim.checks.cta_barriers import CtaBarriers
from ptxsim.checks.diagnosis.oddities import Oddities
from ptxsim.checks.diagnosis.races import report
from ptxsim.checks.diagnosis.seen import Seen
from ptxsim.checks.lifecycle.adding_stores import AddingStores
from ptxsim.checks.lifecycle.bulk_copies import BulkCopies
from ptxsim.checks.lifecycle.cluster_peers import Peers
from ptxsim.checks.lifecycle.descriptors import Descriptors
from ptxsim.checks.lifecycle.early_register_reads import LoadedRegisters
from ptxsim.checks.lifecycle.ignored_answers import IgnoredAnswers
from ptxsim.checks.lifecycle.local_memory import LocalMemory
from ptxsim.checks.lifecycle.lost_results import LostResults
from ptxsim.checks.lifecycle.matrix_rows import MatrixRows
from ptxsim.checks.lifecycle.mbarriers import Barriers
from ptxsim.checks.lifecycle.operands import Operands
from ptxsim.checks.lifecycle.register_counts import RegisterCounts
from ptxsim.checks.lifecycle.shared_memory import SharedMemory
from ptxsim.checks.lifecycle.tensor_memory import TmemLife
from ptxsim.checks.lifecycle.unset_registers import UnsetStores
from ptxsim.checks.lifecycle.useless_loads import UselessLoads
from ptxsim.checks.lifecycle.useless_stores import UselessStores
from ptxsim.checks.lifecycle.wmma_fragments import WmmaFragments
from ptxsim.checks.race.across_processes import detector
from ptxsim.checks.race.detector import RaceDetector
from ptxsim.events.bus import SILENT, Bus, Silent
from ptxsim.events.observer import Observer
from ptxsim.events.views import Launch
from ptxsim.report.findings import Reporter


def _race_detector(launch: Launch, reporter: Reporter) -> RaceDetector:
    return RaceDetector(launch, reporter, report)


OBSERVERS: tuple[Callable[..., Observer], ...] = (
    BarrierNames,
    Barriers,
    History,
    CtaBarriers,
    Peers,
    SharedMemory,
    MatrixRows,
    LocalMemory,
    IgnoredAnswers,
    TmemLife,
    BulkCopies,
    Descriptors,
    Operands,
    LoadedRegisters,
    RegisterCounts,
    UselessLoads,
    UselessStores,
    AddingStores,
    UnsetStores,
    WmmaFragments,
    _race_detector,
    LostResults,
    Oddities,
    Seen,
)


def checking_bus(launch: Launch, reporter: Reporter, extra: tuple[Observer, ...] = ()) -> Bus:
    """An event bus with all checks of a launch, then `extra`."""
    return Bus([*(check(launch, reporter) for check in OBSERVERS), *extra], in_place=bool(extra))


def bus_beside(first: Bus | Silent, launch: Launch, reporter: Reporter) -> Bus | Silent:
    """The bus of a cluster that runs beside that of `first`: with all checks, if that one has them."""
    there = detector(first)
    if there is None:
        return SILENT
    bus = checking_bus(launch, reporter)
    here = detector(bus)
    assert here is not None
    here.history.join(there.history)
    return bus
