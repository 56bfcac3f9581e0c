"""act(first half) * second half of the last dimension, in float32."""

from __future__ import annotations

import torch
from torch.nn import functional


def _gated(x: torch.Tensor, act) -> torch.Tensor:
    first, second = x.float().chunk(2, -1)
    return (act(first) * second).to(x.dtype)


def silu_and_mul(x, enable_pdl=None):
    return _gated(x, functional.silu)


def gelu_and_mul(x, enable_pdl=None):
    return _gated(x, functional.gelu)


def gelu_tanh_and_mul(x, enable_pdl=None):
    return _gated(x, lambda t: functional.gelu(t, approximate="tanh"))
