"""temporary"""
from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fields:
    start: int
    lbo: int
    sbo: int
    swizzle: int


def smem_descriptor(d: int) -> Fields:
    sw = {0: 0, 2: 128, 4: 64, 6: 32}.get((d >> 61) & 7)
    if sw is None:
        raise ValueError(f"descriptor {d:#x}: swizzle mode {(d >> 61) & 7} not modelled")
    return Fields((d & 0x3FFF) << 4, ((d >> 16) & 0x3FFF) << 4, ((d >> 32) & 0x3FFF) << 4, sw)


@functools.lru_cache(maxsize=512)
def _chunks(phase, lbo, sbo, swizzle, rows, kelems, width, mn):
    per = 16 // width
    if not mn:
        r = np.arange(rows)[:, None]
        c = np.arange(kelems // per)[None, :] * 16
        if swizzle:
            off = (r % 8) * swizzle + (r // 8) * sbo + c % swizzle + (c // swizzle) * lbo
        else:
            off = (r % 8) * 16 + (r // 8) * sbo + (c // 16) * lbo
    else:
        k = np.arange(kelems)[:, None]
        c = np.arange(rows // per)[None, :] * 16
        if swizzle:
            off = (k % 8) * swizzle + (k // 8) * sbo + c % swizzle + (c // swizzle) * lbo
        else:
            off = (k % 8) * 16 + (k // 8) * lbo + (c // 16) * sbo
    a = phase + off
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    a = a ^ (((a >> 7) & bits) << 4)
    return a >> 4


def operand_chunks(f: Fields, rows, kelems, width, mn):
    phase = f.start & 1023
    return _chunks(phase, f.lbo, f.sbo, f.swizzle, rows, kelems, width, mn) + ((f.start - phase) >> 4)


def mma_d_rows(m, n, group):
    if (m, group) == (128, 1) or (m, group) == (256, 2):
        return [(slice(0, 128), slice(0, 128), slice(0, n), 0)]
    if (m, group) == (64, 1):
        return [(slice(32 * i, 32 * i + 16), slice(16 * i, 16 * i + 16), slice(0, n), 0) for i in range(4)]
    return [(slice(0, 64), slice(0, 64), slice(0, n // 2), 0), (slice(64, 128), slice(0, 64), slice(n // 2, n), 0)]


@functools.lru_cache(maxsize=64)
def tcgen05_ld_map(shape, count, split_column=0):
    if shape != "32x32b":
        raise NotImplementedError(shape)
    reg = np.arange(count)[:, None]
    lane = np.arange(32)[None, :]
    return np.broadcast_to(lane, (count, 32)), np.broadcast_to(reg, (count, 32))
