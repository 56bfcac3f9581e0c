"""Conversions between float32 and the 16-bit formats as LLVM vector code.

No conversion instruction of the host (such as F16C) is used, so that every host gives the same bits.
Sources: IEEE 754 binary16, and PTX ISA "cvt" for the NaNs that a conversion gives.
"""

from __future__ import annotations

from llvmlite import ir

LANES = 32
V16, V32 = (ir.VectorType(ir.IntType(bits), LANES) for bits in (16, 32))
VF = ir.VectorType(ir.FloatType(), LANES)
NAN = 0x7FFF  # of f16 and bf16
INFINITY = 0x7F80_0000  # of f32
SMALLEST, TOO_LARGE = 0x3880_0000, 0x4780_0000  # 2**-14, the least normal f16, and 2**16, as f32
REBIAS = (127 - 15) << 23
HALF, SCALE = 0x3F00_0000, 0x7780_0000  # 0.5 and 2**112 as f32


def splat32(number: int):
    return ir.Constant(V32, [number] * LANES)


def _parts(builder, value):
    """(sign as bit 15, magnitude) of float32 lanes."""
    bits = builder.bitcast(value, V32)
    sign = builder.and_(builder.lshr(bits, splat32(16)), splat32(0x8000))
    return sign, builder.and_(bits, splat32(0x7FFF_FFFF))


def _round(builder, magnitude, drop: int, bias: int):
    """(magnitude + bias) >> drop, rounded to nearest even."""
    odd = builder.and_(builder.lshr(magnitude, splat32(drop)), splat32(1))
    half = splat32((bias + (1 << (drop - 1)) - 1) & 0xFFFF_FFFF)
    return builder.lshr(builder.add(builder.add(magnitude, half), odd), splat32(drop))


def _finish(builder, sign, magnitude, rounded):
    """Adds the sign; NaN stays NaN."""
    nan = builder.icmp_unsigned(">", magnitude, splat32(INFINITY))
    return builder.select(nan, splat32(NAN), builder.or_(rounded, sign))


def f16_of_f32(builder, value):
    """float32 lanes -> bits of float16, to nearest even: <32 x i32>."""
    sign, magnitude = _parts(builder, value)
    normal = _round(builder, magnitude, 13, -REBIAS)
    # Below 2**-14, adding 0.5 aligns the last bit of the sum with the last bit of a subnormal f16.
    sum_ = builder.fadd(builder.bitcast(magnitude, VF), builder.bitcast(splat32(HALF), VF))
    subnormal = builder.sub(builder.bitcast(sum_, V32), splat32(HALF))
    finite = builder.select(builder.icmp_unsigned("<", magnitude, splat32(SMALLEST)), subnormal, normal)
    large = builder.icmp_unsigned(">=", magnitude, splat32(TOO_LARGE))
    return _finish(builder, sign, magnitude, builder.select(large, splat32(0x7C00), finite))


def bf16_of_f32(builder, value):
    """float32 lanes -> bits of bfloat16, to nearest even: <32 x i32>."""
    sign, magnitude = _parts(builder, value)
    return _finish(builder, sign, magnitude, _round(builder, magnitude, 16, 0))


def f32_of_f16(builder, bits):
    """Bits of float16, <32 x i32> -> float32 lanes."""
    magnitude = builder.shl(builder.and_(bits, splat32(0x7FFF)), splat32(13))
    sign = builder.shl(builder.and_(bits, splat32(0x8000)), splat32(16))
    scaled = builder.fmul(builder.bitcast(magnitude, VF), builder.bitcast(splat32(SCALE), VF))
    infinite = builder.icmp_unsigned(">=", magnitude, splat32(0x7C00 << 13))
    special = builder.or_(magnitude, splat32(INFINITY))
    chosen = builder.select(infinite, special, builder.bitcast(scaled, V32))
    return builder.bitcast(builder.or_(chosen, sign), VF)


def f32_of_bf16(builder, bits):
    """Bits of bfloat16, <32 x i32> -> float32 lanes."""
    return builder.bitcast(builder.shl(bits, splat32(16)), VF)
