"""References in torch on the CPU, under the names that the library's tests import from FlashInfer.

Written from the definitions of the operations, in float32; no code of FlashInfer. If a name is missing here,
its kernel runs and nothing judges it.
"""

from __future__ import annotations

from flashinfer import activation, mamba, norm, quantization
from flashinfer.norm import (
    fused_add_rmsnorm,
    gemma_fused_add_rmsnorm,
    gemma_rmsnorm,
    layernorm,
    rmsnorm,
)
from flashinfer.quantization import SfLayout, nvfp4_quantize

__all__ = [
    "SfLayout",
    "activation",
    "fused_add_rmsnorm",
    "gemma_fused_add_rmsnorm",
    "gemma_rmsnorm",
    "layernorm",
    "mamba",
    "norm",
    "nvfp4_quantize",
    "quantization",
    "rmsnorm",
]
