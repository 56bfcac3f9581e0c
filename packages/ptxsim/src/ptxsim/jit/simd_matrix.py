"""Compiled moves of tiles: operands out of shared memory, and results of a product into tensor memory.

A tile in shared memory is a list of 16-byte chunks; four chunks are one vector of 32 halves. The gain:
128 x 8 chunks are decoded in 2.7 us (numpy: 16 us, with fancy indexing and astype);
128 x 256 results are added in 5 us (numpy: 22 us, row by row and again for NaNs).
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import types

from ptxsim.isa.mathlib.intrinsic import intrinsic
from ptxsim.jit.code_cache import import_generated
from ptxsim.jit.simd_half import V16, V32, VF, f32_of_bf16, f32_of_f16

CHUNK = 16  # bytes
STEP = 4  # chunks at a time: 32 values
I32, I64 = ir.IntType(32), ir.IntType(64)
_V8 = ir.VectorType(ir.IntType(16), 8)


def _decoder(convert):
    """`decode(window, numbers, target)`, all three addresses: writes four chunks of the window as 32 floats
    to `target`. Their chunk numbers (int64) are at `numbers`.
    """

    @intrinsic
    def decode(typingctx, window, numbers, target):
        def codegen(context, builder, signature, args):
            window, numbers, target = args

            def pointer(address, kind):
                return builder.inttoptr(address, kind.as_pointer())

            chunks = []
            for i in range(STEP):
                number = builder.load(pointer(builder.add(numbers, ir.Constant(I64, 8 * i)), I64), typ=I64)
                place = builder.add(window, builder.shl(number, ir.Constant(I64, 4)))
                chunks.append(builder.load(pointer(place, _V8), typ=_V8, align=CHUNK))
            halves = [_join(builder, a, b) for a, b in (chunks[:2], chunks[2:])]
            bits = builder.zext(builder.bitcast(_join(builder, *halves), V16), V32)
            builder.store(convert(builder, bits), pointer(target, VF), align=4)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return decode


def _join(builder, a, b):
    count = a.type.count + b.type.count
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, count), list(range(count))))


decode_f16, decode_bf16 = _decoder(f32_of_f16), _decoder(f32_of_bf16)
TOGETHER = 8  # products per iteration of `lane_products`


@intrinsic
def lane_products(typingctx, sums, a, b, steps):
    """Stores 32 sums of `steps` products (a multiple of eight) at `sums`, added in order with one rounding
    per product and one per sum. In each step, lane l multiplies float l of the next 32 at `a` by float l % 4
    of the next four at `b`.
    """

    def codegen(context, builder, signature, args):
        sums, a, b, steps = args
        four = ir.VectorType(ir.FloatType(), 4)
        numbers = ir.Constant(V32, [lane % 4 for lane in range(32)])
        start, body, done = (builder.append_basic_block(name) for name in ("start", "steps", "done"))
        builder.branch(start)
        builder.position_at_end(start)
        builder.branch(body)
        builder.position_at_end(body)
        step, total = builder.phi(I64), builder.phi(VF)
        step.add_incoming(ir.Constant(I64, 0), start)
        total.add_incoming(ir.Constant(VF, [0.0] * 32), start)
        more = total
        for i in range(TOGETHER):
            at = builder.add(step, ir.Constant(I64, i))
            left, right = (
                builder.load(
                    builder.inttoptr(
                        builder.add(base, builder.mul(at, ir.Constant(I64, size))), kind.as_pointer()
                    ),
                    typ=kind,
                    align=4,
                )
                for base, size, kind in ((a, 128, VF), (b, 16, four))
            )
            spread = builder.shuffle_vector(right, ir.Constant(four, ir.Undefined), numbers)
            more = builder.fadd(more, builder.fmul(left, spread))
        after = builder.add(step, ir.Constant(I64, TOGETHER))
        step.add_incoming(after, body)
        total.add_incoming(more, body)
        builder.cbranch(builder.icmp_unsigned("<", after, steps), body, done)
        builder.position_at_end(done)
        builder.store(more, builder.inttoptr(sums, VF.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64), codegen


_SOURCE = """from ptxsim.jit.compiled import generated
from ptxsim.jit.simd_matrix import CHUNK, STEP, decode_bf16, decode_f16


@generated(nogil=True)
def gather(window, numbers, out, bfloat):
    start, first, target = window.ctypes.data, numbers.ctypes.data, out.ctypes.data
    for i in range(0, numbers.size, STEP):
        if bfloat:
            decode_bf16(start, first + 8 * i, target + 2 * CHUNK * i)
        else:
            decode_f16(start, first + 8 * i, target + 2 * CHUNK * i)


@generated(nogil=True)
def accumulate(cells, product, lane, column, row, first, rows, columns, add, nan):
    for i in range(rows):
        target = cells[lane + i, column : column + columns]
        source = product[row + i, first : first + columns]
        for j in range(columns):
            value = target[j] + source[j] if add else source[j]
            target[j] = value if value == value else nan
"""
_NAN = np.array(0x7FFF_FFFF, np.uint32).view(np.float32)[()]  # the NaN that chips write


@functools.cache
def _compiled():
    return import_generated(_SOURCE)


def gather_halves(window: np.ndarray, numbers: np.ndarray, kind: str) -> np.ndarray:
    """The values of chunks of a shared memory window (uint8, aligned to 16 bytes): float32 (.., 8 per chunk).

    numbers: chunk numbers, int64, contiguous, a multiple of four, all inside the window; kind: "f16" or
    "bf16".
    """
    out = np.empty((*numbers.shape[:-1], 8 * numbers.shape[-1]), np.float32)
    _compiled().gather(window, numbers, out, kind == "bf16")
    return out


def accumulate(cells: np.ndarray, product: np.ndarray, cell, entry, size, add: bool) -> None:
    """Adds a block of a product to a block of tensor memory or, without `add`, writes it there.

    cells, product: contiguous float32 matrices, in which the blocks of `size` start at `cell` and `entry`
    (pairs).
    """
    _compiled().accumulate(cells, product, *cell, *entry, *size, add, _NAN)
