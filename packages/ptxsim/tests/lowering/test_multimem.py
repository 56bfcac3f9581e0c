"""multimem with the memory of one GPU (PTX ISA 9.7.9.14)."""

from __future__ import annotations

import numpy as np
import pytest
from warp_kernels import register_kernel, run_registers, vector

import ptxsim

HALF = np.array([1.5, -2.0], np.float16).view(np.uint32)[0]


@pytest.mark.parametrize("text, given, result", [
    ("multimem.st.release.sys.global.v4.f16x2 [%in], {0};"
     "multimem.ld_reduce.acquire.sys.global.add.acc::f32.v4.f16x2 {1}, [%in];", [1, 2, 3, 4], [1, 2, 3, 4]),
    ("multimem.st.weak.b64 [%in], %y1; multimem.red.relaxed.gpu.max.u64 [%in], 9;"
     "multimem.ld_reduce.min.u64 %y2, [%in]; mov.b64 {{%o0, %o1}}, %y2;", [0, 0], [9, 0]),
    ("multimem.st.b32 [%in], %r0; multimem.red.release.cta.global.add.f16x2 [%in], %r0;"
     "multimem.ld_reduce.relaxed.cta.max.f16x2 %o0, [%in];", [HALF], [HALF + 0x04000400]),
    ("multimem.red.add.v2.f32 [%in], {0}; multimem.ld_reduce.add.v2.f32 {1}, [%in];",
     np.array([1, 2], np.float32).view(np.uint32), np.array([1, 2], np.float32).view(np.uint32)),
])  # fmt: skip
def test_one_memory(text, given, result):
    """Each thread has 32 bytes of its own."""
    count = len(given)
    places = (vector("r", 0, count), vector("o", 0, len(result)))
    own = "mul.wide.u32 %y3, %t, 32; ld.param.u64 %in, [pin]; add.u64 %in, %in, 4096; add.u64 %in, %in, %y3;"
    ptx = register_kernel(f"mov.b64 %y1, 5; {own} {text.format(*places)}", count, len(result))
    data = np.zeros((4096, 32), np.uint32)
    data[:count] = np.array(given)[:, None]
    assert (run_registers(ptx, data, len(result)) == np.array(result)[:, None]).all()


def test_other_names_are_refused():
    with pytest.raises(ptxsim.PtxError, match="multimem is not modelled"):
        ptxsim.load(register_kernel("multimem.exch.b32 [%in], %r0;", 1, 1))
