# For editors, and the text behind `tirxlab.dialect.docs`: layouts and the names beside `Tx`.
# Each docstring: what it is; Lowers to (what the PTX will hold); Who (may call it); Then (what must follow).
from typing import Any

from .func import KernelInfo as KernelInfo
from .func import SharedName as SharedName
from .func import info_of as info_of
from .func import names_of as names_of
from .namespace import Tx as Tx
from .sync import ClusterPersistentScheduler2D as ClusterPersistentScheduler2D
from .sync import MBarrier as MBarrier
from .sync import PipelineState as PipelineState
from .sync import TCGen05Bar as TCGen05Bar
from .sync import TMABar as TMABar

class KernelError(Exception):
    """A kernel that the language does not allow; the message names the file and line.

    Lowers to: nothing, it stops the build.
    Who: raised by `@Tx.prim_func` and by `build`.
    Then: fix the line that it shows.
    """

    reason: str

class SwizzleMode:
    """How 16-byte pieces of a shared-memory tile are permuted, so that column reads hit all banks.

    Lowers to: the swizzle field of the tensor map and of the MMA's matrix descriptor.
    Who: Python code outside the kernel, as an argument of `tma_shared_layout`.
    Then: the same mode for every user of a buffer; a swizzled buffer starts on 1024 bytes.
    """

    SWIZZLE_NONE: SwizzleMode
    SWIZZLE_32B_ATOM: SwizzleMode
    SWIZZLE_64B_ATOM: SwizzleMode
    SWIZZLE_128B_ATOM: SwizzleMode

class Axis:
    """A hardware axis of a layout: `1 @ TLane` is a step of one lane.

    Lowers to: nothing by itself.
    Who: Python code outside the kernel, inside `S[shape : strides]`.
    Then: nothing.
    """

    def __rmatmul__(self, stride: int) -> Any: ...

TLane: Axis
"""The 128 lanes (rows) of tensor memory.

Lowers to: bits 31-16 of a TMEM address.
Who: Python code outside the kernel, in a `TileLayout`.
Then: nothing.
"""
TCol: Axis
"""The 512 columns of tensor memory, 32 bits each.

Lowers to: bits 15-0 of a TMEM address.
Who: Python code outside the kernel, in a `TileLayout`.
Then: nothing.
"""
axis_tid_in_wg: Axis
"""The 128 threads of a warpgroup: `S[(128, N) : (1 @ axis_tid_in_wg, 1)]` gives each thread one row.

Lowers to: nothing by itself; matched with `TLane` it makes a copy a `tcgen05.ld`.
Who: Python code outside the kernel, in the layout of a register view.
Then: use the view in `with Tx.warpgroup():` only.
"""

class _ShapeSpec:
    def __getitem__(self, spec: Any) -> Any: ...

S: _ShapeSpec
"""`S[shape : strides]`: where each element lies; `stride @ axis`, or memory without an axis.

Lowers to: nothing by itself.
Who: Python code outside the kernel, inside `TileLayout`.
Then: nothing.
"""

class TileLayout:
    """A layout, for example `TileLayout(S[(128, 512) : (1 @ TLane, 1 @ TCol)])` for tensor memory.

    Lowers to: the address arithmetic of every use of the buffer.
    Who: Python code outside the kernel.
    Then: pass it as `layout=` of `Tx.decl_buffer` or `buf.view`.
    """

    def __init__(self, spec: Any) -> None: ...

def tma_shared_layout(dtype: str, swizzle_mode: SwizzleMode, shape: tuple[int, ...]) -> TileLayout:
    """Layout of a shared-memory buffer that TMA fills and tcgen05.mma reads (or TMA stores from).

    Lowers to: the box and swizzle of the tensor map, and the descriptor of the MMA.
    Who: Python code outside the kernel; the last two dimensions of `shape` are tiled.
    Then: pass it as `layout=` of `pool.alloc`, which then aligns the buffer to 1024 bytes.
    """
