"""Kernels of the timing rounds that Triton compiles, as artifacts for sm_90a.

`python -m research.time.by_triton OUT.tar.xz [small]` needs Triton 3.9 and no GPU
(`PYTHONPATH=folder-with-triton`). Each kernel is compiled once and saved with its launch, at sizes that are
drawn (drawn.py), or (`small`) at sizes that ptxsim runs quickly.
"""

import os

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # the PTX names no folder; set before Triton is imported
