"""Number formats of tensor core operands: raw bytes from memory -> float32 values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
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


def _small(kind: type, bits: int) -> Decoder:
    """The decoder of a format of at most 8 bits, in the low bits of a byte; the other bits are ignored."""
    codes = np.arange(256, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    table = codes.view(kind).astype(np.float32)
    return Decoder(1, np.uint8, lambda raw: table[raw])


_CANONICAL = {np.dtype(np.float16): 0x7FFF, np.dtype(np.float32): 0x7FFF_FFFF}


def canonical_nans(values: np.ndarray) -> np.ndarray:
    """Results of a unit with every float16 or float32 NaN replaced by the NaN of chips, in place."""
    bits = _CANONICAL.get(values.dtype)
    if bits is not None and values.size and np.isnan(values.min()):
        values[np.isnan(values)] = np.array(bits, f"u{values.itemsize}").view(values.dtype)
    return values


DECODERS: dict[str, Decoder] = {
    "f16": Decoder(2, np.float16, lambda raw: raw.astype(np.float32)),
    "bf16": Decoder(2, np.uint16, _bf16),
    "tf32": Decoder(4, np.uint32, _tf32),
    "e4m3": _small(ml_dtypes.float8_e4m3fn, 8),
    "e5m2": _small(ml_dtypes.float8_e5m2, 8),
    "e2m3": _small(ml_dtypes.float6_e2m3fn, 6),
    "e3m2": _small(ml_dtypes.float6_e3m2fn, 6),
    "e2m1": _small(ml_dtypes.float4_e2m1fn, 4),
    "u8": Decoder(1, np.uint8, lambda raw: raw.astype(np.float32)),
    "s8": Decoder(1, np.int8, lambda raw: raw.astype(np.float32)),
}


def unpack_bits(raw: np.ndarray, bits: int) -> np.ndarray:
    """Unpacks contiguous elements of 4 or 6 bits: uint8 (.., n bytes) -> uint8 (.., 8n / bits), low bits
    first.
    """
    single = np.unpackbits(raw, axis=-1, bitorder="little")
    groups = single.reshape(*raw.shape[:-1], -1, bits)
    return np.packbits(groups, axis=-1, bitorder="little")[..., 0]


def pack_bits(raw: np.ndarray, bits: int) -> np.ndarray:
    """The low bits of each byte, packed: uint8 (.., 8n / bits) -> uint8 (.., n), low bits first."""
    single = np.unpackbits(raw, axis=-1, bitorder="little").reshape(*raw.shape, 8)[..., :bits]
    return np.packbits(single.reshape(*raw.shape[:-1], -1), axis=-1, bitorder="little")


def _padded(kind: type, bits: int) -> Decoder:
    """The decoder of 16 elements packed in the low bytes of every 16 bytes (PTX ISA 9.7.16.10.4.4)."""
    table = _small(kind, bits).decode

    def decode(raw: np.ndarray) -> np.ndarray:
        groups = np.ascontiguousarray(raw).reshape(*raw.shape[:-1], -1, 16)
        return table(unpack_bits(groups[..., : 2 * bits], bits)).reshape(*raw.shape[:-1], -1)

    return Decoder(1, np.uint8, decode)


def _pairs(raw: np.ndarray) -> np.ndarray:
    """Decodes two e2m1 in each byte, the low half first (PTX ISA 9.7.16.10.4.6)."""
    return _PAIRS[raw].reshape(*raw.shape[:-1], -1)


_CODES = np.arange(256, dtype=np.uint8)
_PAIRS = DECODERS["e2m1"].decode(np.stack([_CODES & 15, _CODES >> 4], axis=-1))
DECODERS["e2m1x2"] = Decoder(1, np.uint8, _pairs)
# how .kind::f8f6f4 and mxf8f6f4 read narrow types from shared memory and from tensor memory (9.7.16.10.4.3)
IN_SHARED = {
    "e2m1": _padded(ml_dtypes.float4_e2m1fn, 4),
    "e2m3": _padded(ml_dtypes.float6_e2m3fn, 6),
    "e3m2": _padded(ml_dtypes.float6_e3m2fn, 6),
}
IN_TENSOR_MEMORY = {"e2m1": Decoder(1, np.uint8, lambda raw: DECODERS["e2m1"].decode(raw >> 2))}
SCALES: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # scale factors: uint8 -> float32
    "ue8m0": lambda raw: raw.view(ml_dtypes.float8_e8m0fnu).astype(np.float32),
    "ue4m3": lambda raw: (raw & np.uint8(0x7F)).view(ml_dtypes.float8_e4m3fn).astype(np.float32),
}
