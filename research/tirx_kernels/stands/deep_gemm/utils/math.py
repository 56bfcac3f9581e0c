"""Quantization by definition: a factor is the smallest power of two that brings its block into range."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def align(a: int, b: int) -> int:
    return ceil_div(a, b) * b


def _factor(largest: torch.Tensor, limit: float, use_ue8m0: bool) -> torch.Tensor:
    wanted = largest.clamp(min=1e-4) / limit
    return torch.exp2(torch.ceil(torch.log2(wanted))) if use_ue8m0 else wanted


def _blocks(x: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """float32 (row blocks, rows, column blocks, columns), padded with zeros."""
    padded = torch.zeros(align(x.shape[0], rows), align(x.shape[1], columns))
    padded[: x.shape[0], : x.shape[1]] = x
    return padded.view(-1, rows, padded.shape[1] // columns, columns)


def _to_fp8(x: torch.Tensor, rows: int, columns: int, use_ue8m0: bool):
    blocks = _blocks(x.float(), rows, columns)
    factor = _factor(blocks.abs().amax((1, 3), keepdim=True), 448.0, use_ue8m0)
    scaled = (blocks / factor).reshape(blocks.shape[0] * rows, -1)[: x.shape[0], : x.shape[1]]
    return scaled.to(torch.float8_e4m3fn).contiguous(), factor[:, 0, :, 0]


def per_token_cast_to_fp8(x, use_ue8m0: bool, gran_k: int = 128):
    return _to_fp8(x, 1, gran_k, use_ue8m0)


def per_block_cast_to_fp8(x, use_ue8m0: bool, gran_k: int = 128):
    return _to_fp8(x, gran_k, gran_k, use_ue8m0)


def per_channel_cast_to_fp8(x, use_ue8m0: bool, gran_k: int = 128):
    return _to_fp8(x, gran_k, 1, use_ue8m0)


def per_custom_dims_cast_to_fp8(x, dims: tuple, use_ue8m0: bool):
    """One factor for each index of `dims`."""
    others = [i for i in range(x.dim()) if i not in dims]
    factor = _factor(x.float().abs().amax(others, keepdim=True), 448.0, use_ue8m0)
    return (x.float() / factor).to(torch.float8_e4m3fn), factor.squeeze(others)


def _packed(factor: torch.Tensor) -> torch.Tensor:
    """The exponents of powers of two, four in an int32."""
    exponents = (factor.float().contiguous().view(torch.int32) >> 23 & 255).to(torch.uint8)
    return exponents.view(torch.int32)


def cast_back_from_fp4(packed, factor, gran_k: int = 128, use_packed_ue8m0: bool = False):
    if use_packed_ue8m0:
        exponents = factor.contiguous().view(torch.uint8).view(packed.shape[0], -1)
        factor = torch.exp2(exponents.double() - 127)
    return (decoded(packed) * factor.double().repeat_interleave(gran_k, -1)).float()


def per_token_cast_to_fp4(x, use_ue8m0: bool, gran_k: int = 128, use_packed_ue8m0: bool = False):
    blocks = _blocks(x.float(), 1, gran_k)
    factor = _factor(blocks.abs().amax((1, 3), keepdim=True), 6.0, use_ue8m0)
    scaled = (blocks / factor).reshape(blocks.shape[0], -1)[:, : x.shape[1]].numpy()
    codes = scaled.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).view(np.int8)
    factor = factor[:, 0, :, 0]
    return torch.from_numpy(packed), _packed(factor) if use_packed_ue8m0 else factor


def decoded(data: torch.Tensor) -> torch.Tensor:
    """float64 of FP8, or of two FP4 in each int8."""
    if data.dtype != torch.int8:
        return data.double()
    raw = data.contiguous().numpy().view(np.uint8)
    codes = np.stack([raw & 15, raw >> 4], axis=-1).reshape(*raw.shape[:-1], -1)
    return torch.from_numpy(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64))
