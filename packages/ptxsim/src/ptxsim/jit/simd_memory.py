"""Loads and stores of a full warp as LLVM vector code: checks all addresses at once, then does four lanes a
step.

An access of `count` elements of `width` bytes per lane is a small transposition: in memory, the elements of
one lane are adjacent; in the register file, one element of all lanes is adjacent.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from ptxsim.isa.mathlib.intrinsic import intrinsic

LANES, STEP = 32, 4
I32, I64 = ir.IntType(32), ir.IntType(64)
V64, STEP64 = ir.VectorType(I64, LANES), ir.VectorType(I64, STEP)
LOW_BITS = 63  # an access has at most 64 bytes


def _pointer(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def _at(builder, base, words):
    """The address of the 64-bit word with number `words` after `base`."""
    return builder.add(base, builder.shl(words, ir.Constant(I64, 3)))


def _slot(builder, registers, number):
    """The address of lane 0 of a slot."""
    return _at(builder, registers, builder.mul(number, ir.Constant(I64, LANES)))


def _or_lanes(builder, vector):
    """The bits that are set in any lane."""
    half = LANES
    while half > 1:
        half //= 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        parts = [
            builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(I32, half), list(numbers)))
            for numbers in (range(half), range(half, 2 * half))
        ]
        vector = builder.or_(*parts)
    return builder.extract_element(vector, ir.Constant(I32, 0))


def _all_lanes(builder, value):
    one = builder.insert_element(ir.Constant(V64, ir.Undefined), value, ir.Constant(I32, 0))
    zeros = ir.Constant(ir.VectorType(I32, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(V64, ir.Undefined), zeros)


def _checked(builder, registers, slot, shift, room, active=None):
    """The result of check_lanes, restricted to the lanes in the vector `active` if given."""
    source = _slot(builder, registers, slot)
    offsets = builder.load(_pointer(builder, source, V64), align=8, typ=V64)
    offsets = builder.add(offsets, _all_lanes(builder, shift))
    if active is not None:
        offsets = builder.select(active, offsets, ir.Constant(V64, [0] * LANES))
    beyond = builder.or_(offsets, builder.sub(_all_lanes(builder, room), offsets))
    sign = builder.and_(_or_lanes(builder, beyond), ir.Constant(I64, 1 << 63))
    low = builder.and_(_or_lanes(builder, offsets), ir.Constant(I64, LOW_BITS))
    return builder.or_(sign, low)


@intrinsic
def check_lanes(typingctx, registers, slot, shift, room):
    """Checks the offsets (value of `slot` + shift) of all lanes.

    The result is negative if an offset is outside 0 .. room. Its low six bits are those that are set in any
    offset, for the alignment check.
    """

    def codegen(context, builder, signature, args):
        return _checked(builder, *args)

    return types.int64(types.uint64, types.int64, types.int64, types.int64), codegen


@intrinsic
def check_some(typingctx, registers, slot, shift, room, m):
    """check_lanes for the lanes in m only."""

    def codegen(context, builder, signature, args):
        file, number, distance, bytes_left, lanes = args
        active = builder.bitcast(builder.trunc(lanes, I32), ir.VectorType(ir.IntType(1), LANES))
        return _checked(builder, file, number, distance, bytes_left, active)

    return types.int64(types.uint64, types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic
def lanes_differ(typingctx, registers, slot):
    """The bits in which any lane of a slot differs from lane 0."""

    def codegen(context, builder, signature, args):
        source = _slot(builder, *args)
        values = builder.load(_pointer(builder, source, V64), align=8, typ=V64)
        undefined, zeros = ir.Constant(V64, ir.Undefined), ir.Constant(ir.VectorType(I32, LANES), [0] * LANES)
        return _or_lanes(builder, builder.xor(values, builder.shuffle_vector(values, undefined, zeros)))

    return types.int64(types.uint64, types.int64), codegen


def _columns(builder, rows, count: int):
    """The transposition: vectors of equal length -> for each element number, the vector over all rows."""
    for v in range(count):
        pairs = [_pick(builder, a, b, [v, count + v]) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        while len(pairs) > 1:
            width = pairs[0].type.count
            pairs = [
                _pick(builder, a, b, range(2 * width)) for a, b in zip(pairs[::2], pairs[1::2], strict=True)
            ]
        yield pairs[0]


def _pick(builder, a, b, numbers):
    numbers = list(numbers)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(numbers)), numbers))


def _steps(builder, action) -> None:
    """Emits a loop of action(first lane) for lanes 0, 4, .., 28."""
    start, body, done = (builder.append_basic_block(name) for name in ("start", "lanes", "done"))
    builder.branch(start)
    builder.position_at_end(start)
    builder.branch(body)
    builder.position_at_end(body)
    lane = builder.phi(I64)
    lane.add_incoming(ir.Constant(I64, 0), start)
    action(lane)
    after = builder.add(lane, ir.Constant(I64, STEP))
    lane.add_incoming(after, body)
    builder.cbranch(builder.icmp_unsigned("<", after, ir.Constant(I64, LANES)), body, done)
    builder.position_at_end(done)


def _addresses(builder, place, lane):
    """Host addresses of four lanes. place: (address of the slot with the simulated addresses, distance)."""
    values, distance = place
    for i in range(STEP):
        word = _at(builder, values, builder.add(lane, ir.Constant(I64, i)))
        yield builder.add(builder.load(_pointer(builder, word, I64), align=8, typ=I64), distance)


def _register(builder, registers, lists, v: int, lane):
    """Pointer to four lanes, from `lane` on, of the slot lists[v]; `lists` is an address."""
    number = builder.add(lists, ir.Constant(I64, 4 * v))
    slot = builder.zext(builder.load(_pointer(builder, number, I32), align=4, typ=I32), I64)
    word = builder.add(builder.mul(slot, ir.Constant(I64, LANES)), lane)
    return _pointer(builder, _at(builder, registers, word), STEP64)


AHEAD = 128  # bytes: a row of a K-major tile in the widest swizzle; the next tile of the row follows it


def _prefetch(builder, address):
    """Emits a prefetch for the host's cache: a CTA reads simulated global memory once, row by row."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
    module = builder.module
    function = module.globals.get("llvm.prefetch.p0i8") or ir.Function(module, kind, "llvm.prefetch.p0i8")
    builder.call(function, [builder.inttoptr(address, byte), *(ir.Constant(I32, n) for n in (0, 2, 1))])


_ARGUMENTS = (types.uint64, types.int64, types.int64, types.int64)


def loader(count: int, width: int):
    """`load(registers, lists, slot, distance)`: loads `count` elements of `width` bytes per lane,
    zero-extended, from the host addresses (value of `slot` + distance).
    """
    element = ir.VectorType(ir.IntType(8 * width), count)

    @intrinsic
    def load(typingctx, registers, lists, slot, distance):
        def codegen(context, builder, signature, args):
            registers, lists, slot, distance = args
            place = _slot(builder, registers, slot), distance

            def four_lanes(lane):
                addresses = list(_addresses(builder, place, lane))
                _prefetch(builder, builder.add(addresses[0], ir.Constant(I64, AHEAD)))
                rows = [builder.load(_pointer(builder, a, element), align=1, typ=element) for a in addresses]
                for v, column in enumerate(_columns(builder, rows, count)):
                    wide = builder.zext(column, STEP64) if width < 8 else column
                    builder.store(wide, _register(builder, registers, lists, v, lane), align=8)

            _steps(builder, four_lanes)
            return context.get_dummy_value()

        return types.void(*_ARGUMENTS), codegen

    return load


def storer(count: int, width: int):
    """`store(registers, lists, slot, distance)`: the low `width` bytes of `count` registers per lane."""
    narrow = ir.VectorType(ir.IntType(8 * width), STEP)

    @intrinsic
    def store(typingctx, registers, lists, slot, distance):
        def codegen(context, builder, signature, args):
            registers, lists, slot, distance = args
            place = _slot(builder, registers, slot), distance

            def four_lanes(lane):
                columns = []
                for v in range(count):
                    pointer = _register(builder, registers, lists, v, lane)
                    lanes = builder.load(pointer, align=8, typ=STEP64)
                    columns.append(builder.trunc(lanes, narrow) if width < 8 else lanes)
                rows = _columns(builder, columns, STEP) if count > 1 else _single(builder, columns[0])
                for address, row in zip(_addresses(builder, place, lane), rows, strict=True):
                    builder.store(row, _pointer(builder, address, row.type), align=1)

            _steps(builder, four_lanes)
            return context.get_dummy_value()

        return types.void(*_ARGUMENTS), codegen

    return store


def _single(builder, column):
    for i in range(STEP):
        yield builder.extract_element(column, ir.Constant(I32, i))
