"""Slips in a whole kernel: each is refused in one line that names the student's line and the remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import utils
from tirxlab.steps import load_kernels, sections
from tirxlab.toolchain.build import build

SOLUTIONS = Path(__file__).resolve().parents[3] / "instructor" / "solutions" / "gemm_kernels.py"
CAST = "Tx.cast(Dreg_16b[i * EPI_N : i * EPI_N + EPI_N], Dreg[:])"
SLIPS = {  # name -> (step, size, old, new, words of the message, text of the line it names)
    "state without init": (
        7, (256, 256, 192), "ld_phase.init(is_producer=True)", "pass",
        "ld_phase is never initialised", 'ld_phase = PipelineState("ld", 1)',
    ),
    "ring state without init": (
        8, (256, 256, 192), "mma_phase.init(is_producer=False)", "pass",
        "mma_phase is never initialised", 'mma_phase = PipelineState("mma", PIPE_DEPTH)',
    ),
    "scheduler without init": (
        6, (256, 256, 192), "tile_scheduler.init(bx)", "pass",
        "tile_scheduler is never initialised", "tile_scheduler = ClusterPersistentScheduler2D(",
    ),
    "a variable of two values as a slice bound": (
        7, (256, 256, 192), CAST,
        "no_st = 0; no_st = i * EPI_N; Tx.cast(Dreg_16b[no_st : no_st + EPI_N], Dreg[:])",
        "no_st = Tx.meta_var(...)", "no_st = 0; no_st",
    ),
    "a name that is not ASCII": (
        1, (128, 128, 64),
        "pool = Tx.PoolAllocator()", "größe = Tx.alloc_local((4,), F32); pool = Tx.PoolAllocator()",
        "only ASCII letters in names: rename größe", "größe = Tx.alloc_local(",
    ),
    "a barrier's buffer asked to wait": (
        1, (128, 128, 64), "Tx.ptx.mbarrier.try_wait(mma_bar.ptr_to([0]), 0)", "mma_bar.wait(0, 0)",
        "write Tx.ptx.mbarrier.try_wait(bar.ptr_to([i]), phase)", "mma_bar.wait(0, 0)",
    ),
    "a number for a barrier": (
        1, (128, 128, 64), "Tx.ptx.mbarrier.init(mma_bar.ptr_to([0]), 1)",
        "Tx.ptx.mbarrier.init(1, mma_bar.ptr_to([0]))",
        "the first argument is a pointer: bar.ptr_to([i])", "Tx.ptx.mbarrier.init(1",
    ),
    "a name before its definition": (
        3, (256, 256, 64), "m_st = Tx.meta_var(bx * BLK_M)", "m_st = Tx.meta_var(mma_bar * BLK_M)",
        "Undefined variable: mma_bar; line 248 defines it, below this one", "m_st = Tx.meta_var(",
    ),
    "a pool for a depth": (
        7, (256, 256, 192), 'MBarrier(pool, 1, "ld2mma")', 'MBarrier(1, pool, "ld2mma")',
        "depth is a positive integer, not PoolAllocator", 'MBarrier(1, pool, "ld2mma")',
    ),
    "each thread's place in a copy by all": (
        1, (128, 128, 64), "Tx.copy(Asmem[:, :], A[:, :])",
        "Tx.copy(Asmem[warp_id * 32 + lane_id, :], A[warp_id * 32 + lane_id, :])",
        "this slice of Asmem begins at a place of each thread's own (lane_id and warp_id)",
        "Tx.copy(Asmem[warp_id",
    ),
    "each lane's place in a copy by a warp": (
        1, (128, 128, 64), "with Tx.cta():\n                Tx.copy(Asmem[:, :], A[:, :])",
        "with Tx.warp():\n                Tx.copy(Asmem[lane_id, :], A[lane_id, :])",
        "a place of each thread's own (lane_id): name the whole tile", "Tx.copy(Asmem[lane_id",
    ),
    "rows and columns exchanged in a load": (
        7, (256, 256, 192), "A[m_st : m_st + BLK_M, k_st : k_st + BLK_K]",
        "A[k_st : k_st + BLK_K, m_st : m_st + BLK_M]",
        "dst is 128 x 64, src is 64 x 128: one of the two has its rows and columns exchanged",
        "Tx.copy_async(Asmem",
    ),
    "another buffer's layout": (3, (256, 256, 64), "F16, layout=B_LAYOUT", "F16, layout=D_LAYOUT",
        "the shape (128, 64) has 8192 elements, its layout 16384", "Bsmem = pool.alloc("),
    "a layout of as many elements": (6, (256, 384, 64), "F16, layout=B_LAYOUT", "F16, layout=D_LAYOUT",
        "TMA does not find this box", "Tx.copy_async(Bsmem"),
    "an operand without its stage": (
        9, (512, 512, 192), "           Bsmem[stage, :, :],\n", "           Bsmem[:, stage, :],\n",
        "an operand of Tx.gemm_async is [4, 64]", "Tx.gemm_async(",
    ),
    "an accumulator of more rows": (
        10, (1024, 512, 192), "tmem[:, warp_id * MMA_N : warp_id * MMA_N + MMA_N]",
        "tmem[0:64, warp_id * MMA_N : warp_id * MMA_N + MMA_N]",
        "the accumulator has 64 rows and A's tile 128", "Tx.gemm_async(",
    ),
    "a cast by a warp": (
        5, (256, 256, 192),
        "with Tx.thread():\n                Tx.cast", "with Tx.warp():\n                Tx.cast",
        "put it in `with Tx.thread():`", "Tx.cast(Dreg",
    ),
    "tensor memory without its scope": (
        5, (256, 256, 192), 'scope="tmem", ', "", 'add scope="tmem"', "tmem = Tx.decl_buffer(",
    ),
    "a cluster without a grid": (
        7, (256, 256, 192),
        'Tx.cta_id([SM_COUNT], parent="kernel")', 'Tx.cta_id([SM_COUNT], parent="cluster")',
        "the grid is missing", "bx = Tx.cta_id(",
    ),
    "one id with two extents": (
        7, (256, 256, 192), 'Tx.warpgroup_id([WG_NUMBER], parent="cta")',
        'Tx.thread_id([256], parent="cta") // 128; lane = Tx.thread_id([32], parent="cta")',
        "an earlier Tx.thread_id says that a cta has 256", "wg_id = Tx.thread_id(",
    ),
    "a fraction compared": (
        5, (256, 256, 192), "if k + PIPE_DEPTH < K_TILES:", "if k + PIPE_DEPTH < K / BLK_K:",
        "a fraction where a whole number is meant", "if k + PIPE_DEPTH < K / BLK_K:",
    ),
    "a fraction for an extent": (
        5, (256, 256, 192), "Tx.alloc_local((BLK_N,), F32)", "Tx.alloc_local((BLK_N / 1,), F32)",
        "this is 128.0, a fraction", "Dreg = Tx.alloc_local(",
    ),
    "a fraction for a length": (
        3, (256, 256, 64), "n_st : n_st + BLK_N], Dreg_16b", "n_st : n_st + BLK_N / 1], Dreg_16b",
        "a slice of dst has a fraction for its length", "Tx.copy(D[",
    ),
    "an instruction of another chip": (
        1, (128, 128, 64),
        "Tx.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)", "Tx.ptx.wgmma.wait_group(0)",
        "wgmma.wait_group is an instruction of another chip: there is none for sm_100a",
        "Tx.ptx.wgmma.wait_group",
    ),
    "one lane of a scope for many": (
        1, (128, 128, 64),
        'with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:', "with Tx.warp()[Tx.ptx.elect_sync()]:",
        'write `with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:`', "with Tx.warp()[",
    ),
    "two names for one extent": (
        3, (256, 256, 64), "[M // BLK_M, N // BLK_N]", "[M // BLK_M * (N // BLK_N)]",
        "Tx.cta_id([m, n], parent=..) gives as many numbers", "bx, by = Tx.cta_id(",
    ),
    "a slice that leaves its buffer in the last round of a loop": (
        7, (256, 256, 192),
        "Dreg_16b = Tx.alloc_local((BLK_N,), F16)", "Dreg_16b = Tx.alloc_local((EPI_N,), F16)",
        "dimension 0 of Dreg_16b has 64, and this slice of it goes up to 128 (at the end of i)", CAST,
    ),
    "the array's columns in the CTA's own tile": (
        4, (256, 256, 192), "Tx.copy(Dsmem[warp_id * 32 + lane_id, :]",
        "Tx.copy(Dsmem[warp_id * 32 + lane_id, n_st : n_st + BLK_N]",
        "dimension 1 of Dsmem has 128, and this slice of it goes up to 256 (at the end of by)",
        "Tx.copy(Dsmem[",
    ),
    "the array's row in the CTA's own tile": (
        4, (256, 256, 192), "Tx.copy(Dsmem[warp_id * 32 + lane_id, :]",
        "Tx.copy(Dsmem[m_st + warp_id * 32 + lane_id, :]",
        "goes up to 256 (at the end of bx and lane_id and warp_id)", "Tx.copy(Dsmem[",
    ),
    "a slice assigned": (
        1, (128, 128, 64), "Tx.copy(Asmem[:, :], A[:, :])", "Asmem[:, :] = A[:, :]",
        "Tx.copy(dst, src) copies it", "Asmem[:, :] = A[:, :]",
    ),
    "a scope without parentheses": (
        1, (128, 128, 64), "with Tx.cta():\n", "with Tx.cta:\n", "write it with parentheses", "with Tx.cta:",
    ),
    "an instruction of another group": (
        1, (128, 128, 64), "Tx.ptx.tcgen05.commit(", "Tx.ptx.commit(",
        "did you mean Tx.ptx.tcgen05.commit?", "Tx.ptx.commit(",
    ),
    "the tail of a name": (
        1, (128, 128, 64), "Tx.ptx.mbarrier.try_wait(", "Tx.ptx.mbarrier.wait(",
        "did you mean Tx.ptx.mbarrier.try_wait?", "Tx.ptx.mbarrier.wait(",
    ),
    "a warp that issues TMA": (
        4, (256, 256, 192), "Tx.copy_async(Asmem", "with Tx.warp():\n                    Tx.copy_async(Asmem",
        'Tx.copy_async(dispatch="tma") is issued by one thread', "Tx.copy_async(Asmem",
    ),
    "a cast by the warpgroup": (
        4, (256, 256, 192), "Tx.cast(Dreg", "with Tx.warpgroup():\n                    Tx.cast(Dreg",
        "put it in `with Tx.thread():`", "Tx.cast(Dreg",
    ),
    "one thread's registers for TMEM": (
        1, (128, 128, 64), "Tx.copy(Dreg_wg[:, :], tmem", "Tx.copy(Dreg[:], tmem",
        "the registers of all 128 threads together are a view", "Tx.copy(Dreg[:], tmem",
    ),
    "a transposed operand": (
        1, (128, 128, 64), "Bsmem[:, :],\n", "Bsmem.T,\n", "takes B as stored",
        "Tx.gemm_async(",
    ),
    "an id asked for again": (
        1, (128, 128, 64), "Tx.copy(Asmem", "row = Tx.thread_id(); Tx.copy(Asmem",
        "the skeleton calls it once", "row = Tx.thread_id()",
    ),
    "a loop of Tx": (
        2, (128, 128, 192), "in range(", "in Tx.range(", "write range(n), or Tx.unroll(n)", "in Tx.range(",
    ),
    "a wait for a state": (
        7, (256, 256, 192), "ld2mma.wait(0, ld_phase.phase)", "ld2mma.wait(ld_phase)",
        "bar.wait(stage, phase): missing", "ld2mma.wait(ld_phase)",
    ),
    "an arrival nowhere": (
        7, (256, 256, 192), "ld2mma.arrive(0)", "ld2mma.arrive()", "bar.arrive(stage, ..): missing",
        "ld2mma.arrive()",
    ),
    "a synchronous copy told to be TMA": (
        4, (256, 256, 192), "Tx.copy_async(Asmem", "Tx.copy(Asmem", "a copy by TMA is Tx.copy_async",
        "Tx.copy(Asmem",
    ),
    "a cast of other length": (
        7, (256, 256, 192), CAST, "Tx.cast(Dreg_16b[0 : EPI_N * 2], Dreg[:])",
        "Tx.cast: dst is 128, src is 64; both must cover the same shape", "Tx.cast(Dreg_16b",
    ),
    "a mask as a list": (
        9, (512, 512, 192), "cta_mask=3", "cta_mask=[0, 1]", "cta_mask is one number", "cta_mask=[0, 1]",
    ),
    "one CTA's commit in a pair": (
        9, (512, 512, 192), "mma2tma.arrive(stage, cta_group=CTA_GROUP", "mma2tma.arrive(stage, cta_group=1",
        "says cta_group=1, Tx.ptx.tcgen05.alloc before it cta_group=2", "mma2tma.arrive(stage, cta_group=1",
    ),
    "None as a value": (
        2, (128, 128, 192), "phase_mma = 0", "phase_mma = None",
        "this value has no type on the GPU", "phase_mma = None",
    ),
    "a list as a phase": (
        2, (128, 128, 192), "phase_mma = 0", "phase_mma = [0]",
        "not a number or an expression of numbers", "Tx.ptx.mbarrier.try_wait",
    ),
    "text in a condition": (
        2, (128, 128, 192), "if lane_id == 0:", 'if lane_id == "0":',
        "not a number", 'if lane_id == "0":',
    ),
    "import in a kernel": (
        1, (128, 128, 64), "warp_id = ", "import os\n            warp_id = ",
        "put the import at the top of the file", "import os",
    ),
    "a barrier's number without a list": (
        1, (128, 128, 64), "mma_bar.ptr_to([0])", "mma_bar.ptr_to(0)", "ptr_to([0])", "mma_bar.ptr_to(0)",
    ),
    "a function without its decorator": (
        4, (256, 256, 192), "            @Tx.inline\n            def mma", "            def mma",
        "write @Tx.inline above it", "def mma(accum):",
    ),
    "a misspelt name": (
        1, (128, 128, 64), "mma_bar.ptr_to([0])", "mma_bra.ptr_to([0])",
        "did you mean mma_bar?", "mma_bra.ptr_to([0])",
    ),
    "one name twice": (
        5, (256, 256, 192), "pool.commit()", "pool.commit(); mma = 0",
        "`mma` is already defined with another meaning", "def mma(stage, accum):",
    ),
    "an accumulator of another width": (
        4, (256, 256, 192), "tmem[:, :BLK_N], Asmem", "tmem[:, :64], Asmem",
        "slice tmem[:, :128]", "Tx.gemm_async(",
    ),
}  # fmt: skip


def mutant(tmp_path, step, old, new):
    parts = sections(SOLUTIONS.read_text())
    assert old in parts[step]
    parts[step] = parts[step].replace(old, new, 1)
    path = tmp_path / "gemm_kernels.py"
    path.write_text("".join(parts.values()))
    return getattr(load_kernels(path), f"hgemm_v{step}")


@pytest.mark.parametrize("name", SLIPS)
def test_slip_names_line_and_remedy(tmp_path, name):
    step, size, old, new, words, line = SLIPS[name]
    with pytest.raises(ValueError) as refused:
        build(mutant(tmp_path, step, old, new)(*size), use_cache=False)
    said = str(refused.value)
    assert words in said and line in said.splitlines()[1]
    assert said.startswith("gemm_kernels.py:") and len(said.splitlines()) <= 4


def test_all_refused_statements_are_said_at_once_and_none_that_only_follow(tmp_path):
    """Three slips in three statements; reading what the first would have defined is not a slip."""
    mutant(tmp_path, 1, "mma_bar.ptr_to([0]), 0)", "mma_bar.ptr_to(0), 0)")
    path = tmp_path / "gemm_kernels.py"
    text = path.read_text().replace("Tx.alloc_local((BLK_N,), F32)", "Tx.alloc_locals((BLK_N,), F32)", 1)
    path.write_text(text.replace("accum=False,\n", "accum=0,\n", 1))
    with pytest.raises(ValueError) as refused:
        build(load_kernels(path).hgemm_v1(128, 128, 64), use_cache=False)
    said = [line for line in str(refused.value).splitlines() if line.startswith("gemm_kernels.py:")]
    assert [" ".join(line.split()[1:4]) for line in said] == [
        "accum must be", "a list is", "Tx has no",
    ]  # fmt: skip


def test_one_reason_at_many_lines_is_said_once(tmp_path):
    make = mutant(tmp_path, 1, "with Tx.cta():\n", "if True:\n")
    with pytest.raises(ValueError, match=r"needs an execution scope.*\(also line \d+\)") as refused:
        build(make(128, 128, 64), use_cache=False)
    assert len(str(refused.value).splitlines()) == 2


def test_a_comment_further_left_than_the_kernel_is_named(tmp_path):
    make = mutant(
        tmp_path, 1, "            Dreg = Tx.alloc_local", "  # mine\n            Dreg = Tx.alloc_local"
    )
    with pytest.raises(ValueError, match="begins further left than its def"):
        build(make(128, 128, 64), use_cache=False)


WHEEL = {  # what the preview wheel builds: step, size, old, new
    "a variable as the start of a slice": (
        7, (256, 256, 192), CAST, "no_st = i * EPI_N; Tx.cast(Dreg_16b[no_st : no_st + EPI_N], Dreg[:])",
    ),
    "a variable as both bounds": (
        3, (256, 256, 64), "m_st = Tx.meta_var(bx * BLK_M)", "m_st = bx * BLK_M; m_end = m_st + BLK_M",
    ),
    "a coordinate computed once": (
        4, (256, 256, 192), "n_st = Tx.meta_var(by * BLK_N)", "n_st = by * BLK_N",
    ),
    "a tile's coordinate computed once": (
        6, (256, 256, 192), "n_st = Tx.meta_var(tile_scheduler.n_idx * BLK_N)",
        "n_st = tile_scheduler.n_idx * BLK_N",
    ),
    "one stage, step 5": (5, (256, 256, 192), "PIPE_DEPTH = 2", "PIPE_DEPTH = 1"),
    "one stage, step 8": (8, (256, 256, 192), "PIPE_DEPTH = 4", "PIPE_DEPTH = 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHEEL)
def test_what_the_preview_wheel_builds_is_built(tmp_path, name):
    step, size, old, new = WHEEL[name]
    make = mutant(tmp_path, step, old, new)
    if "m_end" in new:
        path = tmp_path / "gemm_kernels.py"
        path.write_text(path.read_text().replace("m_st : m_st + BLK_M", "m_st : m_end"))
        make = load_kernels(path).hgemm_v3
    assert build(make(*size), use_cache=False).ptx


INSIDE = "\n                "
COPIES = f"with Tx.cta():{INSIDE}Tx.copy(Asmem[:, :], A[:, :]){INSIDE}Tx.copy(Bsmem[:, :], B[:, :])"
READ = "with Tx.warpgroup():\n                Tx.copy("
IN_FRONT = {  # TVM's own spelling of a scope -> the course's, that of TVM's documentation
    "Tx.cta": (COPIES, "Tx.cta.copy(Asmem[:, :], A[:, :]); Tx.cta.copy(Bsmem[:, :], B[:, :])"),
    "Tx.tile.cta": (COPIES, "Tx.tile.cta.copy(Asmem[:, :], A[:, :]); Tx.tile.cta.copy(Bsmem[:, :], B[:, :])"),
    "Tx.wg": (READ, "if True:\n                Tx.wg.copy("),
    "Tx.tile.wg": (READ, "if True:\n                Tx.tile.wg.copy("),
    "Tx.tile, of one thread": ("Tx.cast(", "Tx.tile.cast("),
    "Tx.tile.thread": ("Tx.gemm_async(", "Tx.tile.thread.gemm_async("),
}


@pytest.mark.parametrize("name", IN_FRONT)
def test_a_scope_in_front_of_an_operation_is_that_of_a_with(tmp_path, name):
    made = build(mutant(tmp_path, 1, *IN_FRONT[name])(128, 128, 64), use_cache=False)
    usual = build(load_kernels(SOLUTIONS).hgemm_v1(128, 128, 64), use_cache=False)
    assert re.sub(r"// @src.*", "", made.ptx) == re.sub(r"// @src.*", "", usual.ptx)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Tx.gemm_async(", "Tx.tile.wg.gemm_async(", "is issued by one thread"),
        ("accum=False,", "acum=False,", "did you mean 'accum'"),
        ("with Tx.kernel():", "Tx.device_entry()\n        if True:", "goes into `with Tx.kernel():`"),
        ("A: Tx.Buffer(", "A: Tx.Tensor(", "the type of a parameter is Tx.Buffer"),
    ],
)
def test_the_spelling_of_tvms_documentation_is_checked_too(tmp_path, old, new, words):
    make = mutant(tmp_path, 1, old, new)
    with pytest.raises((ValueError, AttributeError), match=re.escape(words)):
        build(make(128, 128, 64), use_cache=False)


@pytest.mark.parametrize(("guard", "refused"), [("if i < BLK_N // EPI_N:", False), ("if warp_id < 4:", True)])
def test_a_condition_on_the_loop_may_keep_a_slice_inside(tmp_path, guard, refused):
    """A condition on anything else does not."""
    mutant(tmp_path, 7, "for i in Tx.unroll(BLK_N // EPI_N):", "for i in Tx.unroll(4):")
    path = tmp_path / "gemm_kernels.py"
    path.write_text(path.read_text().replace(CAST, f"{guard} {CAST}"))
    make = load_kernels(path).hgemm_v7
    if refused:
        with pytest.raises(ValueError, match="goes up to 256"):
            make(256, 256, 192)
    else:
        assert make(256, 256, 192)


def test_a_ring_of_one_stage_is_right(tmp_path):
    """PIPE_DEPTH = 1 is not only built: it multiplies, slowly."""
    A, B, C = utils.prepare_data(128, 256, 192, seed=1, device="sim")
    kernel = mutant(tmp_path, 5, "PIPE_DEPTH = 2", "PIPE_DEPTH = 1")(128, 256, 192)
    utils.verify(utils.compile_and_run(kernel, A, B, C, device="sim"), A, B)


def test_a_number_as_a_condition_of_and(tmp_path):
    """`and Tx.ptx.elect_sync()` selects the elected lane, as it reads."""
    old = 'if warp_id == 0:\n                with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:'
    new = "if warp_id == 0 and Tx.ptx.elect_sync():\n                with Tx.thread():"
    A, B, C = utils.prepare_data(128, 128, 64, seed=1, device="sim")
    kernel = mutant(tmp_path, 1, old, new)(128, 128, 64)
    utils.verify(utils.compile_and_run(kernel, A, B, C, device="sim"), A, B)


def test_a_name_of_another_step_is_not_offered(tmp_path):
    """Steps 9 and 10 have a `cbx`; step 3, while a part of it is missing, has no `bx`."""
    make = mutant(tmp_path, 3, "bx, by = Tx.cta_id([M", "by, bz = Tx.cta_id([M")
    with pytest.raises(ValueError, match="Undefined variable: bx") as refused:
        build(make(256, 256, 64), use_cache=False)
    assert "cbx" not in str(refused.value)


def test_a_variable_as_a_slice_bound_of_a_copy_works(tmp_path):
    """Tx.copy accepts it; only some operations do not."""
    make = mutant(tmp_path, 7, "d_st = Tx.meta_var(n_st + i * EPI_N)", "d_st = n_st + i * EPI_N")
    assert build(make(256, 256, 192), use_cache=False).ptx
