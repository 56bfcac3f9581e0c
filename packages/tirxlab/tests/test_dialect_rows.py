"""One use of each of the 60 rows of the course's API tables: compiled to CUDA, then run on the simulator.

A row says what the CUDA must contain and, in R (one int32 per thread), what the threads must compute.
"""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
from kernel_text import make_kernel

from tirxlab.toolchain.build import build

THREADS = np.arange(128)
INIT = """
if warp_id == 0:
    if lane_id == 0:
        Tx.ptx.mbarrier.init(bar.ptr_to([0]), 1)
Tx.ptx.fence.proxy_async("shared::cta")
Tx.ptx.fence.mbarrier_init()
Tx.cuda.cta_sync()
"""
ALLOC = """
if warp_id == 0:
    Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=512, cta_group=1)
Tx.cuda.cta_sync()
tmem = Tx.decl_buffer((128, 512), "float32", scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM)
"""
FREE = """
Tx.ptx.tcgen05.fence.before_thread_sync()
Tx.cuda.cta_sync()
if warp_id == 0:
    Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
    Tx.ptx.tcgen05.dealloc(tmem_addr[0], n_cols=512, cta_group=1)
"""
BAR = 'bar = pool.alloc((1,), "uint64")'
TILES = 'As = pool.alloc((128, 64), "float16", layout=L)\nBs = pool.alloc((64, 64), "float16", layout=LB)'
OUTER = 'LB = tma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (64, 64))\n'
FILL = """
with Tx.cta():
    Tx.copy(As[:, :], A[:, :])
    Tx.copy(Bs[:, :], B[:, :])
Tx.ptx.fence.proxy_async("shared::cta")
Tx.cuda.cta_sync()
"""
ELECT = 'if warp_id == 0:\n    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:\n'
MMA = (
    ELECT
    + """
        Tx.ptx.tcgen05.fence.after_thread_sync()
        Tx.gemm_async(tmem[:, :64], As[:, :], Bs[:, :], accum=False, dispatch="tcgen05", cta_group=1)
        {commit}
{wait}
Tx.ptx.tcgen05.fence.after_thread_sync()
"""
)
DRAIN = """
Dreg = Tx.alloc_local((64,), "float32")
Dreg_16b = Tx.alloc_local((64,), "float16")
Dreg_wg = Dreg.view(128, 64, layout=ROWS)
with Tx.warpgroup():
    Tx.copy(Dreg_wg[:, :], tmem[:, :64])
with Tx.thread():
    Tx.cast(Dreg_16b[:], Dreg[:])
    Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])
"""
COMMIT = "Tx.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1)"
TRY_WAIT = "Tx.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)"
GEMM = INIT + ALLOC + FILL + MMA.format(commit=COMMIT, wait=TRY_WAIT) + DRAIN + FREE
GEMM_BAR = (
    'bar.init(1)\nTx.ptx.fence.proxy_async("shared::cta")\nTx.ptx.fence.mbarrier_init()\n'
    + ALLOC
    + FILL
    + MMA.format(commit="bar.arrive(0, cta_group=1, cta_mask=1)", wait="bar.wait(0, 0)")
    + DRAIN
    + FREE
)
TMA_LOAD = (
    INIT
    + ELECT
    + """
        Tx.copy_async(As[:, :], A[:, :], dispatch="tma", cta_group=1, mbar=bar.ptr_to([0]))
        Tx.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 128 * 64 * 2)
Tx.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
Dreg_16b = Tx.alloc_local((64,), "float16")
with Tx.thread():
    Tx.copy(Dreg_16b[:], As[warp_id * 32 + lane_id, :])
    Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])
"""
)
TMA_STORE = (
    """
with Tx.cta():
    Tx.copy(As[:, :], A[:, :])
Tx.ptx.fence.proxy_async("shared::cta")
Tx.cuda.cta_sync()
"""
    + ELECT
    + """
        Tx.copy_async(D[:, :], As[:, :], dispatch="tma")
        Tx.ptx.cp_async.bulk.commit_group()
        Tx.ptx.cp_async.bulk.wait_group(0)
"""
)
MBAR = """
bar.init(128)
Tx.ptx.fence.mbarrier_init()
Tx.cuda.cta_sync()
bar.arrive(0, cta_id=0, pred=True)
bar.wait(0, 0)
R[tid] = tid
"""
TMABAR = """
bar.init(1)
Tx.ptx.fence.proxy_async("shared::cta")
Tx.ptx.fence.mbarrier_init()
Tx.cuda.cta_sync()
if warp_id == 0:
    with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:
        Tx.copy_async(As[:, :], A[:, :], dispatch="tma", cta_group=1, mbar=bar.ptr_to([1]))
        bar.arrive(1, 128 * 64 * 2)
        Tx.copy_async(Bs[:, :], B[:, :], dispatch="tma", cta_group=1, mbar=bar.ptr_to([0]))
        bar.arrive(0, 64 * 64 * 2)
bar.wait(1, 0)
bar.wait(0, 0)
Dreg_16b = Tx.alloc_local((64,), "float16")
with Tx.thread():
    Tx.copy(Dreg_16b[:], As[warp_id * 32 + lane_id, :])
    Tx.copy(D[warp_id * 32 + lane_id, :], Dreg_16b[:])
"""
CLUSTER_IDS = 'cbx = Tx.cta_id([2], parent="cluster")\n'
REMOTE = """
bar.init(2)
Tx.ptx.fence.mbarrier_init()
Tx.cuda.cluster_sync()
bar0 = bar.remote_view(0)
if warp_id == 0:
    if lane_id == 0:
        bar0.arrive(0)
if cbx == 0:
    bar.wait(0, 0)
Tx.cuda.cluster_sync()
R[tid] = cbx
"""
PIPE = """
ring = PipelineState("ring", 3)
ring.init(is_producer={producer})
for i in Tx.serial(4):
    ring.move_to_next_stage()
R[tid] = ring.stage * 10 + ring.phase
"""
SCHEDULER = """
ts = ClusterPersistentScheduler2D("ts", num_m_tiles=5, num_n_tiles=3, l2_group_size=2, num_clusters=128)
count = 0
ts.init(tid)
while ts.valid():
    R[tid] = ts.m_idx * 10 + ts.n_idx
    ts.next_tile()
"""


def _tile_order() -> np.ndarray:
    """Tile of each of 15 work items, 5 x 3 tiles in groups of 2 rows: down the group, then right; else -1."""
    order = [m * 10 + n for top in (0, 2, 4) for n in range(3) for m in range(top, min(top + 2, 5))]
    return np.array(order + [-1] * (128 - len(order)))


@dataclass(frozen=True)
class Row:
    """body, decl, outer: kernel text. cuda: patterns. R: expected result. D: which product D must hold."""

    body: str
    cuda: tuple[str, ...]
    decl: str = ""
    outer: str = OUTER
    R: np.ndarray | None = None
    D: str = ""
    more: dict = field(default_factory=dict)


def tid(body: str, *cuda: str, R=THREADS, **more) -> Row:
    return Row(body, cuda, R=R, **more)


def gemm(*cuda: str) -> Row:
    return Row(GEMM, cuda, decl=BAR + "\n" + TILES, D="A @ B.T")


SCOPE = "with Tx.{}:\n    R[tid] = tid"
LOAD = "with Tx.cta():\n    Tx.copy(As[:, :], A[:, :])"


def staged(load: str, *cuda: str) -> Row:
    """D = A through shared memory, loaded by `load`."""
    assert LOAD in TMA_STORE
    return Row(TMA_STORE.replace(LOAD, load), cuda, decl=TILES, D="A")


ROWS = {
    "Tx.prim_func(tirx=True)": tid("R[tid] = tid", r"__global__"),
    "Tx.kernel()": tid("R[tid] = tid", r"blockIdx|threadIdx"),
    "with Tx.cta():": staged(LOAD, r"f < 8; ", r"ld_plain.*v4"),
    "with Tx.warpgroup():": staged(LOAD.replace("cta", "warpgroup"), r"f < 8; ", r"ld_plain.*v4"),
    "with Tx.warp():": staged(
        "if warp_id == 0:\n    with Tx.warp():\n        Tx.copy(As[:, :], A[:, :])",
        r"f < 32; ",
        r"ld_plain.*v4",
    ),
    "with Tx.thread():": tid(SCOPE.format("thread()"), r"R_ptr\["),
    "with Tx.thread(parent=)[cond]:": tid(
        'R[tid] = 0\nwith Tx.thread(parent="warp")[lane_id == 3]:\n    R[tid] = 7',
        r"if \(.*== 3\)",
        R=np.where(THREADS % 32 == 3, 7, 0),
    ),
    "Tx.cta_id(shape, parent=...)": tid(
        "R[tid] = bx * 10 + cbx",
        r"blockIdx",
        r"cluster_ctaid",
        R=np.repeat([0, 11], 128),
        more={"ctas": 2, "ids": CLUSTER_IDS},
    ),
    "Tx.warpgroup_id(shape, parent=...)": tid(
        "R[tid] = wg_id", r"int wg_id = \(warp_id_in_cta >> 2\)", R=0 * THREADS
    ),
    "Tx.warp_id(shape, parent=...)": tid("R[tid] = warp_id", r"warp_id_in_cta & 3", R=THREADS // 32),
    "Tx.thread_id(shape, parent=...)": tid("R[tid] = lane_id", r"threadIdx.x\) & 31", R=THREADS % 32),
    "Tx.ptx.elect_sync()": tid(
        "R[tid] = 0\nTx.cuda.cta_sync()\n"
        'with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:\n    R[warp_id] = 1',
        r"if \(tvm_builtin_elect_one_sync_op\(\)\)",
        R=np.where(THREADS < 4, 1, 0),
    ),
    "Tx.PoolAllocator()": Row(FILL, (r"extern __shared__",), decl=TILES),
    "pool.alloc(shape, dtype, layout=...)": Row(TMA_STORE, (r"half\*\)pool_buf_ptr",), decl=TILES, D="A"),
    "pool.move_base_to(offset)": Row(
        TMA_STORE, (r"half\*\)pool_buf_ptr\)\[4096\]",), decl="pool.move_base_to(8192)\n" + TILES, D="A"
    ),
    "pool.commit()": Row(TMA_STORE, (), decl=TILES, D="A"),
    "Tx.alloc_local(shape, dtype)": tid(
        'r = Tx.alloc_local((4,), "int32")\nfor i in Tx.unroll(4):\n    r[i] = tid + i\nR[tid] = r[3]',
        r"int r_ptr\[4\]",
        R=THREADS + 3,
    ),
    "buf.view(shape, layout=...)": Row(
        GEMM.replace("Dreg.view(128, 64, layout=ROWS)", "Dreg.view((128, 64), layout=ROWS)"),
        (r"tcgen05_ld_32x32b",),
        decl=BAR + "\n" + TILES,
        D="A @ B.T",
    ),
    'Tx.decl_buffer(shape, dtype, scope="tmem")': gemm(r"tcgen05_ld_32x32b"),
    "Tx.address_of(buf)": gemm(r"tcgen05_alloc_cta_group_1\(\(&\(\(\(uint\*\)pool_buf_ptr\)\[0\]\)\), 512\)"),
    "buf.ptr_to([idx])": gemm(r"mbarrier_init\(\(&\(\(\(uint64_t\*\)pool_buf_ptr\)\[1\]\)\), 1\)"),
    "tma_shared_layout(dtype, SwizzleMode, shape)": Row(
        TMA_LOAD, (r"cp_async_bulk_tensor",), decl=BAR + "\n" + TILES, D="A"
    ),
    "Tx.ptx.tcgen05.alloc": gemm(r"tcgen05\.alloc\.cta_group::1\.sync\.aligned"),
    "Tx.ptx.tcgen05.relinquish_alloc_permit": gemm(r"tcgen05\.relinquish_alloc_permit\.cta_group::1"),
    "Tx.ptx.tcgen05.dealloc": gemm(r"tcgen05\.dealloc\.cta_group::1"),
    "Tx.copy(dst, src)": Row(
        FILL + "with Tx.cta():\n    Tx.copy(D[:, :], As[:, :])", (r"st_plain_shared",), decl=TILES, D="A"
    ),
    'Tx.copy_async(dst, src, dispatch="tma", ...)': Row(
        TMA_LOAD, (r"g2s_cluster_tile_2d",), decl=BAR + "\n" + TILES, D="A"
    ),
    "Tx.cast(dst, src)": gemm(r"cast_float32x2_float16x2"),
    "Tx.gemm_async": gemm(r"tcgen05\.mma\.cta_group::1\.kind::f16"),
    "for i in Tx.unroll(N):": staged(
        "for i in Tx.unroll(2):\n    j = Tx.meta_var(i * 64)\n    with Tx.cta():\n"
        "        Tx.copy(As[j : j + 64, :], A[j : j + 64, :])",
        r"f < 4; ",
        r"f_1 < 4; ",
    ),
    "for i in Tx.serial(N):": tid(
        "total = 0\nfor i in Tx.serial(5):\n    total = total + i\nR[tid] = total",
        r"for \(int i = 0; i < 5",
        R=0 * THREADS + 10,
    ),
    "Tx.meta_var(expr)": tid("x = Tx.meta_var(tid * 2)\nR[tid] = x", r"R_ptr\[", R=THREADS * 2),
    "@Tx.inline": tid(
        "@Tx.inline\ndef put(value):\n    R[tid] = value\nput(tid + 5)", r"R_ptr\[", R=THREADS + 5
    ),
    "Tx.ptx.mbarrier.init(ptr, count)": gemm(r"mbarrier\.init\.shared\.b64"),
    "Tx.ptx.mbarrier.try_wait(ptr, phase)": gemm(r"mbarrier\.try_wait\.parity"),
    "Tx.ptx.mbarrier.arrive.expect_tx(ptr, bytes)": Row(
        TMA_LOAD, (r"mbarrier\.arrive\.expect_tx", r"16384\)"), decl=BAR + "\n" + TILES, D="A"
    ),
    "Tx.ptx.tcgen05.commit(ptr, cta_group, cta_mask)": gemm(r"tcgen05\.commit\.cta_group::1"),
    "Tx.ptx.tcgen05.fence.after_thread_sync()": gemm(r"tcgen05\.fence::after_thread_sync"),
    'Tx.ptx.fence.proxy_async("shared::cta")': gemm(r"fence\.proxy\.async\.shared::cta"),
    "Tx.ptx.fence.mbarrier_init()": gemm(r"fence\.mbarrier_init\.release\.cluster"),
    "Tx.ptx.cp_async.bulk.commit_group()": Row(
        TMA_STORE, (r"cp\.async\.bulk\.commit_group",), decl=TILES, D="A"
    ),
    "Tx.ptx.cp_async.bulk.wait_group(n)": Row(
        TMA_STORE, (r"cp\.async\.bulk\.wait_group\.read 0",), decl=TILES, D="A"
    ),
    "Tx.cuda.cta_sync()": tid("Tx.cuda.cta_sync()\nR[tid] = tid", r"__syncthreads"),
    "Tx.cuda.warpgroup_sync(barrier_id)": tid(
        "Tx.cuda.warpgroup_sync(3)\nR[tid] = tid", r"warpgroup_sync\(3\)"
    ),
    "Tx.cuda.cluster_sync()": tid(
        "Tx.cuda.cluster_sync()\nR[tid] = tid",
        r"cluster_sync\(\)",
        R=np.arange(256),
        more={"ctas": 2, "ids": CLUSTER_IDS},
    ),
    "TMABar(pool, depth, name)": Row(
        TMABAR, (r"mbarrier_init",), decl='bar = TMABar(pool, 2, "load")\n' + TILES, D="A"
    ),
    "TCGen05Bar(pool, depth, name)": Row(
        GEMM_BAR, (r"tcgen05_commit",), decl='bar = TCGen05Bar(pool, 1, "mma")\n' + TILES, D="A @ B.T"
    ),
    "MBarrier(pool, depth, name)": tid(
        MBAR, r"mbarrier_init\(.*, 128\)", decl='bar = MBarrier(pool, 1, "all")'
    ),
    "bar.init(count)": tid(MBAR, r"if \(.*thread_rank\(\) == 0\)", decl='bar = MBarrier(pool, 1, "all")'),
    "bar.wait(stage, phase)": tid(MBAR, r"mbarrier_try_wait\(.*, 0\)", decl='bar = MBarrier(pool, 1, "all")'),
    "TMABar.arrive(stage, bytes)": Row(
        TMABAR,
        (r"arrive_expect_tx\w*\(.*\[2\].*, 16384\)",),
        decl='bar = TMABar(pool, 2, "load")\n' + TILES,
        D="A",
    ),
    "TCGen05Bar.arrive(stage, cta_group=, cta_mask=)": Row(
        GEMM_BAR,
        (r"tcgen05_commit_cta_group_1\(",),
        decl='bar = TCGen05Bar(pool, 1, "mma")\n' + TILES,
        D="A @ B.T",
    ),
    "MBarrier.arrive(stage, cta_id=, pred=)": tid(
        MBAR, r"arrive_shared_cluster_remote_pred", decl='bar = MBarrier(pool, 1, "all")'
    ),
    "bar.ptr_to([stage])": Row(
        TMABAR, (r"uint64_t\*\)pool_buf_ptr\)\[2\]",), decl='bar = TMABar(pool, 2, "load")\n' + TILES, D="A"
    ),
    "TMABar.remote_view(cta_id)": tid(
        REMOTE,
        r"mapa_u64",
        decl='bar = TMABar(pool, 1, "both")',
        R=np.repeat([0, 1], 128),
        more={"ctas": 2, "ids": CLUSTER_IDS},
    ),
    "PipelineState(name, depth)": tid(PIPE.format(producer=False), r"ring_stage_ptr", R=0 * THREADS + 11),
    "PipelineState.init(is_producer=)": tid(
        PIPE.format(producer=True), r"ring_phase_ptr\[0\] = 1", R=0 * THREADS + 10
    ),
    "PipelineState.stage / .phase": tid(
        PIPE.format(producer=False), r"ring_phase_ptr\[0\] = 0", R=0 * THREADS + 11
    ),
    "PipelineState.move_to_next_stage()": tid(PIPE.format(producer=False), r"\^ 1", R=0 * THREADS + 11),
    "ClusterPersistentScheduler2D(...)": tid(SCHEDULER, r"ts_m_idx_ptr", R=_tile_order()),
}


def _kernel(folder, row: Row):
    return make_kernel(folder, row.body, decl=row.decl, outer=row.outer, **row.more)


def test_every_row_of_the_tables_is_here():
    assert len(ROWS) == 60


@pytest.mark.parametrize("name", ROWS)
def test_row_compiles(name, tmp_path):
    row = ROWS[name]
    artifact = build(_kernel(tmp_path, row))
    assert artifact.spills == 0
    for pattern in row.cuda:
        assert re.search(pattern, artifact.cuda), f"{name}: no /{pattern}/ in the CUDA"


@pytest.mark.parametrize("order", ["program", "adverse"])
@pytest.mark.parametrize("name", ROWS)
def test_row_runs(name, order, tmp_path):
    from tirxlab.devices import sim

    row = ROWS[name]
    artifact = build(_kernel(tmp_path, row))
    rng = np.random.default_rng(1)
    A, B = (rng.integers(-4, 5, (m, 64)).astype(np.float16) for m in (128, 64))
    D, R = np.full((128, 64), -1, np.float16), np.full(_threads(artifact), -1, np.int32)
    run = sim.run(artifact, {"A": A, "B": B, "D": D, "R": R}, order=order)
    assert run.verdict == "clean", run.findings
    if row.R is not None:
        np.testing.assert_array_equal(R, row.R)
    if row.D:
        np.testing.assert_array_equal(
            D, A if row.D == "A" else (A.astype(np.float32) @ B.T).astype(np.float16)
        )


def _threads(artifact) -> int:
    return next(b.shape[0] for b in artifact.buffers if b.name == "R")
