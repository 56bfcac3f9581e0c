"""act(first half) * second half of the last dimension, in float32."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .quantization import _tiled, nvfp4_blocks


def _gated(x: torch.Tensor, act) -> torch.Tensor:
    first, second = x.float().chunk(2, -1)
    return (act(first) * second).to(x.dtype)


def silu_and_mul(x, enable_pdl=None):
    return _gated(x, functional.silu)


def gelu_and_mul(x, enable_pdl=None):
    return _gated(x, functional.gelu)


def gelu_tanh_and_mul(x, enable_pdl=None):
    return _gated(x, lambda t: functional.gelu(t, approximate="tanh"))


def silu_and_mul_scaled_nvfp4_experts_quantize(x, rows, global_scale):
    """silu_and_mul of each expert's first rows, in FP4: elements (row, K / 2, expert), factors in tiles of
    32 x 4 rows and 4 columns."""
    gated = silu_and_mul(x).float().numpy()
    found = [nvfp4_blocks(of, scale) for of, scale in zip(gated, global_scale.tolist(), strict=True)]
    packed = torch.from_numpy(np.stack([p for p, _ in found], -1))
    tiled = np.stack([_tiled(factors) for _, factors in found])
    experts, height, width = tiled.shape
    ordered = torch.from_numpy(tiled).view(experts, height // 128, width // 4, 32, 4, 4)
    return packed, ordered.permute(3, 4, 1, 5, 2, 0)
