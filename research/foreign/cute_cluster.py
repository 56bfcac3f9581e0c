"""A CuTe DSL product for sm_90a with all that Hopper has: C = A B^T in float16, (M, K), (N, K), (M, N)."""

import cutlass
import cutlass.cute as cute
from cute_tma import BK, K_MAJOR, STAGES
from cutlass import pipeline, utils
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.utils import LayoutEnum
from cutlass.utils import hopper_helpers as hopper

TILE = (128, 64)
WARPGROUP, CONSUMERS = 128, 256  # threads


@cute.kernel
def _clusters(
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    store_c: cute.CopyAtom,
    c: cute.Tensor,
    mma: cute.TiledMma,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    layout_c: cute.ComposedLayout,
    cluster: cute.Layout,
):
    tid, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    here = cluster.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
    smem = utils.SmemAllocator()
    stages = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    sa = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    sc = smem.allocate_tensor(cutlass.Float16, layout_c.outer, 1024, swizzle=layout_c.inner)
    producer, consumer = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CONSUMERS),
        tx_count=sum(TILE) * BK * 2,
        barrier_storage=stages,
        cta_layout_vmnk=cluster,
        enable_multicast_signaling=True,
    ).make_participants()
    tile_a = cute.local_tile(a, (TILE[0], BK), (bx, None))
    tile_b = cute.local_tile(b, (TILE[1], BK), (by, None))
    tile_c = cute.local_tile(c, TILE, (bx, by))
    one, along_m = cute.make_layout(1), cute.make_layout(cute.slice_(cluster, (0, None, 0, 0)).shape)
    to_a, from_a = cpasync.tma_partition(
        load_a, 0, one, cute.group_modes(sa, 0, 2), cute.group_modes(tile_a, 0, 2)
    )
    to_b, from_b = cpasync.tma_partition(
        load_b, here[1], along_m, cute.group_modes(sb, 0, 2), cute.group_modes(tile_b, 0, 2)
    )
    from_c, to_c = cpasync.tma_partition(
        store_c, 0, one, cute.group_modes(sc, 0, 2), cute.group_modes(tile_c, 0, 2)
    )
    to_column = cpasync.create_tma_multicast_mask(cluster, here, mcast_mode=1)
    steps = cute.size(tile_a, mode=[2])

    if warp < 4:
        cute.arch.setmaxregister_decrease(40)
        if warp == 0:
            for k in cutlass.range(steps, unroll=1):
                slot = producer.acquire_and_advance()
                at = (None, slot.index)
                cute.copy(load_a, from_a[None, k], to_a[at], tma_bar_ptr=slot.barrier)
                cute.copy(load_b, from_b[None, k], to_b[at], tma_bar_ptr=slot.barrier, mcast_mask=to_column)
            producer.tail()
    else:
        cute.arch.setmaxregister_increase(232)
        thread = mma.get_slice(tid - WARPGROUP)
        ra = mma.make_fragment_A(thread.partition_A(sa))
        rb = mma.make_fragment_B(thread.partition_B(sb))
        acc = cute.make_rmem_tensor(thread.partition_shape_C(TILE), cutlass.Float32)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        for _ in cutlass.range(steps, unroll=1):
            slot = consumer.wait_and_advance()
            warpgroup.fence()
            for part in cutlass.range_constexpr(cute.size(ra, mode=[2])):
                at = (None, None, part, slot.index)
                cute.gemm(mma, acc, ra[at], rb[at], acc)
                mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            slot.release()
        rounded = cute.make_fragment_like(acc, cutlass.Float16)
        rounded.store(acc.load().to(cutlass.Float16))
        atom = hopper.get_smem_store_op(LayoutEnum.ROW_MAJOR, cutlass.Float16, cutlass.Float32)
        keep = cute.make_tiled_copy_C(atom, mma)
        mine = keep.get_slice(tid - WARPGROUP)
        cute.copy(keep, mine.retile(rounded), mine.partition_D(sc))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(barrier_id=1, number_of_threads=CONSUMERS)
        if warp == 4:
            cute.copy(store_c, from_c, to_c)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def clusters(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Two CTAs share B by multicast, each has two warpgroups that multiply; stmatrix, then a TMA store."""
    mma = hopper.make_trivial_tiled_mma(
        a.element_type, b.element_type, K_MAJOR, K_MAJOR, cutlass.Float32, (2, 1, 1), (64, TILE[1])
    )
    whole = (*TILE, BK)
    layout_a = hopper.make_smem_layout_a(LayoutEnum.from_tensor(a), whole, a.element_type, STAGES)
    layout_b = hopper.make_smem_layout_b(LayoutEnum.from_tensor(b), whole, b.element_type, STAGES)
    layout_c = hopper.make_smem_layout_epi(c.element_type, LayoutEnum.from_tensor(c), TILE, 1)
    layout_c = cute.slice_(layout_c, (None, None, 0))
    each = (None, None, 0)
    load_a, map_a = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), a, cute.slice_(layout_a, each), (TILE[0], BK)
    )
    load_b, map_b = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SMulticastOp(), b, cute.slice_(layout_b, each), (TILE[1], BK), 2
    )
    store_c, map_c = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), c, layout_c, TILE)
    shape = (2, 1, 1)
    cluster = cute.make_layout((1, *shape))
    grid = [cute.size(c, mode=[0]) // TILE[0], cute.size(c, mode=[1]) // TILE[1], 1]
    _clusters(
        load_a, map_a, load_b, map_b, store_c, map_c, mma, layout_a, layout_b, layout_c, cluster
    ).launch(grid=grid, block=[WARPGROUP + CONSUMERS, 1, 1], cluster=shape)
