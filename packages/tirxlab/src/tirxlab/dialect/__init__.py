"""The kernel language of the course, on top of TVM 0.26's TIRX.

Students write against these names, because TVM changes its own from release to release. Only this
package and `tirxlab.toolchain.build` import TVM.
"""

from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode
from tvm.tirx.layout import S, TCol, TileLayout, TLane
from tvm.tirx.layout import tid_in_wg as axis_tid_in_wg

from .errors import KernelError
from .func import KernelInfo, SharedName, info_of, names_of
from .memory import tma_shared_layout
from .namespace import Tx
from .sync import ClusterPersistentScheduler2D, MBarrier, PipelineState, TCGen05Bar, TMABar

__all__ = [
    "ClusterPersistentScheduler2D",
    "KernelError",
    "KernelInfo",
    "MBarrier",
    "PipelineState",
    "S",
    "SharedName",
    "SwizzleMode",
    "TCGen05Bar",
    "TCol",
    "TLane",
    "TMABar",
    "TileLayout",
    "Tx",
    "axis_tid_in_wg",
    "info_of",
    "names_of",
    "tma_shared_layout",
]
