"""Results in which an H200 at first differed from ptxsim: each difference keeps its case here."""

from __future__ import annotations

import numpy as np
import pytest
from tma_kernels import load_box
from warp_kernels import register_kernel

import ptxsim

TINY = np.float32(2.0**-140)


def run(text: str, out: np.ndarray, source: np.ndarray | None = None):
    source = np.zeros((1, 32), np.uint32) if source is None else source
    ptx = register_kernel(text, 1, 1, shared=256)
    return ptxsim.load(ptx).launch("k", block=32, args=[source, out])


@pytest.mark.parametrize("space", ["global", "generic"])
def test_add_of_floats_in_global_memory_flushes_subnormal_numbers(space):
    address = "ld.param.u64 %y0, [pin]; mul.wide.u32 %y1, %t, 4; add.u64 %y0, %y0, %y1;"
    word = ".global" if space == "global" else ""
    text = f"{address} red{word}.add.f32 [%y0], 0f00001000; ld.global.b32 %o0, [%y0];"
    out = np.ones((1, 32), np.uint32)
    run(text, out, np.full((1, 32), TINY.view(np.uint32)))
    assert (out == 0).all()


def test_add_of_floats_in_shared_memory_keeps_subnormal_numbers():
    text = """shl.b32 %x0, %t, 2; add.u32 %x0, %sm, %x0; st.shared.b32 [%x0], %r0;
    red.shared.add.f32 [%x0], 0f00001000; ld.shared.b32 %o0, [%x0];"""
    out = np.ones((1, 32), np.uint32)
    run(text, out, np.full((1, 32), TINY.view(np.uint32)))
    assert (out == TINY.view(np.uint32) + 0x1000).all()


@pytest.mark.parametrize("dtype, bits", [(np.float16, 0x7FF7), (np.float32, 0x7FF7_7FF7)])
def test_elements_outside_a_tensor_map_are_filled_with_this_nan(dtype, bits):
    tmap = ptxsim.TensorMap(np.zeros((4, 64), dtype), (16, 4), fill="nan")
    out, _ = load_box(tmap, (0, 4), 1024)
    assert (out[: tmap.box_bytes].view(f"u{tmap.dtype.itemsize}") == bits).all()


@pytest.mark.parametrize("offset, kinds", [(0, set()), (64, {"misaligned"})])
@pytest.mark.parametrize("op", ["applypriority.global.L2::evict_normal", "discard.global.L2"])
def test_a_cache_line_is_named_by_its_first_address(op, offset, kinds):
    array = np.zeros((1, 32), np.uint32)
    result = run(f"ld.param.u64 %y0, [pout]; {op} [%y0+{offset}], 128; mov.b32 %o0, 0;", array)
    assert {f.kind for f in result.findings} == kinds
