"""Slips in a whole kernel: each is refused in one line that names the student's line and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    "variable as a slice bound": (
        7, (256, 256, 192), CAST, "no_st = i * EPI_N; Tx.cast(Dreg_16b[no_st : no_st + EPI_N], Dreg[:])",
        "no_st = Tx.meta_var(...)", "no_st = i * EPI_N; Tx.cast",
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
        7, (256, 256, 192), "tma_phase = PipelineState", "mma = 0; tma_phase = PipelineState",
        "`mma` is defined before with another meaning", "def mma(stage, accum):",
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
    assert words in said and line in said.splitlines()[-1]
    assert said.startswith("gemm_kernels.py:") and len(said.splitlines()) <= 3


def test_a_name_of_another_step_is_not_offered(tmp_path):
    """Steps 9 and 10 have a `cbx`, and step 3, while a part of it is missing, no `bx`."""
    make = mutant(tmp_path, 3, "bx, by = Tx.cta_id([M", "by, bz = Tx.cta_id([M")
    with pytest.raises(ValueError, match="Undefined variable: bx") as refused:
        build(make(256, 256, 64), use_cache=False)
    assert "cbx" not in str(refused.value)


def test_a_variable_as_a_slice_bound_of_a_copy_works(tmp_path):
    """Tx.copy takes it; only some operations do not."""
    make = mutant(tmp_path, 7, "d_st = Tx.meta_var(n_st + i * EPI_N)", "d_st = n_st + i * EPI_N")
    assert build(make(256, 256, 192), use_cache=False).ptx
