"""Bit patterns of floats, and float32 / float64 helpers that use the host's rounding (to nearest even).

Correct rounding in other directions, and to other formats, is in isa/mathlib/soft_float.py.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import W32
from ptxsim.isa.mathlib.intrinsic import intrinsic

ZERO32, ONE32 = np.float32(0), np.float32(1)
ONE64 = np.float64(1)
TINY32, TINY64 = np.float32(2.0**-126), np.float64(2.0**-1022)  # smallest normal numbers
SIGN32, SIGN64 = np.uint64(1 << 31), np.uint64(1 << 63)
MAGNITUDE32, INFINITY32 = np.uint64(0x7FFFFFFF), np.uint64(0x7F800000)
CANONICAL32 = np.uint64(0x7FFFFFFF)  # the only NaN that float32 arithmetic gives (seen on an H200)
QUIET64, INFINITY64 = np.uint64(1 << 51), np.uint64(0x7FF0000000000000)
INVALID64 = np.uint64(0xFFF8000000000000)  # NaN of an operation without NaN operands (seen on an H200)
COARSE64 = np.uint64(0x7FFFFFFF00000000)  # the NaN of rcp and rsqrt.approx.ftz.f64
LOW32 = np.uint64(0xFFFFFFFF)


def _reinterpreted(result, argument, convert):
    """An intrinsic that reinterprets the bits of a value; convert(builder, value) emits its LLVM code."""

    @intrinsic
    def call(typingctx, value):
        return result(argument), lambda context, builder, signature, args: convert(builder, args[0])

    return call


_I32, _I64, _F32, _F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
as_f32 = _reinterpreted(types.float32, types.uint64, lambda b, bits: b.bitcast(b.trunc(bits, _I32), _F32))
as_f64 = _reinterpreted(types.float64, types.uint64, lambda b, bits: b.bitcast(bits, _F64))
f32_bits = _reinterpreted(types.uint64, types.float32, lambda b, x: b.zext(b.bitcast(x, _I32), _I64))
f64_bits = _reinterpreted(types.uint64, types.float64, lambda b, x: b.bitcast(x, _I64))


def _fma(kind, llvm_type, name: str):
    """An intrinsic for a * b + c with a single rounding: LLVM's fma."""

    @intrinsic
    def fma(typingctx, a, b, c):
        def codegen(context, builder, signature, args):
            function = builder.module.globals.get(name) or ir.Function(
                builder.module, ir.FunctionType(llvm_type, [llvm_type] * 3), name
            )
            return builder.call(function, args)

        return kind(kind, kind, kind), codegen

    return fma


fma_f32 = _fma(types.float32, ir.FloatType(), "llvm.fma.f32")
fma_f64 = _fma(types.float64, ir.DoubleType(), "llvm.fma.f64")


@inner
def f32_result(x):
    """The bit pattern of a float32 result of arithmetic; every NaN has the same."""
    return f32_bits(x) if x == x else CANONICAL32


@inner
def canonical32(x):
    return as_f32(f32_result(x))


@inner
def nan64(x, a, b, c):
    """The float64 result x of three operands (the last one repeated if there are fewer). If x is a NaN: the
    last operand that is a NaN, made quiet, as on an H200.
    """
    if x == x:
        return x
    if c != c:
        return as_f64(f64_bits(c) | QUIET64)
    if b != b:
        return as_f64(f64_bits(b) | QUIET64)
    return as_f64(f64_bits(a) | QUIET64 if a != a else INVALID64)


@inner
def quiet_or64(a, value):
    """Raw bits: a made quiet if it is a NaN, else `value`."""
    return a | QUIET64 if a & ~SIGN64 > INFINITY64 else value


@inner
def coarse64(x):
    """The result of an operation with only the high half of a float64, which has only one NaN."""
    return x if x == x else as_f64(COARSE64)


@inner
def ftz(x):
    """Flushes a subnormal float32 to a zero of the same sign."""
    return as_f32(f32_bits(x) & SIGN32) if abs(x) < TINY32 else x


@inner
def f32_sat(x):
    """Clamps to [0, 1]; NaN becomes +0."""
    return min(x, ONE32) if x > ZERO32 else ZERO32


@inner
def lo_f32(pair):
    """The low element of a packed f32x2."""
    return as_f32(pair)


@inner
def hi_f32(pair):
    return as_f32(pair >> W32)


@inner
def pack_f32(low, high):
    return f32_bits(low) | (f32_bits(high) << W32)


def _extreme(minimum: bool, nan_wins: bool, as_float, bits, both):
    """min or max of two floats, with -0 < +0. A NaN is ignored unless `nan_wins` (PTX ISA 9.7.3, min and
    max).

    both(b): the result if it is a NaN.
    """

    @inner
    def pick(a, b):
        if a != a or b != b:
            if nan_wins or (a != a and b != b):
                return both(b)
            return a if b != b else b
        if a == b:
            return as_float(bits(a) | bits(b)) if minimum else as_float(bits(a) & bits(b))
        return a if (a < b) == minimum else b

    return pick


@inner
def _canonical(b):
    return as_f32(CANONICAL32)


@inner
def _quiet(b):
    return as_f64(f64_bits(b) | QUIET64)


min_f32 = _extreme(True, False, as_f32, f32_bits, _canonical)
max_f32 = _extreme(False, False, as_f32, f32_bits, _canonical)
min_nan_f32 = _extreme(True, True, as_f32, f32_bits, _canonical)
max_nan_f32 = _extreme(False, True, as_f32, f32_bits, _canonical)
min_f64 = _extreme(True, False, as_f64, f64_bits, _quiet)
max_f64 = _extreme(False, False, as_f64, f64_bits, _quiet)


def _xorsign(pick):
    """`pick` of the magnitudes, with the exclusive or of both signs."""

    @inner
    def apply(a, b):
        value = pick(abs(a), abs(b))
        if value != value:
            return value
        return as_f32(f32_bits(value) | ((f32_bits(a) ^ f32_bits(b)) & SIGN32))

    return apply


xorsign_min_f32, xorsign_min_nan_f32 = _xorsign(min_f32), _xorsign(min_nan_f32)
xorsign_max_f32, xorsign_max_nan_f32 = _xorsign(max_f32), _xorsign(max_nan_f32)


@inner
def high64(x):
    """A float64 without the low 32 bits of its fraction; subnormal numbers become zero."""
    return as_f64(f64_bits(x) & (SIGN64 if abs(x) < TINY64 else ~LOW32))


@inner(error_model="numpy")
def rsqrt_f64(x):
    return ONE64 / np.sqrt(x)


@inner
def rsqrt_f32(x):
    return np.float32(rsqrt_f64(np.float64(x)))


def _function(compute):
    """A function of float64, and the same of float32 computed in float64."""

    @inner
    def double(x):
        return compute(x)

    @inner
    def single(x):
        return np.float32(double(np.float64(x)))

    return double, single


sin_f64, sin_f32 = _function(np.sin)
cos_f64, cos_f32 = _function(np.cos)
lg2_f64, lg2_f32 = _function(np.log2)
ex2_f64, ex2_f32 = _function(np.exp2)
tanh_f64, tanh_f32 = _function(np.tanh)
