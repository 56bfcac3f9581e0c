"""For following a run instruction by instruction: the observer base class, and what instructions mean.

Part of ptxsim's public interface: the names below stay when the internal modules change.
"""

from ptxsim.events.observer import Observer
from ptxsim.grid.processes import run_clusters
from ptxsim.isa.address_map import OFFSET_MASK, RANK_SHIFT, SHARED_BASE, SHARED_START, shared_place
from ptxsim.jit import bytecode
from ptxsim.jit.translate import is_shared
from ptxsim.lowering.unset_reads import unset_reads
from ptxsim.machine.occupancy import SM_CTAS, SM_SHARED, SM_THREADS
from ptxsim.report.findings import Reporter
from ptxsim.trace.recorder import Recorder
from ptxsim.units.tcgen05_mma import operands
from ptxsim.units.tma_boxes import box_index

__all__ = [
    "OFFSET_MASK",
    "Observer",
    "RANK_SHIFT",
    "Recorder",
    "Reporter",
    "SHARED_BASE",
    "SHARED_START",
    "SM_CTAS",
    "SM_SHARED",
    "SM_THREADS",
    "box_index",
    "bytecode",
    "is_shared",
    "operands",
    "run_clusters",
    "shared_place",
    "unset_reads",
]
