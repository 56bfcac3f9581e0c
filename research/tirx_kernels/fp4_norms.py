"""Rows that FlashInfer's norms quantize to FP4, in numpy and in the order in which those kernels round."""

from __future__ import annotations

import ml_dtypes
import numpy as np

MOST, SIXTH = np.float32(448), np.float32(1) / np.float32(6)


def added_and_normalised(x, residual, weight, eps: float, rounded) -> tuple[np.ndarray, np.ndarray]:
    """(the residual plus x, rounded by `rounded`; that over its root mean square, times the weight) of
    float32 rows. The mean square is that of the sums before rounding.
    """
    total = x + residual
    kept = rounded(total)
    square = np.square(total.astype(np.float64)).mean(-1, keepdims=True)
    inverse = (1 / np.sqrt(square + eps)).astype(np.float32)
    return kept, kept * inverse * weight


def blocks(rows: np.ndarray, scale: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(bytes of two elements, bytes of factors in ue4m3) of float32 rows.

    As in min.f32 and cvt.e2m1x2 (PTX ISA 9.7.3, 9.7.9), the minimum of a NaN and a number is the number,
    and a NaN becomes the largest element. An infinite scale of zero rows leads to this case.
    """
    parts, scale = rows.reshape(len(rows), -1, size), np.float32(scale)
    with np.errstate(invalid="ignore"):
        factors = np.fmin(scale * np.abs(parts).max(-1) * SIXTH, MOST).astype(ml_dtypes.float8_e4m3fn)
        wide = factors.astype(np.float32)[..., None]
        inverse = np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide != 0)
        scaled = parts * (inverse * scale)
    return elements(np.where(np.isnan(scaled), np.float32(6), scaled), len(rows)), factors.view(np.uint8)


def elements(values: np.ndarray, rows: int) -> np.ndarray:
    """float32 -> two e2m1 a byte, uint8 (rows, n)."""
    codes = values.clip(-6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(rows, -1) & 15
    return codes[:, ::2] | codes[:, 1::2] << 4
