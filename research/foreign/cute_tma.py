"""Products in CuTe DSL with TMA: C = A B^T, A (M, K) and B (N, K) float16, C float32 or float16."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline, utils
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warpgroup
from cutlass.utils import LayoutEnum
from cutlass.utils import blackwell_helpers as blackwell
from cutlass.utils import hopper_helpers as hopper

K_MAJOR = OperandMajorMode.K
BK, STAGES = 64, 3
WARPGROUP = 128


@cute.kernel
def _wgmma(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    tile: cutlass.Constexpr,
):
    tid, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    full = smem.allocate_array(cutlass.Int64, STAGES)
    empty = smem.allocate_array(cutlass.Int64, STAGES)
    sa = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    tile_a = cute.local_tile(a, (tile[0], BK), (bx, None))
    tile_b = cute.local_tile(b, (tile[1], BK), (by, None))
    one = cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(
        load_a, 0, one, cute.group_modes(sa, 0, 2), cute.group_modes(tile_a, 0, 2)
    )
    to_b, from_b = cpasync.tma_partition(
        load_b, 0, one, cute.group_modes(sb, 0, 2), cute.group_modes(tile_b, 0, 2)
    )
    steps = cute.size(tile_a, mode=[2])
    if warp == 0:
        with cute.arch.elect_one():
            for i in cutlass.range_constexpr(STAGES):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, WARPGROUP)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()

    if warp == 4:  # the producer, the warp after the warpgroup of the consumers
        for k in cutlass.range(steps, unroll=1):
            stage, turn = k % STAGES, k // STAGES
            cute.arch.mbarrier_wait(empty + stage, (turn & 1) ^ 1)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full + stage, (tile[0] + tile[1]) * BK * 2)
            cute.copy(load_a, from_a[None, k], to_a[None, stage], tma_bar_ptr=full + stage)
            cute.copy(load_b, from_b[None, k], to_b[None, stage], tma_bar_ptr=full + stage)
    else:
        thread = mma.get_slice(tid)
        ra = mma.make_fragment_A(thread.partition_A(sa))
        rb = mma.make_fragment_B(thread.partition_B(sb))
        target = thread.partition_C(cute.local_tile(c, (tile[0], tile[1]), (bx, by)))
        acc = cute.make_rmem_tensor(target.shape, cutlass.Float32)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        for k in cutlass.range(steps, unroll=1):
            stage, turn = k % STAGES, k // STAGES
            cute.arch.mbarrier_wait(full + stage, turn & 1)
            warpgroup.fence()
            for part in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                cute.gemm(mma, acc, ra[None, None, part, stage], rb[None, None, part, stage], acc)
                mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            cute.arch.mbarrier_arrive(empty + stage)
        result = cute.make_fragment_like(acc, c.element_type)
        result.store(acc.load().to(c.element_type))
        cute.autovec_copy(result, target)


@cute.jit
def wgmma(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """sm_90a: a producer warp loads by TMA, a warpgroup multiplies by wgmma; two barriers per stage."""
    tile = (64, 128)
    mma = hopper.make_trivial_tiled_mma(
        a.element_type, b.element_type, K_MAJOR, K_MAJOR, cutlass.Float32, (1, 1, 1), (64, tile[1])
    )
    whole = (*tile, BK)
    layout_a = hopper.make_smem_layout_a(LayoutEnum.from_tensor(a), whole, a.element_type, STAGES)
    layout_b = hopper.make_smem_layout_b(LayoutEnum.from_tensor(b), whole, b.element_type, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    load_a, map_a = cpasync.make_tiled_tma_atom(op, a, cute.slice_(layout_a, (None, None, 0)), (tile[0], BK))
    load_b, map_b = cpasync.make_tiled_tma_atom(op, b, cute.slice_(layout_b, (None, None, 0)), (tile[1], BK))
    grid = [cute.size(c, mode=[0]) // tile[0], cute.size(c, mode=[1]) // tile[1], 1]
    _wgmma(load_a, map_a, load_b, map_b, c, mma, layout_a, layout_b, tile).launch(
        grid=grid, block=[WARPGROUP + 32, 1, 1]
    )


@cute.kernel
def _tcgen05(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    cluster: cute.Layout,
    tile: cutlass.Constexpr,
):
    """Warp 0 allocates tensor memory and multiplies, warp 1 loads, all four store."""
    pair = cutlass.const_expr(cute.size(cluster, mode=[0]))  # CTAs that share an MMA
    tid, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    here = cluster.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
    smem = utils.SmemAllocator()
    stages = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    product = smem.allocate_array(cutlass.Int64, 2)
    freed = smem.allocate_array(cutlass.Int64, 1)
    where = smem.allocate_array(cutlass.Int32, 1)
    sa = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    readers = cute.size(cluster, mode=[1]) + cute.size(cluster, mode=[2]) - 1
    producer, consumer = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, readers),
        tx_count=(tile[0] + tile[1]) * BK * 2,
        barrier_storage=stages,
        cta_layout_vmnk=cluster,
    ).make_participants()
    computed, taken = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 * pair),
        barrier_storage=product,
        cta_layout_vmnk=cluster,
    ).make_participants()
    tmem = utils.TmemAllocator(
        where,
        barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=128),
        is_two_cta=pair == 2,
        two_cta_tmem_dealloc_mbar_ptr=freed if pair == 2 else None,
    )

    thread = mma.get_slice(here[0])
    tile_a = thread.partition_A(cute.local_tile(a, (tile[0], BK), (bx // pair, None)))
    tile_b = thread.partition_B(cute.local_tile(b, (tile[1], BK), (by, None)))
    tile_c = thread.partition_C(cute.local_tile(c, tile, (bx // pair, by)))
    along_n = cute.make_layout(cute.slice_(cluster, (0, 0, None, 0)).shape)
    along_m = cute.make_layout(cute.slice_(cluster, (0, None, 0, 0)).shape)
    to_a, from_a = cpasync.tma_partition(
        load_a, here[2], along_n, cute.group_modes(sa, 0, 3), cute.group_modes(tile_a, 0, 3)
    )
    to_b, from_b = cpasync.tma_partition(
        load_b, here[1], along_m, cute.group_modes(sb, 0, 3), cute.group_modes(tile_b, 0, 3)
    )
    to_row, to_column = None, None
    if cutlass.const_expr(cute.size(cluster, mode=[2]) > 1):
        to_row = cpasync.create_tma_multicast_mask(cluster, here, mcast_mode=2)
    if cutlass.const_expr(cute.size(cluster, mode=[1]) > 1):
        to_column = cpasync.create_tma_multicast_mask(cluster, here, mcast_mode=1)

    tmem.allocate(tile[1])
    tmem.wait_for_alloc()
    memory = tmem.retrieve_ptr(cutlass.Float32)
    acc = cute.make_tensor(memory, mma.make_fragment_C(mma.partition_shape_C(tile)).layout)
    steps = cute.size(tile_a, mode=[3])

    if warp == 1:
        for k in cutlass.range(steps, unroll=1):
            slot = producer.acquire_and_advance()
            at = (None, slot.index)
            cute.copy(load_a, from_a[None, k], to_a[at], tma_bar_ptr=slot.barrier, mcast_mask=to_row)
            cute.copy(load_b, from_b[None, k], to_b[at], tma_bar_ptr=slot.barrier, mcast_mask=to_column)
        producer.tail()
    if warp == 0 and here[0] == 0:
        ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
        result = computed.acquire_and_advance()
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for _ in cutlass.range(steps, unroll=1):
            slot = consumer.wait_and_advance()
            for part in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                at = (None, None, part, slot.index)
                cute.gemm(mma, acc, ra[at], rb[at], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            slot.release()
        result.commit()

    tmem.relinquish_alloc_permit()
    result = taken.wait_and_advance()
    flat = acc[(None, None), 0, 0]
    atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    fetch = tcgen05.make_tmem_copy(atom, flat)
    mine = fetch.get_slice(tid)
    target = mine.partition_D(tile_c[(None, None), 0, 0])
    held = cute.make_rmem_tensor(target.shape, cutlass.Float32)
    cute.copy(fetch, mine.partition_S(flat), held)
    cute.arch.fence_view_async_tmem_load()
    result.release()
    cute.autovec_copy(held, target)
    cute.arch.sync_threads()
    tmem.free(memory)


def _blackwell(a, b, c, tile: tuple, cluster_mn: tuple, pair: int):
    """Launches _tcgen05: `tile` (m, n) of an MMA by `pair` CTAs, clusters of `cluster_mn` CTAs."""
    group = tcgen05.CtaGroup.TWO if pair == 2 else tcgen05.CtaGroup.ONE
    mma = blackwell.make_trivial_tiled_mma(
        a.element_type, b.element_type, K_MAJOR, K_MAJOR, cutlass.Float32, group, tile
    )
    whole, shape = (*tile, BK), (*cluster_mn, 1)
    cluster = cute.tiled_divide(cute.make_layout(shape), (mma.thr_id.shape,))
    layout_a = blackwell.make_smem_layout_a(mma, whole, a.element_type, STAGES)
    layout_b = blackwell.make_smem_layout_b(mma, whole, b.element_type, STAGES)
    each = (None, None, None, 0)
    load_a, map_a = cute.nvgpu.make_tiled_tma_atom_A(
        blackwell.cluster_shape_to_tma_atom_A(shape, mma.thr_id),
        a,
        cute.slice_(layout_a, each),
        whole,
        mma,
        cluster.shape,
    )
    load_b, map_b = cute.nvgpu.make_tiled_tma_atom_B(
        blackwell.cluster_shape_to_tma_atom_B(shape, mma.thr_id),
        b,
        cute.slice_(layout_b, each),
        whole,
        mma,
        cluster.shape,
    )
    grid = [cute.size(c, mode=[0]) // tile[0] * pair, cute.size(c, mode=[1]) // tile[1], 1]
    _tcgen05(load_a, map_a, load_b, map_b, c, mma, layout_a, layout_b, cluster, tile).launch(
        grid=grid, block=[128, 1, 1], cluster=shape
    )


@cute.jit
def one_cta(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    _blackwell(a, b, c, (128, 64), (1, 1), 1)


@cute.jit
def multicast(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Clusters of 2 x 2 CTAs: each tile is loaded in two halves, each half goes to two CTAs."""
    _blackwell(a, b, c, (128, 64), (2, 2), 1)


@cute.jit
def two_ctas(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Pairs of CTAs share an MMA of 256 x 128."""
    _blackwell(a, b, c, (256, 128), (2, 1), 2)


@cute.jit
def two_ctas_multicast(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Two pairs per cluster, which share their rows of A."""
    _blackwell(a, b, c, (256, 64), (2, 2), 2)
