"""Operations on the parts of a register separately, for SIMD video instructions (PTX ISA 9.7.18)."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.inner import inner

_ADD, _SUB, _AVRG, _ABSDIFF, _MIN, _MAX, _EQ, _NE, _LT, _LE, _GT, _GE = range(12)


@inner
def _part(word, at, bits, signed):
    shift = np.int64(64 - bits)
    top = np.int64(word >> np.uint64(at)) << shift
    return top >> shift if signed else np.int64(np.uint64(top) >> np.uint64(shift))


@inner
def _of_two(operation, a, b):
    if operation == _ADD:
        return a + b
    if operation == _SUB:
        return a - b
    if operation == _AVRG:
        return (a + b + np.int64(a + b >= 0)) >> np.int64(1)
    if operation == _ABSDIFF:
        return abs(a - b)
    if operation == _MIN:
        return min(a, b)
    return max(a, b)


@inner
def _compare(operation, a, b):
    if operation == _EQ:
        return np.int64(a == b)
    if operation == _NE:
        return np.int64(a != b)
    if operation == _LT:
        return np.int64(a < b)
    if operation == _LE:
        return np.int64(a <= b)
    if operation == _GT:
        return np.int64(a > b)
    return np.int64(a >= b)


@inner
def _cut(value, bits, signed):
    low = -(np.int64(1) << np.int64(bits - 1)) if signed else np.int64(0)
    return min(max(value, low), low + (np.int64(1) << np.int64(bits)) - np.int64(1))


@inner
def video(a, b, c, operation, bits, a_signed, b_signed, d_signed, saturates, adds):
    """One operation on all parts of `bits` bits of a and b. If `adds`, the sum of the results and c, else a
    register of the results.
    """
    total, packed = np.int64(c), np.uint64(0)
    for at in range(0, 32, bits):
        x, y = _part(a, at, bits, a_signed), _part(b, at, bits, b_signed)
        value = _compare(operation, x, y) if operation >= _EQ else _of_two(operation, x, y)
        if saturates:
            value = _cut(value, bits, d_signed)
        total += value
        packed |= (np.uint64(value) & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))) << np.uint64(at)
    return np.uint64(total) if adds else packed
