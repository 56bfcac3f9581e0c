# For editors: `Tx`. Docstrings as in __init__.pyi. Names of TVM that the course does not use complete as Any.
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from .instructions import Cuda, Ptx
from .tile_ops import TileOps

class Scope(AbstractContextManager[Any]):
    """What `Tx.cta()` and the other scopes return: `with` says which threads execute the block."""

    def __exit__(self, *error: Any) -> None: ...
    def __getitem__(self, condition: Any) -> Scope:
        """`[condition]`: only the threads for which the condition holds execute the block.

        Lowers to: an `if`.
        Who: all threads evaluate the condition.
        Then: nothing inside may wait for the threads left out.
        """

class TxBuffer:
    """A buffer: a parameter, or what `pool.alloc`, `Tx.alloc_local` and `Tx.decl_buffer` return.

    Lowers to: address arithmetic; slices keep their shape, `buf[a:b, c:d]`.
    Who: any thread that may reach the memory.
    Then: slice lengths are Python constants; starts may be expressions.
    """

    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def view(self, *shape: Any, layout: Any = ...) -> TxBuffer:
        """The same registers or memory under another shape and layout: `Dreg.view(128, N, layout=...)`.

        Lowers to: nothing.
        Who: all threads; a view over `axis_tid_in_wg` is used in `with Tx.warpgroup():`.
        Then: for work of single threads use the buffer that the view was made from.
        """

    def ptr_to(self, index: list) -> Any:
        """Pointer to an element: `bar.ptr_to([0])`.

        Lowers to: an address.
        Who: any thread.
        Then: nothing.
        """

class Pool:
    """What `Tx.PoolAllocator()` returns.

    Lowers to: offsets into one `extern __shared__` array.
    Who: made once per kernel.
    Then: `alloc` everything, barriers too, then `commit()`.
    """

    def __init__(self, ptr: Any = None) -> None: ...
    def alloc(self, shape: Any, dtype: str = "float32", *, align: int = 0, layout: Any = ...) -> TxBuffer:
        """The next buffer; one with a swizzled layout is aligned to 1024 bytes.

        Lowers to: an offset.
        Who: kernel code before `commit()`.
        Then: `commit()`.
        """

    def move_base_to(self, offset: int) -> None:
        """Continue allocating at byte `offset`: `1024` aligns, and a smaller offset makes buffers overlap.

        Lowers to: nothing.
        Who: kernel code before `commit()`.
        Then: overlapping buffers must never be live at the same time.
        """

    def commit(self) -> None:
        """Fix the size of the pool.

        Lowers to: the launch's number of dynamic shared-memory bytes.
        Who: once, after the last `alloc` and the last barrier.
        Then: no more `alloc`.
        """

class _Tx(TileOps):
    """The language of the course.

    Lowers to: CUDA C++ through TVM, then PTX.
    Who: kernels under `@Tx.prim_func(tirx=True)`.
    Then: `./lab check S`.
    """

    ptx: Ptx
    cuda: Cuda
    int32: Any
    float32: Any
    def PoolAllocator(self, ptr: Any = None) -> Pool:
        """Dynamic shared memory of the CTA (at most 227 KiB), handed out in the order of the calls.

        Lowers to: offsets into one `extern __shared__` array.
        Who: made once per kernel.
        Then: `alloc` everything, barriers too, then `commit()`.
        """

    def prim_func(self, func: Any = None, *, tirx: bool = True) -> Any:
        """Decorator: the function is parsed, not run, and becomes a kernel.

        Lowers to: one `__global__` function.
        Who: Python code; M, N, K and other constants are Python variables outside it.
        Then: return the kernel from its builder.
        """

    def Buffer(self, shape: Any, dtype: str = "float32") -> TxBuffer:
        """Type of a parameter: `A: Tx.Buffer((M, K), "float16")`.

        Lowers to: a pointer parameter, or a tensor map where TMA uses the buffer.
        Who: the signature of the kernel.
        Then: nothing.
        """

    def inline(self, func: Callable) -> Callable:
        """Decorator of a helper inside the kernel; its body is copied to every call.

        Lowers to: nothing by itself.
        Who: kernel code; the helper sees the variables around it, and the scope it is called in.
        Then: call it.
        """

    def And(self, *conditions: Any) -> Any:
        """True if every condition holds: `Tx.And(row < M, col < N)`.

        Lowers to: `&&`.
        Who: any thread.
        Then: nothing.
        """

    def Or(self, *conditions: Any) -> Any:
        """True if one of the conditions holds: `Tx.Or(warp_id == 0, warp_id == 3)`.

        Lowers to: `||`.
        Who: any thread.
        Then: nothing.
        """

    def meta_var(self, value: Any) -> Any:
        """A name for an expression that stays an expression: needed for slice starts and option dicts.

        Lowers to: nothing; the expression is copied to each use.
        Who: kernel code.
        Then: nothing.
        """

    def unroll(self, start: Any, stop: Any = None) -> Iterator[Any]:
        """Loop that is written out: `for i in Tx.unroll(4):`.

        Lowers to: the body, once per value.
        Who: kernel code; needed where `i` picks registers.
        Then: nothing.
        """

    def serial(self, start: Any, stop: Any = None) -> Iterator[Any]:
        """Loop that stays a loop (plain `range` does too).

        Lowers to: `for (int i = 0; i < n; ++i)`.
        Who: kernel code.
        Then: nothing.
        """

    def if_then_else(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """One of two values.

        Lowers to: a select.
        Who: each thread.
        Then: nothing.
        """

    def evaluate(self, value: Any) -> None:
        """Keep an expression for its side effect.

        Lowers to: the expression as a statement.
        Who: kernel code.
        Then: nothing.
        """

    def kernel(self, *, parent: str | None = None) -> Scope:
        """The whole launch; ids, memory and the roles are written in it.

        Lowers to: nothing by itself.
        Who: once, around the kernel's body.
        Then: `Tx.cta_id`, the pool, the roles.
        """

    def cluster(self, *, parent: str | None = None) -> Scope:
        """All threads of the cluster's CTAs work together on what is inside.

        Lowers to: a share of the work per thread.
        Who: all threads of the cluster.
        Then: `cluster_sync` before others use the result.
        """

    def cta(self, *, parent: str | None = None) -> Scope:
        """All threads of the CTA share the work: `with Tx.cta(): Tx.copy(Asmem[:, :], A[:, :])`.

        Lowers to: loops with a share for each thread.
        Who: all threads of the CTA.
        Then: `cta_sync` before anyone uses what was copied.
        """

    def warpgroup(self, *, parent: str | None = None) -> Scope:
        """The 128 threads of a warpgroup work together, as reading and writing TMEM requires.

        Lowers to: `tcgen05.ld` / `.st` for TMEM, loops otherwise.
        Who: all 128 threads of the warpgroup.
        Then: for shared memory, `warpgroup_sync`.
        """

    def wg(self, *, parent: str | None = None) -> Scope:
        """`Tx.warpgroup`, as TVM's documentation writes it: `Tx.wg.copy(view, tmem[:, :128])`.

        Lowers to: as under `with Tx.warpgroup():`.
        Who: all 128 threads of the warpgroup.
        Then: for shared memory, `warpgroup_sync`.
        """

    @property
    def tile(self) -> Any:
        """TVM's spelling, with the scope first: `Tx.tile.cta.copy(dst, src)`; `Tx.tile.copy` is one thread's.

        Lowers to: what the operation gives under `with Tx.cta():`, and so on.
        Who: the threads of the scope that is named.
        Then: as after the operation itself.
        """

    def warp(self, *, parent: str | None = None) -> Scope:
        """The 32 lanes of a warp share the work.

        Lowers to: loops with a share for each lane.
        Who: all lanes of the warp.
        Then: a barrier before other warps use the result.
        """

    def thread(self, *, parent: str | None = None) -> Scope:
        """Each thread works on its own; with `[condition]`, those for which it holds.

        Lowers to: plain per-thread code.
        Who: any thread; `parent="warp"` with `elect_sync()` picks one.
        Then: nothing inside may wait for threads left out.
        """

    def cta_id(self, shape: list[int], parent: str) -> Any:
        """Index of this CTA, one per extent: `bx, by = Tx.cta_id([gm, gn], parent="kernel")`.

        Lowers to: `blockIdx`, or `%cluster_ctaid`; the extents become the grid and the cluster.
        Who: all threads, at the top of the kernel.
        Then: nothing.
        """

    def warpgroup_id(self, shape: list[int], parent: str) -> Any:
        """Index of this warpgroup in the CTA: `Tx.warpgroup_id([2], parent="cta")` means 256 threads.

        Lowers to: `threadIdx.x / 128`; sets the block size.
        Who: all threads, at the top of the kernel.
        Then: nothing.
        """

    def warp_id(self, shape: list[int], parent: str) -> Any:
        """Index of this warp: `Tx.warp_id([4], parent="warpgroup")`.

        Lowers to: `threadIdx.x / 32 % 4` (same value in all lanes, by `shfl`).
        Who: all threads, at the top of the kernel.
        Then: nothing.
        """

    def thread_id(self, shape: list[int], parent: str) -> Any:
        """Index of this thread: `Tx.thread_id([32], parent="warp")` is the lane.

        Lowers to: `threadIdx.x % 32`.
        Who: all threads, at the top of the kernel.
        Then: nothing.
        """

    def alloc_local(self, shape: Any, dtype: str = "float32", **options: Any) -> TxBuffer:
        """Registers of one thread: `Dreg = Tx.alloc_local((128,), "float32")`.

        Lowers to: registers, if every index is known at compile time (loops unrolled).
        Who: each thread has its own.
        Then: `.view(128, N, layout=...)` for a warpgroup's TMEM read.
        """

    def alloc_buffer(self, shape: Any, dtype: str = "float32", **options: Any) -> TxBuffer:
        """TVM's general allocation; in the course use the pool or `Tx.alloc_local`.

        Lowers to: what its scope says.
        Who: kernel code.
        Then: nothing.
        """

    def decl_buffer(
        self,
        shape: Any,
        dtype: str = "float32",
        *,
        scope: str = "global",
        allocated_addr: Any = None,
        **options: Any,
    ) -> TxBuffer:
        """Declare hardware-managed memory: `scope="tmem"`, at the address that `tcgen05.alloc` wrote.

        Lowers to: nothing; the layout decides how copies become `tcgen05.ld`.
        Who: all threads, after the `cta_sync` that follows the allocation.
        Then: use slices of it in `Tx.gemm_async` and `Tx.copy`.
        """

    def address_of(self, buffer: Any) -> Any:
        """Pointer to a buffer's first element: where `tcgen05.alloc` writes the TMEM address.

        Lowers to: an address.
        Who: any thread.
        Then: nothing.
        """

    def copy(self, dst: Any, src: Any, dispatch: str | None = None) -> None:
        """Synchronous copy, split among the threads of the scope; both sides have the same shape.

        Lowers to: 16-byte `ld` / `st` per thread; with TMEM, `tcgen05.ld` or `.st` and its wait.
        Who: all threads of the enclosing scope; with TMEM, `with Tx.warpgroup():`.
        Then: a barrier before other threads read it; before MMA or TMA read it, `fence.proxy_async` first.
        """

    def copy_async(
        self,
        dst: Any,
        src: Any,
        dispatch: str | None = None,
        *,
        mbar: Any = ...,
        cta_group: int = 1,
        cta_mask: Any = ...,
        **options: Any,
    ) -> None:
        """Asynchronous copy; `dispatch="tma"`: a TMA load (with `mbar=`) or store (without).

        Lowers to: `cp.async.bulk.tensor` with a tensor map that the host makes.
        Who: one elected thread.
        Then: a load: `expect_tx` of its bytes and a wait; a store: `commit_group()` and `wait_group(0)`.
        """

    def cast(self, dst: Any, src: Any = None, dispatch: str | None = None) -> Any:
        """`Tx.cast(dst, src)`: element by element; `Tx.cast(value, dtype)`: one value.

        Lowers to: `cvt`, two elements at a time for fp32 to fp16.
        Who: each thread, on its own registers (not on a warpgroup's view).
        Then: nothing.
        """

    def gemm_async(
        self,
        C: Any,
        A: Any,
        B: Any,
        accum: Any = False,
        dispatch: str | None = None,
        cta_group: int = 1,
        **options: Any,
    ) -> None:
        """C (TMEM, fp32) = A @ B.T, or += with accum=True; A (m, k) and B (n, k) in shared memory.

        Lowers to: `tcgen05.mma.cta_group::N.kind::f16`, one per 16 columns of K.
        Who: one elected thread; with cta_group=2 of CTA 0 only.
        Then: `commit` to a barrier and a wait on it, before the operands change or TMEM is read.
        """

    def __getattr__(self, name: str) -> Any: ...

Tx: _Tx
