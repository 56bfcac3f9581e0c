"""Incorrect use names the student's file and line; the kernel's names and roles; several threads at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kernel_text import load_text, make_kernel, source
from test_dialect_rows import BAR, GEMM, OUTER, TILES
from tvm.tirx import Evaluate, PrimFunc

import tirxlab
from tirxlab.devices import sim
from tirxlab.dialect import KernelError, SharedName, info_of, names_of
from tirxlab.toolchain.build import build

WRONG = {
    "no scope": ("Tx.copy(As[:, :], A[:, :])", "Tx.copy needs an execution scope"),
    "misspelt option": (
        "with Tx.thread():\n    Tx.gemm_async(tmem[:, :64], As[:, :], Bs[:, :], acum=False)  # here",
        "Tx.gemm_async has no option 'acum'; did you mean 'accum'?",
    ),
    "option of nothing": (
        'with Tx.thread():\n    Tx.copy_async(As[:], A[:], dispatch="tma", mbr=bar.ptr_to([0]))  # here',
        "did you mean 'mbar'?",
    ),
    "unknown dispatch": (
        'with Tx.thread():\n    Tx.copy_async(As[:], A[:], dispatch="tmaa", mbar=bar.ptr_to([0]))  # here',
        "Tx.copy_async(dispatch='tmaa'): dispatch is one of",
    ),
    "load without barrier": (
        'with Tx.thread():\n    Tx.copy_async(As[:, :], A[:, :], dispatch="tma")  # here',
        "a TMA load needs mbar=",
    ),
    "store with barrier": (
        'with Tx.thread():\n    Tx.copy_async(D[:], As[:], dispatch="tma", mbar=bar.ptr_to([0]))  # here',
        "a TMA store takes no mbar",
    ),
    "barrier for mbar": (
        'with Tx.thread():\n    Tx.copy_async(As[:, :], A[:, :], dispatch="tma", mbar=bar)  # here',
        "mbar is a pointer: mbar=bar.ptr_to([i])",
    ),
    "mbar without tma": (
        "with Tx.thread():\n    Tx.copy_async(As[:, :], A[:, :], mbar=bar.ptr_to([0]))  # here",
        'only TMA signals mbar=: add dispatch="tma"',
    ),
    "copy that converts": (
        'r = Tx.alloc_local((64,), "float32")\nwith Tx.thread():\n    Tx.copy(As[0, :], r[:])  # here',
        "dst is float16, src is float32; Tx.cast converts",
    ),
    "number as condition": (
        "if not Tx.ptx.elect_sync():\n    R[tid] = 1",
        "a phase flips with `phase = phase ^ 1`",
    ),
    "tma by everyone": (
        'with Tx.cta():\n    Tx.copy_async(As[:, :], A[:, :], dispatch="tma", mbar=bar.ptr_to([0]))  # here',
        "is issued by one thread",
    ),
    "shapes differ": (
        "with Tx.cta():\n    Tx.copy(As[:, :], A[:, 0:32])  # here",
        "dst is 128 x 64, src is 128 x 32",
    ),
    "element, not slice": (
        "with Tx.thread():\n    Tx.copy(D[warp_id, lane_id], As[0, 0])  # here",
        "dst must be a buffer or a slice of one",
    ),
    "inside a helper": (
        "@Tx.inline\ndef load():\n    Tx.copy(As[:, :], A[:, 0:32])  # here\nwith Tx.cta():\n    load()",
        "dst is 128 x 64, src is 128 x 32",
    ),
    "tmem by one thread": (
        'r = Tx.alloc_local((64,), "float32")\nwith Tx.thread():\n    Tx.copy(r[:], tmem[0, :64])  # here',
        "with Tx.warpgroup():",
    ),
    "buffer for pointer": (
        "Tx.ptx.tcgen05.alloc(tmem_addr, n_cols=512, cta_group=1)",
        "the first argument is a pointer: Tx.address_of(tmem_addr)",
    ),
    "barrier for pointer": (
        "Tx.ptx.mbarrier.try_wait(bar, 0)",
        "the first argument is a pointer: bar.ptr_to([i])",
    ),
    "columns": (
        "Tx.ptx.tcgen05.alloc(Tx.address_of(tmem_addr), n_cols=500, cta_group=1)",
        "n_cols is one of (32, 64, 128, 256, 512), not 500",
    ),
    "unknown instruction": (
        "Tx.cuda.cta_syncc()",
        "Tx.cuda has no 'cta_syncc'; did you mean Tx.cuda.cta_sync?",
    ),
    "unknown name": ("r = Tx.alloc_lokal((4,))", "Tx has no 'alloc_lokal'; did you mean Tx.alloc_local?"),
    "undefined variable": ("R[tid] = foo", "foo"),
    "group, not instruction": ("Tx.ptx.mbarrier()", "is a group of instructions"),
    "argument missing": ("bar.wait(0)", "missing 1 required positional argument: 'phase'"),
    "arrival count of an instruction": (
        "Tx.ptx.mbarrier.init(bar.ptr_to([0]), 0)",
        "Tx.ptx.mbarrier.init(bar, thread_count): count is a number of arrivals from 1 to 1048575, not 0",
    ),
    "arrival count by name": (
        "Tx.ptx.mbarrier.init(bar.ptr_to([0]), thread_count=1 << 20)",
        "count is a number of arrivals from 1 to 1048575, not 1048576",
    ),
    "mask of one CTA": (
        "Tx.ptx.tcgen05.commit(bar.ptr_to([0]), cta_group=1, cta_mask=2)",
        "cta_mask=2 names CTA 1 alone, and TVM compiles a mask of one bit to a commit at the own CTA's",
    ),
    "arrival count": ("bar.init(0)", "count is a number of arrivals from 1 to 1048575, not 0"),
    "alloc after commit": ('b = pool.alloc((2,), "uint32")', "pool.alloc() after pool.commit()"),
    "commit twice": ("pool.commit()  # here", "pool.commit() is called twice"),
    "wrong parent": ('x = Tx.warp_id([4], parent="thread")', "parent is one of ['warpgroup', 'cta']"),
    "parent not above": (
        'with Tx.warp(parent="thread"):\n    R[tid] = 1',
        "Tx.warp(parent='thread'): parent is one of",
    ),
    "slice of threads": ("with Tx.thread()[0:4]:\n    R[tid] = 1", "Tx.thread()[...] takes one condition"),
    "a slot behind the last": ("bar.wait(1, 0)", "bar has one slot, 0: there is no slot 1"),
    "a slot in front of the first": ("bar.arrive(-1, 128)", "there is no slot -1"),
    "a pointer behind the last": ("p = bar.ptr_to([2])", "there is no slot 2"),
    "a loop over too many slots": (
        "for i in Tx.unroll(3):\n    bar.wait(i, 0)  # here",
        "there is no slot 2 (at the end of i)",
    ),
    "no clusters": (
        'tiles = ClusterPersistentScheduler2D("t", 4, 4, 0)',
        "num_clusters is 0, so that next_tile() never reaches another tile",
    ),
    "depth": ('b = TMABar(pool, 0, "b")', "depth is a positive integer, not 0"),
    "pipeline without name": ("p = PipelineState(2)", "PipelineState"),
    "tmem without address": (
        't = Tx.decl_buffer((128, 512), "float32", scope="tmem", layout=TMEM)',
        "a TMEM buffer needs allocated_addr",
    ),
    "printf of a buffer": ('Tx.cuda.printf("%d", As)', "Tx.cuda.printf: argument 1 is"),
    "a fraction as an extent": (
        'x = Tx.cta_id([192 / 64], parent="kernel")',
        "Tx.cta_id([3.0]): `/` always gives a fraction; write `//`",
    ),
    "two grids": (
        'b2 = Tx.cta_id([1], parent="kernel")',
        "is called twice, and both calls would give the same number: one call gives all dimensions",
    ),
    "a method without a call": ("bar.wait", "a call needs parentheses: bar.wait(...)"),
    "an instruction without a call": (
        "Tx.ptx.fence.proxy_async",
        "a call needs parentheses: Tx.ptx.fence.proxy_async(...)",
    ),
    "a value that goes nowhere": ("p = 0\np ^ 1  # here", "is not used: write p = p ^ 1"),
    "a comparison that assigns nothing": ("p = 0\np == 1  # here", "`=` assigns a value to a variable"),
    "an element that goes nowhere": ("R[tid]", "this statement does nothing"),
    **{
        f"{head} try_wait": (
            f"{head} Tx.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0):  # here\n    R[tid] = 1",
            "try_wait blocks until the phase has completed and gives no value",
        )
        for head in ("while", "while not", "if")
    },
    "the synchronous product": (
        "with Tx.thread():\n    Tx.gemm(tmem[:, :64], As[:, :], Bs[:, :], accum=False)  # here",
        "is Tx.gemm_async(C, A, B,",
    ),
    "the tail of an instruction": (
        'fence.proxy_async("shared::cta")',
        "fence; write Tx.ptx.fence.proxy_async",
    ),
    "a barrier of CUDA": ("__syncthreads()", "__syncthreads; write Tx.cuda.cta_sync()"),
    "an id of CUDA": ("R[threadIdx.x] = 1", "threadIdx; write Tx.thread_id"),
    "an element of a view": ("p = bar.remote_view(0)[0]", "bar.remote_view(cta).ptr_to([stage])"),
    "an element of barriers": ("p = bar[0]", "bar.wait(stage, phase), bar.arrive(stage, ..)"),
    "a number to loop over": ("for k in 4:\n    R[tid] = k", "a loop goes over range(n), or Tx.unroll(n)"),
    "remote wait": ("b0 = bar.remote_view(0)\nb0.wait(0, 0)  # here", "cannot be waited on"),
}
HELPER = "@Tx.inline\ndef tell(bar):\n    bar.wait\n"
TMEM = (
    'tmem = Tx.decl_buffer((128, 512), "float32", scope="tmem", allocated_addr=tmem_addr[0], layout=TMEM)\n'
)


def test_a_slot_that_is_never_named_may_lie_behind_the_last(tmp_path):
    body = "for i in Tx.unroll(4):\n    if i < 2:\n        bar.wait(i, 0)\nif DEPTH > 2:\n    bar.wait(2, 0)"
    decl = 'bar = TMABar(pool, 2, "bar")\n' + TILES
    make_kernel(tmp_path, body, decl=decl, outer=OUTER + "DEPTH = 2\n")


def test_a_pair_may_commit_without_a_mask(tmp_path):
    commit = "with Tx.thread():\n    bar.arrive(0, cta_group=2)"
    kernel = make_kernel(tmp_path, commit, decl='bar = TCGen05Bar(pool, 1, "bar")\n' + TILES, outer=OUTER)
    assert "tcgen05.commit(T.address_of(bar_buf[0]), 2, 0)" in str(kernel)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_names_the_students_line(case, tmp_path):
    body, reason = WRONG[case]
    wrong = next(line for line in body.splitlines() if "# here" in line or "# here" not in body)
    text = source(TMEM + body, decl='bar = TMABar(pool, 1, "bar")\n' + TILES, outer=OUTER)
    with pytest.raises(KernelError) as error:
        load_text(tmp_path, text)
    message = str(error.value)
    line = 1 + next(i for i, given in enumerate(text.splitlines()) if given.strip() == wrong.strip())
    assert reason in message
    assert message.startswith(f"kernel_{error.value.file.split('kernel_')[-1]}:{line}: ")
    assert error.value.line == line and error.value.file.endswith(".py")
    assert len(message) < 1000 and message.count("\n") <= 2


def test_a_helper_outside_the_kernel_calls_what_it_names(tmp_path):
    with pytest.raises(KernelError, match="this statement does nothing .*: a call needs parentheses"):
        make_kernel(tmp_path, "tell(bar)", decl='bar = TMABar(pool, 1, "bar")', outer=OUTER + HELPER)


def test_all_statements_without_effect_are_said_at_once(tmp_path):
    with pytest.raises(KernelError) as error:
        make_kernel(tmp_path, "R[tid]\nwg_id\nprint(1)", decl=TILES, outer=OUTER)
    assert [error.value.line + n for n in (1, 2)] == [other.line for other in error.value.others]


WHOLE = {
    "threads disagree": (
        ['threads = Tx.thread_id([256], parent="cta")'],
        "the numbers of threads per CTA disagree: 128 by Tx.warpgroup_id([1]), 256 by Tx.thread_id([256])",
    ),
    "a cluster of no grid": (
        ['c = Tx.cta_id([2], parent="cluster")'],
        "1, the extent of an id, is not divisible by 2",
    ),
    "no commit": (["other = Tx.PoolAllocator()", "b = other.alloc((4,))"], "pool.commit() is missing"),
    "renamed parameter": (["D = A"], "a buffer parameter was given another's name"),
}


@pytest.mark.parametrize("case", WHOLE)
def test_the_kernel_as_a_whole(case, tmp_path):
    lines, reason = WHOLE[case]
    with pytest.raises(KernelError) as error:
        make_kernel(tmp_path, "R[tid] = tid", decl="\n".join(lines))
    line = lines[0] if case in ("threads disagree", "renamed parameter") else "@Tx.prim_func"
    assert reason in str(error.value) and line in str(error.value)


def test_the_number_of_an_ids_threads_is_checked_at_its_line(tmp_path):
    with pytest.raises(KernelError, match="a warpgroup has 4, not 8") as error:
        make_kernel(tmp_path, "R[tid] = tid", decl='w = Tx.warp_id([8], parent="warpgroup")')
    assert error.value.text.strip().startswith("w = Tx.warp_id([8]")


def test_a_failed_kernel_leaves_nothing_behind(tmp_path):
    with pytest.raises(KernelError):
        make_kernel(tmp_path, "with Tx.cta():\n    Tx.copy(As[:, :], A[:, 0:32])", decl=TILES, outer=OUTER)
    with pytest.raises(KernelError, match="needs an execution scope"):
        make_kernel(tmp_path, "Tx.copy(As[:, :], A[:, :])", decl=TILES, outer=OUTER)


@pytest.mark.parametrize(
    "first, end, fits", [(0, 64, True), (32, 64, True), (64, 128, False), (-8, 8, False)]
)
def test_a_constant_slice_lies_in_its_buffer(first, end, fits, tmp_path):
    body = f"with Tx.cta():\n    Tx.copy(As[:, {first}:{end}], A[:, 0:{end - first}])"
    if fits:
        make_kernel(tmp_path, body, decl=TILES, outer=OUTER)
        return
    with pytest.raises(KernelError, match="of dimension 1 leaves As, which has 64 there"):
        make_kernel(tmp_path, body, decl=TILES, outer=OUTER)


def test_a_pointer_may_have_a_name(tmp_path):
    body = "p = bar.ptr_to([0])\nif warp_id == 0:\n    if lane_id == 0:\n        Tx.ptx.mbarrier.init(p, 1)"
    assert "mbarrier_init" in build(make_kernel(tmp_path, body, decl=BAR)).cuda


def test_scalars_are_cast_too(tmp_path):
    cuda = build(make_kernel(tmp_path, 'R[tid] = Tx.cast(Tx.cast(tid, "float32") * 2.5, "int32")')).cuda
    assert "((int)(" in cuda and "((float)(" in cuda


def test_printf(tmp_path):
    body = """
    if tid < 2:
        Tx.cuda.printf("i %d h %.2f f %.1f \\"quoted\\" 100%%\\n", tid, A[tid, 1], Tx.float32(0.5))
    """
    artifact = build(make_kernel(tmp_path, body))
    A = np.arange(128 * 64, dtype=np.float16).reshape(128, 64)
    run = sim.run(artifact, {b.name: np.zeros(b.shape, b.dtype) for b in artifact.buffers} | {"A": A})
    assert [line.split("] ")[1] for line in run.stdout.splitlines()] == [
        'i 0 h 1.00 f 0.5 "quoted" 100%',
        'i 1 h 65.00 f 0.5 "quoted" 100%',
    ]


def test_a_string_of_several_lines(tmp_path):
    """TVM crashes when it prints such a string as metadata; two texts must not share a cache entry either."""
    one, two = (
        build(make_kernel(tmp_path, f'if tid == 0:\n    Tx.cuda.printf("{text}\\n", tid)')).cuda
        for text in ("first %d", "other %d")
    )
    assert "first" in one and "other" in two


@pytest.mark.parametrize("accum", ["True", "flag", "count", "wg_id != 0"])
def test_what_accum_may_be(accum, tmp_path):
    set_up = "flag = wg_id == 0\ncount = 0\n"
    kernel = make_kernel(
        tmp_path, set_up + GEMM.replace("accum=False", accum), decl=BAR + "\n" + TILES, outer=OUTER
    )
    assert "tcgen05_mma_cta_1" in build(kernel).cuda


def test_a_pool_over_a_buffer_of_ones_own(tmp_path):
    decl = """
        mine = Tx.alloc_buffer((4096,), "uint8", scope="shared.dyn")
        other = Tx.PoolAllocator(mine.data)
        bars = TMABar(other, 2, "bars")
    """
    kernel = make_kernel(tmp_path, "bars.init(1)\nR[tid] = tid", decl=decl)
    assert ("bars", "uint64", 0, (2,)) in names_of(kernel)


def test_buffers_in_a_list_have_no_names(tmp_path):
    decl = 'bars = Tx.meta_var([pool.alloc((1,), "uint64") for _ in range(2)])'
    kernel = make_kernel(tmp_path, "R[tid] = tid", decl=decl)
    assert not any(one[1] == "uint64" for one in names_of(kernel))
    assert build(kernel).cuda


LAYOUTS = [((128, 32), "128 rows of 64 B"), ((100, 64), "100 rows of 128 B")]


@pytest.mark.parametrize("shape,reason", LAYOUTS)
def test_a_layout_that_does_not_tile(shape, reason):
    with pytest.raises(ValueError, match="SWIZZLE_128B_ATOM tiles 8 rows of 128 B.*" + reason):
        tirxlab.tma_shared_layout("float16", tirxlab.SwizzleMode.SWIZZLE_128B_ATOM, shape)


def test_names_and_offsets(tmp_path):
    decl = 'full = TMABar(pool, 2, "load")\nempty = MBarrier(pool, 1)\n' + TILES
    kernel = make_kernel(tmp_path, "R[tid] = tid", decl=decl, outer=OUTER)
    assert names_of(kernel) == [
        ("tmem_addr", "uint32", 0, (1,)),
        ("load", "uint64", 8, (2,)),
        ("empty", "uint64", 24, (1,)),
        ("As", "float16", 1024, (128, 64)),
        ("Bs", "float16", 1024 + 16384, (64, 64)),
    ]
    assert SharedName("load", "uint64", 8, (2,)) in info_of(kernel).names


def test_roles(tmp_path):
    kernel = make_kernel(tmp_path, GEMM, decl=BAR + "\n" + TILES, outer=OUTER)
    assert [(b.name, b.role, b.shape) for b in info_of(kernel).buffers] == [
        ("A", "in", (128, 64)),
        ("B", "in", (64, 64)),
        ("D", "out", (128, 64)),
        ("R", "in", (128,)),
    ]
    both = make_kernel(tmp_path, "R[tid] = R[tid] + 1")
    assert info_of(both).buffers[3].role == "inout"
    through_a_pointer = 'Tx.ptx.st(R.ptr_to([tid]), 1.0, space="global", ptx_type="f32")'
    assert info_of(make_kernel(tmp_path, through_a_pointer)).buffers[3].role == "out"


def test_info_names_the_source(tmp_path):
    kernel = make_kernel(tmp_path, "R[tid] = tid")
    info = info_of(kernel)
    assert info.name == "kernel" and info.file.startswith(str(tmp_path))
    assert "prim_func" in Path(info.file).read_text().splitlines()[info.line - 1]


def test_a_foreign_kernel_has_no_info():
    with pytest.raises(KernelError, match="not a kernel of this lab"):
        info_of(PrimFunc([], Evaluate(0)))


def test_threads_do_not_mix(tmp_path):
    text = source(GEMM, decl=BAR + "\n" + TILES, outer=OUTER)
    alone = load_text(tmp_path, text).kernel.script()
    with ThreadPoolExecutor(4) as pool:
        for script in pool.map(lambda _: load_text(tmp_path, text).kernel.script(), range(8)):
            assert script == alone


def test_exports():
    for name in tirxlab.__all__:
        assert getattr(tirxlab, name) is not None
    with pytest.raises(AttributeError, match="tirxlab"):
        _ = tirxlab.nothing
