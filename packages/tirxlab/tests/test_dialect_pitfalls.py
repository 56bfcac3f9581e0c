"""The course's ten pitfalls, each with its actual behaviour on TVM 0.26 through this dialect."""

import re

import numpy as np
import pytest
from kernel_text import make_kernel
from test_dialect_rows import BAR, DRAIN, ELECT, GEMM, OUTER, TILES, TMA_STORE

from tirxlab.devices import sim
from tirxlab.dialect import KernelError, names_of
from tirxlab.toolchain.build import build

AFTER = "Tx.ptx.tcgen05.fence.after_thread_sync()\n"


def _cuda(folder, body, **parts) -> str:
    """The device code of the kernel, without the source markers."""
    cuda = build(make_kernel(folder, body, outer=OUTER, **parts)).cuda
    return re.sub(r"\n\s*lab_src\(\d+\);", "", cuda.split(" kernel_kernel(")[-1])


def _refused(folder, body, **parts) -> str:
    with pytest.raises(KernelError) as error:
        make_kernel(folder, body, outer=OUTER, **parts)
    return str(error.value)


def test_1_python_and_works_here_so_nesting_is_a_habit_not_a_need(tmp_path):
    body = "if warp_id == 0 {} lane_id == 3:\n    R[tid] = 7\n"
    joined = _cuda(tmp_path, body.format("and"))
    both = r"if \(\(\(warp_id_in_cta % 4\) == 0\) {} \(\(\(\(int\)threadIdx.x\) & 31\) == 3\)\)"
    assert re.search(both.format("&&"), joined)
    assert re.search(both.format(r"\|\|"), _cuda(tmp_path, body.format("or")))


def test_2_accum_must_be_boolean(tmp_path):
    assert "accum must be a boolean" in _refused(
        tmp_path, GEMM.replace("False", "0"), decl=BAR + "\n" + TILES
    )
    cuda = _cuda(tmp_path, GEMM, decl=BAR + "\n" + TILES)
    assert re.search(r"tcgen05_mma_cta_1_kind_f16_SS\(.*\(bool\)0, ", cuda)


def test_3_the_fence_takes_its_space_by_position(tmp_path):
    message = _refused(tmp_path, 'Tx.ptx.fence.proxy_async(scope="shared::cta")')
    assert "Tx.ptx.fence.proxy_async(space): got an unexpected keyword argument 'scope'" in message
    assert "fence_proxy_async_shared_cta();" in _cuda(
        tmp_path, 'Tx.ptx.fence.proxy_async("shared::cta")\nR[tid] = tid'
    )


def test_4_nothing_flakes_in_the_build(tmp_path):
    first, second = (
        build(make_kernel(tmp_path, GEMM, decl=BAR + "\n" + TILES, outer=OUTER), use_cache=False)
        for _ in range(2)
    )
    assert first.ptx == second.ptx and first.cubin == second.cubin


def test_5_move_base_to_overlaps_buffers(tmp_path):
    decl = TILES + '\npool.move_base_to(1024)\nDs = pool.alloc((128, 64), "float16", layout=L)'
    kernel = make_kernel(tmp_path, "R[tid] = tid", decl=decl, outer=OUTER)
    offsets = {name: offset for name, _, offset, _ in names_of(kernel)}
    assert offsets["As"] == offsets["Ds"] == 1024 and offsets["Bs"] == 1024 + 128 * 64 * 2
    assert build(kernel).shared_bytes == 1024 + (128 + 64) * 64 * 2


def test_6_cta_sync_in_an_elected_thread_is_compiled_as_written(tmp_path):
    cuda = _cuda(tmp_path, ELECT + "        Tx.cuda.cta_sync()\nR[tid] = tid")
    assert re.search(
        r"if \(tvm_builtin_elect_one_sync_op\(\)\) \{\s*tvm_builtin_cuda_cta_sync\(\);\s*\}", cuda
    )


def _run(folder, body, **parts):
    artifact = build(make_kernel(folder, body, outer=OUTER, **parts))
    arrays = {b.name: np.ones(b.shape, b.dtype) for b in artifact.buffers}
    return sim.run(artifact, arrays)


def test_6_and_is_an_error_when_it_runs(tmp_path):
    run = _run(tmp_path, ELECT + "        Tx.cuda.cta_sync()\nR[tid] = tid")
    assert run.verdict == "error" and run.findings[0].kind in ("collective", "deadlock")


def test_7_registers_come_from_alloc_local_and_casts_use_it_not_its_view(tmp_path):
    message = _refused(tmp_path, 'r = Tx.decl_buffer((4,), "float32", scope="local")')
    assert "use Tx.alloc_local for registers" in message
    view = GEMM.replace("Tx.cast(Dreg_16b[:], Dreg[:])", "Tx.cast(Dreg_16b[:], Dreg_wg[0, :])")
    assert "use the Tx.alloc_local buffer" in _refused(tmp_path, view, decl=BAR + "\n" + TILES)


def test_8_a_store_without_commit_and_wait_is_compiled_as_written(tmp_path):
    text = TMA_STORE.replace("Tx.ptx.cp_async.bulk.commit_group()", "").replace(
        "Tx.ptx.cp_async.bulk.wait_group(0)", ""
    )
    cuda = _cuda(tmp_path, text, decl=TILES)
    assert "cp_async_bulk_tensor_shared_to_global" in cuda
    assert "commit_group" not in cuda and "wait_group" not in cuda


def test_9_the_fence_before_reading_tmem_is_never_added_for_you(tmp_path):
    with_fence = _cuda(tmp_path, GEMM, decl=BAR + "\n" + TILES)
    assert GEMM.count(AFTER) == 2 and GEMM.index(DRAIN) > GEMM.rindex(AFTER)
    without = _cuda(tmp_path, re.sub(" *" + re.escape(AFTER), "", GEMM), decl=BAR + "\n" + TILES)
    assert with_fence.count("fence_after_thread_sync") == 2 and "fence_after_thread_sync" not in without


def test_10_lengths_of_slices_are_constants_from_outside(tmp_path):
    load = "EPI_N = {}\nwith Tx.cta():\n    Tx.copy(As[:, 0:EPI_N], A[:, 0:EPI_N])"
    message = _refused(tmp_path, load.format(64), decl=TILES)
    assert "has the length EPI_N, which is not a constant" in message and "outside @Tx.prim_func" in message
    make_kernel(tmp_path, load.split("\n", 1)[1], decl=TILES, outer=OUTER + "EPI_N = 64\n")
