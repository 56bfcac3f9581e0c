"""Kernels in CuTe DSL without TMA, for all architectures: elementwise, softmax, a product by mma.sync."""

import cutlass
import cutlass.cute as cute
from cutlass import utils
from cutlass.cute.nvgpu import cpasync, warp

THREADS = 128


@cute.kernel
def _add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, threads: cute.Layout, values: cute.Layout):
    tid, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type, num_bits_per_copy=128),
        threads,
        values,
    )
    tile = (cute.size(threads) * cute.size(values),)
    mine = copy.get_slice(tid)
    parts = [mine.partition_S(cute.local_tile(t, tile, (block,))) for t in (x, y, out)]
    left, right = cute.make_fragment_like(parts[0]), cute.make_fragment_like(parts[1])
    cute.copy(copy, parts[0], left)
    cute.copy(copy, parts[1], right)
    left.store(left.load() + right.load())
    cute.copy(copy, left, parts[2])


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    """Four elements per thread, 16 bytes per access."""
    threads, values = cute.make_layout(THREADS), cute.make_layout(4)
    _add(x, y, out, threads, values).launch(grid=[cute.size(x) // (4 * THREADS), 1, 1], block=[THREADS, 1, 1])


@cute.kernel
def _softmax(x: cute.Tensor, out: cute.Tensor):
    tid, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    partial = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(THREADS // 32), 16)
    columns = cute.size(x, mode=[1])
    top = -cutlass.Float32.inf
    for i in cutlass.range(tid, columns, THREADS):
        top = cute.arch.fmax(top, x[row, i])
    top = cute.arch.warp_reduction_max(top)
    if tid % 32 == 0:
        partial[tid // 32] = top
    cute.arch.sync_threads()
    for i in cutlass.range_constexpr(THREADS // 32):
        top = cute.arch.fmax(top, partial[i])
    cute.arch.sync_threads()
    total = cutlass.Float32(0)
    for i in cutlass.range(tid, columns, THREADS):
        total += cute.math.exp(x[row, i] - top)
    total = cute.arch.warp_reduction_sum(total)
    if tid % 32 == 0:
        partial[tid // 32] = total
    cute.arch.sync_threads()
    total = cutlass.Float32(0)
    for i in cutlass.range_constexpr(THREADS // 32):
        total += partial[i]
    for i in cutlass.range(tid, columns, THREADS):
        out[row, i] = cute.math.exp(x[row, i] - top) / total


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor):
    """A block per row: two reductions over warps and shared memory."""
    _softmax(x, out).launch(grid=[cute.size(x, mode=[0]), 1, 1], block=[THREADS, 1, 1])


BM, BN, BK, STAGES = 64, 64, 32, 3


@cute.kernel
def _matmul(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    load: cute.TiledCopy,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    tid, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    tile_a = cute.local_tile(a, (BM, BK), (bx, None))
    tile_b = cute.local_tile(b, (BN, BK), (by, None))
    tile_c = cute.local_tile(c, (BM, BN), (bx, by))
    smem = utils.SmemAllocator()
    sa = smem.allocate_tensor(a.element_type, layout_a, 128)
    sb = smem.allocate_tensor(b.element_type, layout_b, 128)
    mine = load.get_slice(tid)
    from_a, to_a = mine.partition_S(tile_a), mine.partition_D(sa)
    from_b, to_b = mine.partition_S(tile_b), mine.partition_D(sb)
    steps = cute.size(tile_a, mode=[2])

    thread = mma.get_slice(tid)
    ra = mma.make_fragment_A(thread.partition_A(sa)[None, None, None, 0])
    rb = mma.make_fragment_B(thread.partition_B(sb)[None, None, None, 0])
    target = thread.partition_C(tile_c)
    acc = mma.make_fragment_C(target)
    acc.fill(0.0)
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    fetch_a, fetch_b = cute.make_tiled_copy_A(atom, mma), cute.make_tiled_copy_B(atom, mma)
    shared_a, held_a = fetch_a.get_slice(tid).partition_S(sa), fetch_a.retile(ra)
    shared_b, held_b = fetch_b.get_slice(tid).partition_S(sb), fetch_b.retile(rb)

    for k in cutlass.range_constexpr(STAGES - 1):
        if k < steps:
            cute.copy(load, from_a[None, None, None, k], to_a[None, None, None, k])
            cute.copy(load, from_b[None, None, None, k], to_b[None, None, None, k])
        cute.arch.cp_async_commit_group()
    for k in cutlass.range(steps):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        ahead = k + STAGES - 1
        if ahead < steps:
            cute.copy(load, from_a[None, None, None, ahead], to_a[None, None, None, ahead % STAGES])
            cute.copy(load, from_b[None, None, None, ahead], to_b[None, None, None, ahead % STAGES])
        cute.arch.cp_async_commit_group()
        cute.copy(fetch_a, shared_a[None, None, None, k % STAGES], held_a)
        cute.copy(fetch_b, shared_b[None, None, None, k % STAGES], held_b)
        cute.gemm(mma, acc, ra, rb, acc)
    cute.arch.cp_async_wait_group(0)
    result = cute.make_fragment_like(acc, c.element_type)
    result.store(acc.load().to(c.element_type))
    cute.autovec_copy(result, target)


@cute.jit
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C = A B^T on 2 x 2 warps: cp.async into a ring of swizzled tiles, ldmatrix, mma.sync m16n8k16."""
    op = warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    atom = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), a.element_type, num_bits_per_copy=128
    )
    load = cute.make_tiled_copy_tv(
        atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8), stride=(8, 1))
    )
    swizzled = cute.make_composed_layout(
        cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, BK), stride=(BK, 1))
    )
    layout_a, layout_b = (cute.tile_to_shape(swizzled, (n, BK, STAGES), (0, 1, 2)) for n in (BM, BN))
    grid = [cute.size(c, mode=[0]) // BM, cute.size(c, mode=[1]) // BN, 1]
    _matmul(a, b, c, mma, load, layout_a, layout_b).launch(grid=grid, block=[THREADS, 1, 1])
