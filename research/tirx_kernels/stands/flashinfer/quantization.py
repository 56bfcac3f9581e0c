"""NVFP4 and MX quantization by their definitions. NVFP4: 16 elements share a ue4m3 factor, their maximum / 6
times a scale. MX: 32 share a power of two, at least their maximum over the maximum of the element's format.
"""

from __future__ import annotations

import enum

import ml_dtypes
import numpy as np
import torch
from fp4_norms import elements


class SfLayout(enum.Enum):
    layout_128x4 = 0
    layout_8x4 = 1
    layout_linear = 2


def nvfp4_quantize(
    x, global_scale, sfLayout=SfLayout.layout_128x4, do_shuffle=False, per_token_activation=False, **_
):
    """(uint8 (rows, K / 2): two elements a byte; the factors as uint8 in the order of `sfLayout`).

    per_token_activation: each row has its own scale, its maximum times `global_scale`, which is returned,
    too.
    """
    if sfLayout is SfLayout.layout_8x4 or do_shuffle:
        raise NotImplementedError("layout_8x4 and shuffled rows have no reference here")
    values, scale = x.float().numpy(), np.float32(global_scale)
    order = _tiled if sfLayout is SfLayout.layout_128x4 else (lambda f: f)
    largest = np.abs(values).max(-1, keepdims=True) * scale
    if per_token_activation:
        scale = np.divide(1, largest, out=np.zeros_like(largest), where=largest != 0)
    packed, factors = nvfp4_blocks(values, scale)
    found = torch.from_numpy(packed), torch.from_numpy(order(factors).copy())
    return (*found, torch.from_numpy(largest[:, 0])) if per_token_activation else found


def nvfp4_blocks(values: np.ndarray, scale, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """(bytes of two elements, bytes of factors) of float32 rows; `scale`: of all, or (rows, 1)."""
    blocks, scale = values.reshape(len(values), -1, size), np.asarray(scale, np.float32).reshape(-1, 1)
    sixth = np.float32(1) / np.float32(6)  # upstream multiplies by it, which rounds unlike a division
    factors = (np.abs(blocks).max(-1) * sixth * scale).clip(0, 448).astype(ml_dtypes.float8_e4m3fn)
    wide = factors.astype(np.float32)[..., None]
    with np.errstate(divide="ignore"):
        back = wide * (np.float32(1) / scale[..., None])  # in upstream's order, for equal bits
    ratio = blocks * np.divide(np.float32(1), back, out=np.zeros_like(back), where=wide != 0)
    return elements(ratio, len(values)), factors.view(np.uint8)


def _powers(blocks: np.ndarray, most: float) -> np.ndarray:
    """uint8 exponents, ue8m0, of the factors of blocks of 32."""
    largest = np.abs(blocks).max(-1) / np.float32(most)
    exact = np.log2(largest, out=np.full(largest.shape, -127.0, np.float32), where=largest > 0)
    return (np.ceil(exact).clip(-127, 127) + 127).astype(np.uint8)


def _ordered(layout):
    return (lambda f: f) if layout is SfLayout.layout_linear else _tiled


def mxfp8_quantize(x, sf_swizzle_layout=SfLayout.layout_128x4, **_):
    """(e4m3 (rows, K), factors in the order of the layout)."""
    values = x.float().numpy()
    blocks = values.reshape(len(values), -1, 32)
    powers = _powers(blocks, 448)
    scaled = blocks * np.exp2(127.0 - powers.astype(np.float32))[..., None]
    codes = scaled.clip(-448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8).reshape(values.shape)
    factors = torch.from_numpy(_ordered(sf_swizzle_layout)(powers).copy())
    return torch.from_numpy(codes).view(torch.float8_e4m3fn), factors


def mxfp4_quantize(x, sfLayout=SfLayout.layout_128x4, **_):
    """(uint8 (rows, K / 2): two elements a byte; factors in the order of the layout)."""
    values = x.float().numpy()
    blocks = values.reshape(len(values), -1, 32)
    powers = _powers(blocks, 6)
    scaled = blocks * np.exp2(127.0 - powers.astype(np.float32))[..., None]
    factors = torch.from_numpy(_ordered(sfLayout)(powers).copy())
    return torch.from_numpy(elements(scaled, len(values))), factors


def _tiled(factors: np.ndarray) -> np.ndarray:
    """Blocks of 128 rows x 4 factors: row r of a block is at r % 32 * 16 + r // 32 * 4."""
    rows, count = (-(-n // step) * step for n, step in zip(factors.shape, (128, 4), strict=True))
    padded = np.zeros((rows, count), np.uint8)
    padded[: factors.shape[0], : factors.shape[1]] = factors
    blocks = padded.reshape(rows // 128, 4, 32, count // 4, 4).transpose(0, 3, 2, 1, 4)
    return blocks.reshape(rows, count)
