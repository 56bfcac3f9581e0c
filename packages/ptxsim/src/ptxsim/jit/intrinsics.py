"""Raw memory access for compiled code: typed loads and stores at host addresses.

Nothing is checked here: a simulated address must have been checked by `translate` (jit/translate.py) first.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from ptxsim.isa.mathlib.intrinsic import intrinsic


def _loader(bits: int):
    @intrinsic
    def load(typingctx, address):
        def codegen(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, typ=ir.IntType(bits), align=1)
            return builder.zext(value, ir.IntType(64)) if bits < 64 else value

        return types.uint64(types.uint64), codegen

    return load


def _storer(bits: int):
    @intrinsic
    def store(typingctx, address, value):
        def codegen(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            narrow = builder.trunc(args[1], ir.IntType(bits)) if bits < 64 else args[1]
            builder.store(narrow, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64), codegen

    return store


load8, load16, load32, load64 = (_loader(bits) for bits in (8, 16, 32, 64))
store8, store16, store32, store64 = (_storer(bits) for bits in (8, 16, 32, 64))


def word_at(builder, base, index):
    """Pointer to the 64-bit word number `index` after address `base`."""
    word = ir.IntType(64)
    start = builder.inttoptr(base, word.as_pointer())
    return builder.gep(start, [index], inbounds=True, source_etype=word)


@intrinsic
def pointer(typingctx, address):
    """An address as the pointer that numba.carray takes."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@intrinsic
def call_operation(typingctx, address, row, m, registers, predicates):
    """Calls the machine code of one scalar operation (codegen.cold_address)."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 4)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64, types.int64, types.uint64, types.uint64), codegen


@intrinsic
def call_unit(typingctx, address, row, m, warp, registers, predicates, control):
    """Calls the compiled code of a unit instruction (jit/called.py)."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 6)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    word = types.int64
    return types.int64(word, types.uint64, word, word, types.uint64, types.uint64, word), codegen


@intrinsic
def call_loop(typingctx, address, control):
    """Calls the machine code of the main loop (loop_template.run)."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def lowest_bit(typingctx, m):
    """The number of the lowest bit that is set in m; m must not be 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def column(typingctx, row, number):
    """int64 number `number` of the bytecode row at address `row`."""

    def codegen(context, builder, signature, args):
        return builder.load(word_at(builder, args[0], args[1]), typ=ir.IntType(64))

    return types.int64(types.uint64, types.int64), codegen


@intrinsic
def lane_value(typingctx, registers, slot, lane):
    """The uint64 value of a lane in a slot of the warp whose register file is at address `registers`."""

    def codegen(context, builder, signature, args):
        index = builder.add(builder.mul(args[1], ir.Constant(ir.IntType(64), 32)), args[2])
        return builder.load(word_at(builder, args[0], index), typ=ir.IntType(64))

    return types.uint64(types.uint64, types.int64, types.int64), codegen


@intrinsic
def set_lane_value(typingctx, registers, slot, lane, value):
    def codegen(context, builder, signature, args):
        index = builder.add(builder.mul(args[1], ir.Constant(ir.IntType(64), 32)), args[2])
        builder.store(args[3], word_at(builder, args[0], index))
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.int64, types.uint64), codegen


def _room(words: int):
    @intrinsic
    def room(typingctx):
        """The address of memory for some words, valid until the function returns."""

        def codegen(context, builder, signature, args):
            room = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(64), words))
            return builder.ptrtoint(room, ir.IntType(64))

        return types.uint64(), codegen

    return room


room_for_lanes, room_for_rows = _room(32), _room(128)  # values of a slot; 64 rows of 16 bytes


@intrinsic
def mask_of(typingctx, predicates, code):
    """The int64 mask of a predicate operand (2 * index + negated) of the warp with file `predicates`."""

    def codegen(context, builder, signature, args):
        one = ir.Constant(ir.IntType(64), 1)
        value = builder.load(word_at(builder, args[0], builder.ashr(args[1], one)), typ=ir.IntType(64))
        return builder.xor(value, builder.neg(builder.and_(args[1], one)))

    return types.int64(types.uint64, types.int64), codegen


@intrinsic
def set_mask(typingctx, predicates, index, active, value):
    """Sets the active lanes of predicate `index` from the bits of `value`."""

    def codegen(context, builder, signature, args):
        pointer = word_at(builder, args[0], args[1])
        old = builder.load(pointer, typ=ir.IntType(64))
        kept = builder.and_(old, builder.not_(args[2]))
        builder.store(builder.or_(kept, builder.and_(args[3], args[2])), pointer)
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, types.int64, types.int64), codegen
