"""TVM without its graph compiler makes the same kernels, and the parts left out can still be imported."""

import subprocess
import sys

import pytest

_CODE = """
import hashlib, sys
if {lean}:
    from tirxlab.lean_tvm import import_tvm
    import_tvm()
    assert "tvm.relax" not in sys.modules
from instructor.solutions import gemm_kernels
from tirxlab.build import draft
print(hashlib.sha256(draft(gemm_kernels.hgemm_v{step}(*{size}), "sm_100a").to_bytes()).hexdigest())
import tvm.relax
assert tvm.relax.Function
"""


def _draft(lean: bool, step: int, size: tuple[int, int, int]) -> str:
    code = _CODE.format(lean=lean, step=step, size=size)
    return subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True).stdout


@pytest.mark.parametrize(("step", "size"), [(1, (128, 128, 64)), (10, (1024, 768, 64))])
def test_kernels_are_the_same(step, size):
    assert _draft(True, step, size) == _draft(False, step, size) != ""
