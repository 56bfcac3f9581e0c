"""A draft that compresses to almost nothing: its uncompressed size counts."""

import pytest

from tirxlab.checkout import ROOT
from tirxlab.sandbox import Builder
from tirxlab.sandbox.builder import LARGEST_CUDA
from tirxlab.steps import sections

REFERENCE = (ROOT / "instructor/solutions/gemm_kernels.py").read_text(encoding="utf-8")
PADDED = """import tirxlab.toolchain.build as lab
old = lab._lower
def lower(*given):
    cuda, launch = old(*given)
    return cuda + " " * {spaces} + "// \\U0001f600", launch
lab._lower = lower
return right(M, N, K)
"""


@pytest.mark.parametrize("spaces", [1000, 50 << 20])
def test_a_draft_of_megabytes_of_cuda_is_none_however_well_it_packs(spaces):
    """Each is kept, sent and hashed for each size of each step: ten such steps took minutes and gigabytes."""
    step = sections(REFERENCE)[1].replace("def hgemm_v1(", "def right(")
    body = "".join(f"    {line}\n" for line in PADDED.format(spaces=spaces).splitlines())
    text = f"{sections(REFERENCE)[0]}{step}\n\ndef hgemm_v1(M, N, K):\n{body}"
    with Builder(text) as builder:
        built = builder.build(1, (128, 128, 64))
    assert (built.artifact is None) == (spaces > LARGEST_CUDA), built.message
    assert "CUDA text is larger than 4 MiB" in built.message or built.artifact
