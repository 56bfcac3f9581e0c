"""Operations of atomics, reducing copies and redux on two elements, in compiled code (PTX ISA 9.7.13.6, .7,
.12).

Elements are the low bits of words. Floats add with one rounding to nearest even. A register with a pair of
16-bit floats is one element here; each half is computed separately.
"""

from __future__ import annotations

import numpy as np

from ptxsim.isa.mathlib.floating import as_f32, as_f64, f32_result, f64_bits
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M16, W16, ZERO
from ptxsim.isa.mathlib.small_floats import (
    bf16_f64,
    bf16_max,
    bf16_min,
    bf16_of,
    f16_f64,
    f16_max,
    f16_min,
    f16_of,
)
from ptxsim.isa.mathlib.soft_float import RN
from ptxsim.jit.compiled import compiled
from ptxsim.jit.loop_memory import read_element, write_element

OPERATIONS = ("and", "or", "xor", "exch", "cas", "add", "min", "max", "inc", "dec")
_AND, _OR, _XOR, _EXCH, _CAS, _ADD, MIN, _MAX, _INC, _DEC = range(len(OPERATIONS))
UNSIGNED, SIGNED, FLOAT, F16, BF16 = range(5)
TYPES: dict[str, tuple[int, int]] = {  # -> (kind of number, bytes)
    "b16": (UNSIGNED, 2), "b32": (UNSIGNED, 4), "b64": (UNSIGNED, 8), "u32": (UNSIGNED, 4),
    "u64": (UNSIGNED, 8), "s32": (SIGNED, 4), "s64": (SIGNED, 8), "f32": (FLOAT, 4), "f64": (FLOAT, 8),
    "f16": (F16, 2), "f16x2": (F16, 4), "bf16": (BF16, 2), "bf16x2": (BF16, 4),
}  # fmt: skip


@inner
def integer(operation, signed, bits, was, b, c):
    """The new value of an integer element. Old value and operands are the low `bits` of words."""
    up = np.uint64(64 - bits)
    low = ~np.uint64(0) >> up
    if operation == _AND:
        return was & b
    if operation == _OR:
        return was | b
    if operation == _XOR:
        return was ^ b
    if operation == _EXCH:
        return b
    if operation == _CAS:
        return c if was == b else was
    if operation == _ADD:
        return (was + b) & low
    if operation == _INC:
        return np.uint64(0) if was >= b else was + np.uint64(1)
    if operation == _DEC:
        return b if was == np.uint64(0) or was > b else was - np.uint64(1)
    less = np.int64(was << up) < np.int64(b << up) if signed else was < b
    return was if less == (operation == MIN) else b


@inner
def _flushed(bits):
    """A float32 with subnormal numbers replaced by zeros of their sign."""
    return bits & np.uint64(0x8000_0000) if bits & np.uint64(0x7F80_0000) == np.uint64(0) else bits


@inner
def _sum(size, in_shared, was, b):
    """The sum of two floats, with the flushing and NaNs of shared or global memory (atomics.py)."""
    if size == 4:
        if in_shared:
            return f32_result(as_f32(was) + as_f32(b))
        return _flushed(f32_result(as_f32(_flushed(was)) + as_f32(_flushed(b))))
    total = as_f64(was) + as_f64(b)
    if total == total:
        return f64_bits(total)
    first, second = (was, b) if in_shared else (b, was)
    nan = np.uint64(0xFFF8_0000_0000_0000)
    if as_f64(first) != as_f64(first):
        nan = first
    elif as_f64(second) != as_f64(second):
        nan = second
    return nan | np.uint64(1 << 51) if in_shared else nan


@inner
def _half(kind, operation, was, b):
    """add, min or max of two f16 or bf16 numbers."""
    if kind == F16:
        if operation == _ADD:
            return f16_of(f16_f64(was) + f16_f64(b), RN, False)
        return f16_min(was, b) if operation == MIN else f16_max(was, b)
    if operation == _ADD:
        return bf16_of(bf16_f64(was) + bf16_f64(b), RN, False)
    return bf16_min(was, b) if operation == MIN else bf16_max(was, b)


@inner
def changed(operation, kind, size, in_shared, was, b, c):
    """The new value of an element of `size` bytes. was: old value; b, c: operands."""
    low = ~ZERO >> np.uint64(64 - 8 * size)
    b, c = b & low, c & low
    if kind == FLOAT:
        return _sum(size, in_shared, was, b)
    if kind >= F16:
        new = _half(kind, operation, was & M16, b & M16)
        return new | _half(kind, operation, was >> W16, b >> W16) << W16 if size == 4 else new
    return integer(operation, kind == SIGNED, 8 * size, was, b, c)


@compiled()
def reduce_bytes(operation, kind, size, memory, data, count):
    """Combines a copy's `count` bytes at host address `data` with those at `memory`. Sums of f32 keep
    subnormal numbers.
    """
    for at in range(0, count, size):
        was, b = read_element(memory + at, size, 0), read_element(data + at, size, 0)
        write_element(memory + at, size, changed(operation, kind, size, size == 4, was, b, ZERO))
