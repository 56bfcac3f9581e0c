"""Memory: the shared-memory pool, per-thread registers, TMEM declarations.

Offsets are bytes from the start of the CTA's dynamic shared memory.
"""

import math
from typing import Any

from tvm import DataType
from tvm.backend.cuda.lang.alloc_pool import SMEMPool
from tvm.backend.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout
from tvm.script import tirx as T
from tvm.tirx import _buffer_view, is_buffer_var

from .shapes import checked
from .state import state

# bytes of dynamic shared memory one CTA may use (CUDA guide, compute capability 10.0)
SHARED_LIMIT = 227 * 1024


class PoolAllocator(SMEMPool):
    """Hands out shared memory in the order of the calls; `commit()` fixes the total size.

    ptr: the data of your own buffer to hand out instead, whose size you choose.
    """

    def __init__(self, ptr=None):
        self.buf: Any = T.alloc_buffer([0], "uint8", scope="shared.dyn") if ptr is None else None
        self.ptr = self.buf.data if ptr is None else ptr
        self._owns_buffer = ptr is None
        self.offset = self.max_offset = 0
        self.committed = False
        if ptr is None:
            state().pools.append(self)

    def alloc(self, shape, dtype="float32", *, align=0, layout: Any = "default", scope="shared.dyn"):
        """The pool's next buffer, aligned to `align` bytes (if swizzled, to 1024, the swizzle's period)."""
        if self.committed:
            raise ValueError("pool.alloc() after pool.commit(): the buffer would lie outside the pool")
        checked("pool.alloc", shape, dtype)
        shape = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
        if layout not in ("default", None) and not hasattr(layout, "size"):
            raise TypeError(f"pool.alloc: layout is what tma_shared_layout(..) gives, not {layout!r:.60}")
        if layout not in ("default", None) and math.prod(shape) != int(layout.size()):
            raise ValueError(
                f"pool.alloc: the shape {shape} has {math.prod(shape)} elements, its layout "
                f"{int(layout.size())}: the layout of a buffer is made for its shape"
            )
        swizzled = layout not in ("default", None) and hasattr(layout, "swizzle_len")
        align = max(align, 1024 if swizzled else math.ceil(DataType(dtype).bits / 8))
        return SMEMPool.alloc(self, shape, dtype, align=align, layout=layout, scope=scope)

    def move_base_to(self, offset: int):
        """Continue allocating at byte `offset`, which may overlap buffers that are no longer needed."""
        if self.committed:
            raise ValueError("pool.move_base_to() after pool.commit()")
        SMEMPool.move_base_to(self, offset)

    def commit(self):
        """Fix the pool's size; no allocation may follow."""
        if self.committed:
            raise ValueError("pool.commit() is called twice")
        if self.max_offset > SHARED_LIMIT:
            raise ValueError(
                f"the pool needs {self.max_offset} B of shared memory; a CTA has {SHARED_LIMIT} B"
            )
        self.committed = True
        SMEMPool.commit(self)


_tvm_view = _buffer_view.view


def _view(buffer, *shape, **options):
    """`buf.view(shape, layout=...)`: TVM takes the extents as separate arguments, the course also a tuple."""
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        shape = tuple(shape[0])
    return _tvm_view(buffer, *shape, **options)


_buffer_view.view = _view


def tma_shared_layout(dtype: str, swizzle_mode: SwizzleMode, shape):
    """Layout of a shared-memory buffer for TMA and tcgen05.mma; the last two dimensions are tiled."""
    if not isinstance(swizzle_mode, SwizzleMode):
        raise TypeError(
            f"tma_shared_layout(dtype, SwizzleMode, shape): {swizzle_mode!r} is not a SwizzleMode"
        )
    checked("tma_shared_layout", shape, dtype)
    row, width = (
        shape[-1] * DataType(dtype).bits // 8,
        (16 << swizzle_mode.value) if swizzle_mode.value else 1,
    )
    if row % width or (width > 1 and shape[-2] % 8):
        raise ValueError(
            f"tma_shared_layout: {swizzle_mode.name} tiles 8 rows of {width} B; {tuple(shape)} {dtype} has "
            f"{shape[-2]} rows of {row} B"
        )
    return mma_shared_layout(dtype, swizzle_mode, tuple(shape))


def alloc_local(shape, dtype="float32", **options):
    """Registers of one thread; `.view(rows, cols, layout=...)` is the warpgroup's tile made of them."""
    checked("Tx.alloc_local", shape, dtype)
    return T.alloc_local(shape, dtype, **options)


def decl_buffer(shape, dtype="float32", *, scope="global", allocated_addr: Any = None, **options):
    """Declare hardware-managed memory: scope="tmem", allocated_addr=tmem_addr[0] (or a first column)."""
    checked("Tx.decl_buffer", shape, dtype)
    if isinstance(allocated_addr, str | float | list | tuple):
        raise TypeError(
            f"Tx.decl_buffer: allocated_addr is tmem_addr[0] or a column, not {allocated_addr!r:.60}"
        )
    if is_buffer_var(allocated_addr):
        allocated_addr = allocated_addr[0]
    if scope in ("local", "shared", "shared.dyn") and "data" not in options:
        raise ValueError(
            f"Tx.decl_buffer(scope={scope!r}): use Tx.alloc_local for registers, pool.alloc for shared"
        )
    if scope == "tmem" and allocated_addr is None:
        raise ValueError(
            "a TMEM buffer needs allocated_addr: tmem_addr[0], where tcgen05.alloc wrote its address"
        )
    if scope == "tmem" and isinstance(shape, list | tuple) and len(shape) == 2 and int(shape[0]) > 128:
        raise ValueError(f"tensor memory has 128 lanes: its shape is (128, columns), not {tuple(shape)}")
    if scope == "tmem" and not _by_lanes(options.get("layout")):
        raise ValueError(
            "a TMEM buffer needs a layout with its rows in lanes and its columns in columns: "
            "layout=TileLayout(S[(128, columns) : (1 @ TLane, 1 @ TCol)])"
        )
    if scope == "global" and allocated_addr is not None:
        raise ValueError('Tx.decl_buffer with allocated_addr is tensor memory: add scope="tmem"')
    return T.decl_buffer(shape, dtype, scope=scope, allocated_addr=allocated_addr, **options)


def address_of(buffer):
    """Pointer to a buffer's first element (what tcgen05.alloc writes to), or to `buffer[i]`."""
    return T.address_of(buffer)


def _by_lanes(layout: Any) -> bool:
    """Whether a layout spreads a buffer over columns and over no more lanes than tensor memory has."""
    parts = [(part.axis.name, int(part.extent)) for part in getattr(layout, "shard", ())]
    lanes = math.prod(extent for axis, extent in parts if axis == "TLane")
    return 1 < lanes <= 128 and any(axis == "TCol" for axis, _ in parts)
