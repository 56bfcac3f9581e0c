"""Number formats of tensor core operands: raw bytes from memory -> float32 values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Decoder:
    bytes: int  # of one element in memory
    raw: type  # numpy dtype of the bytes
    decode: Callable[[np.ndarray], np.ndarray]  # raw (...) -> float32 (...)


def _bf16(raw: np.ndarray) -> np.ndarray:
    return (raw.astype(np.uint32) << 16).view(np.float32)


def _tf32(raw: np.ndarray) -> np.ndarray:
    """The tensor core reads the upper 19 bits of each 32-bit element (PTX ISA 5.2.3)."""
    return (raw & np.uint32(0xFFFF_E000)).view(np.float32)


def small_float_table(exponent: int, mantissa: int, inf: bool = False, nan: bool = False) -> np.ndarray:
    """float32 (256,) values of a sign / exponent / mantissa format in the low bits of a byte.

    inf: the top exponent is infinities and NaNs (e5m2); nan: only the all-ones pattern is a NaN (e4m3).
    """
    code = np.arange(256)
    bits = 1 + exponent + mantissa
    sign = np.where((code >> (bits - 1)) & 1, -1.0, 1.0)
    e = (code >> mantissa) & ((1 << exponent) - 1)
    m = code & ((1 << mantissa) - 1)
    bias = (1 << (exponent - 1)) - 1
    value = np.where(e == 0, m * 2.0 ** (1 - bias - mantissa), (1 + m / 2.0**mantissa) * 2.0 ** (e - bias))
    top = (1 << exponent) - 1
    if inf:
        value = np.where(e == top, np.where(m == 0, np.inf, np.nan), value)
    if nan:
        value = np.where((e == top) & (m == (1 << mantissa) - 1), np.nan, value)
    return (sign * value).astype(np.float32)


def _table(table: np.ndarray) -> Decoder:
    return Decoder(1, np.uint8, lambda raw: table[raw])


DECODERS: dict[str, Decoder] = {
    "f16": Decoder(2, np.float16, lambda raw: raw.astype(np.float32)),
    "bf16": Decoder(2, np.uint16, _bf16),
    "tf32": Decoder(4, np.uint32, _tf32),
    "e4m3": _table(small_float_table(4, 3, nan=True)),
    "e5m2": _table(small_float_table(5, 2, inf=True)),
    "e2m3": _table(small_float_table(2, 3)),
    "e3m2": _table(small_float_table(3, 2)),
    "e2m1": _table(small_float_table(2, 1)),
    "u8": Decoder(1, np.uint8, lambda raw: raw.astype(np.float32)),
    "s8": Decoder(1, np.int8, lambda raw: raw.astype(np.float32)),
}
