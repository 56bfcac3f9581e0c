"""mma.sync (PTX ISA 9.7.14.5): D = A * B + C by one warp, all four matrices in registers.

Sums are computed in float64, which is exact, and rounded once to the type of D. A chip may round and order
its sums differently (9.7.14.5.14).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d, volta_ab, volta_d
from ptxsim.isa.mathlib.floating import as_f32, as_f64, f32_result, f64_bits
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M16, M32
from ptxsim.isa.mathlib.small_floats import f16_f32, f16_of
from ptxsim.isa.mathlib.soft_float import RN
from ptxsim.isa.number_formats import DECODERS, IN_TENSOR_MEMORY
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host
from ptxsim.jit.intrinsics import column, lane_value, load32, set_lane_value
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.mma_form import BITS, BOXES, PACKED, SETS, MmaForm, check_counts, decode_form
from ptxsim.units.registry import FastForm, slots_of, unit
from ptxsim.units.scaled_mma import SCALE_WORDS, apply_scales, scale_words
from ptxsim.units.sparse_a import (
    ROWS,
    SPARSE_WORDS,
    all_defined,
    expand,
    report_undefined,
    sparse_words,
)
from ptxsim.units.warp import require_aligned, require_set


@lru_cache(maxsize=16)
def value_table(kind: str) -> np.ndarray:
    """The float32 value of every bit pattern of a type of at most 16 bits; empty for wider types."""
    bits = BITS[kind]
    if bits > 16:
        return np.zeros(0, np.float32)
    codes = np.arange(1 << bits)
    if kind == PACKED:
        return DECODERS["e2m1"].decode(codes)
    if bits < 8:
        return (np.where(codes > 7, codes - 16, codes) if kind == "s4" else codes).astype(np.float32)
    decoder = IN_TENSOR_MEMORY.get(kind) or DECODERS[kind]
    return decoder.decode(codes.astype(f"u{bits // 8}").view(decoder.raw))


@dataclass(frozen=True)
class Operand:
    """The layout of A or B in registers, for the compiled product."""

    index: np.ndarray  # int64 (elements, 32): index in the row-major matrix
    register: np.ndarray  # int64 (elements,): number of the operand's register
    shift: np.ndarray  # uint64 (elements,): lowest bit of the element in it
    table: np.ndarray
    bits: int


@lru_cache(maxsize=128)
def _operand(which: str, size: int, k: int, kind: str) -> Operand:
    if which == "a":
        row, depth = mma_a(size, k, BITS[kind])
        return operand_of(row * k + depth, kind)
    depth, column = mma_b(k, size, BITS[kind])
    return operand_of(depth * size + column, kind)


def operand_of(place: np.ndarray, kind: str) -> Operand:
    """The Operand of A or B. place[thread, element]: index of an element in the row-major matrix."""
    bits = BITS[kind]
    element, per = np.arange(place.shape[1]), max(1, 32 // bits)
    shift = (element % per * bits).astype(np.uint64)
    return Operand(np.ascontiguousarray(place.T), element // per, shift, value_table(kind), bits)


# ---- the product, in compiled code; a ParameterBlock has these words, then those of A, then those of B ----

QUIET, M, N, K, XOR, C_KIND, D_KIND, SATURATE, RESULTS, D_PLACES, C_SLOTS, D_SLOTS, PRODUCTS, METADATA = (
    range(14)
)
SCALES = METADATA + SPARSE_WORDS
A_WORDS = SCALES + SCALE_WORDS
BITS_EACH, TABLE, ELEMENTS, SLOTS, SHIFTS, PLACES, OPERAND_WORDS = range(7)
F16, F32, S32, F64 = range(4)
_RESULTS = {"f16": F16, "f32": F32, "s32": S32, "f64": F64}


@inner
def _decode(operand, registers, out):
    """Fills `out`, float64 (matrix elements,), from the registers of a warp."""
    bits, table, places = word(operand, BITS_EACH), word(operand, TABLE), word(operand, PLACES)
    mask = (np.uint64(1) << np.uint64(bits & 63)) - np.uint64(1)
    for e in range(word(operand, ELEMENTS)):
        slot, shift = word(word(operand, SLOTS), e), np.uint64(word(word(operand, SHIFTS), e))
        for l in range(32):
            raw = lane_value(registers, slot, l)
            if bits <= 16:
                x = np.float64(as_f32(load32(np.uint64(table) + np.uint64(4) * (raw >> shift & mask))))
            elif bits == 32:  # the tensor core reads the upper 19 bits (PTX ISA 5.2.3)
                x = np.float64(as_f32(raw & np.uint64(0xFFFFE000)))
            else:
                x = as_f64(raw)
            out[np.uint64(word(places, 32 * e + l))] = x


@inner
def _product(m, n, k, xor, a, b, d):
    """d = a * b, all row-major; n must be a multiple of 8. xor: counts the set bits of row XOR column."""
    for i in range(m):
        for j in range(np.uint64(0), np.uint64(n), np.uint64(8)):
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = 0.0
            for s in range(k):
                x, at = a[np.uint64(i * k + s)], np.uint64(s * n) + j
                d0 += x * b[at]
                d1 += x * b[at + np.uint64(1)]
                d2 += x * b[at + np.uint64(2)]
                d3 += x * b[at + np.uint64(3)]
                d4 += x * b[at + np.uint64(4)]
                d5 += x * b[at + np.uint64(5)]
                d6 += x * b[at + np.uint64(6)]
                d7 += x * b[at + np.uint64(7)]
            for c, total in enumerate((d0, d1, d2, d3, d4, d5, d6, d7)):
                d[np.uint64(i * n) + j + np.uint64(c)] = total
    if xor:
        for i in range(m):
            for j in range(n):
                ones = 0.0
                for s in range(k):
                    ones += a[i * k + s] + b[s * n + j]
                d[i * n + j] = ones - 2 * d[i * n + j]


@inner
def _held(kind, raw, e):
    """Element e of C as a float64, which is exact."""
    if kind == F32:
        return np.float64(as_f32(raw))
    if kind == S32:
        return np.float64(np.int32(raw))
    if kind == F64:
        return as_f64(raw)
    return np.float64(f16_f32(raw >> np.uint64(16 * (e & 1)) & M16))


@inner
def _rounded(kind, x, saturate):
    """The bits of an element of D: rounded once, with every NaN the canonical one, except in f64."""
    if kind == F32:
        return f32_result(np.float32(x))
    if kind == F64:
        return f64_bits(x)
    if kind == F16:
        return f16_of(x, RN, False) if x == x else np.uint64(0x7FFF)
    if saturate:
        x = min(max(x, -2147483648.0), 2147483647.0)
    return np.uint64(np.int64(x)) & M32


@inner
def multiply(block, registers, found):
    """D = A * B + C for a warp. registers: host address of its register file; found: see `expand`."""
    m, n, k, count = word(block, M), word(block, N), word(block, K), word(block, RESULTS)
    products = word(block, PRODUCTS)
    a, b, d = np.empty(products * m * k), np.empty(products * n * k), np.empty(products * m * n)
    out = np.empty(32 * count)
    if word(block, METADATA) >= 0:
        stored = np.empty(m * k // 2)
        _decode(block + 8 * A_WORDS, registers, stored)
        expand(block + 8 * METADATA, registers, stored, a, 0, found)
    else:
        _decode(block + 8 * A_WORDS, registers, a)
    _decode(block + 8 * (A_WORDS + OPERAND_WORDS), registers, b)
    if word(block, SCALES) > 0:
        apply_scales(block + 8 * SCALES, registers, a, 0, m, k, k, 1)
        apply_scales(block + 8 * SCALES, registers, b, 3, n, k, 1, n)
    for p in range(products):
        _product(m, n, k, word(block, XOR), a[p * m * k :], b[p * n * k :], d[p * m * n :])
    c_kind, d_kind = word(block, C_KIND), word(block, D_KIND)
    for e in range(count):
        slot = word(word(block, C_SLOTS), e)
        for l in range(32):
            x = d[word(word(block, D_PLACES), 32 * e + l)] + _held(c_kind, lane_value(registers, slot, l), e)
            out[32 * e + l] = np.float64(np.float32(x)) if c_kind == F32 and d_kind == F16 else x  # wmma
    for e in range(count):
        slot = word(word(block, D_SLOTS), e)
        for l in range(32):
            bits = _rounded(d_kind, out[32 * e + l], word(block, SATURATE))
            if d_kind == F16 and e & 1:
                bits = bits << np.uint64(16) | lane_value(registers, slot, l)
            set_lane_value(registers, slot, l, bits)


@called
def multiply_warp(row, m, warp, registers, predicates, control):
    """mma.sync or wmma.mma of a whole warp."""
    block = column(row, bytecode.CALLED_BLOCK)
    if m != bytecode.FULL or word(control, bytecode.LOG_ON) > word(block, QUIET):
        return 0
    if not all_defined(block + 8 * METADATA, registers):
        return 0
    set_word(control, bytecode.TENSOR_OPERATIONS, word(control, bytecode.TENSOR_OPERATIONS) + 1)
    if not word(control, bytecode.DRY):
        multiply(block, registers, 0)
    return 1


@compiled()
def multiply_now(block, registers, found):
    multiply(block, registers, found)


@dataclass(frozen=True)
class Layout:
    """The layouts of all matrices of one product in registers."""

    a: Operand
    b: Operand
    row: np.ndarray  # int64 (32, elements) of C and D
    column: np.ndarray


def block_of(form: MmaForm, layout: Layout, args, quiet: bool) -> ParameterBlock:
    """The ParameterBlock that `multiply` needs for an instruction. quiet: whether no operand can be unset."""
    d, a, b, c = (np.array(slots_of(x), np.int64) for x in args[:4])
    oa, ob = layout.a, layout.b
    halves = np.arange(layout.row.shape[1])
    of_c, of_d = (x[halves // 2] if kind == "f16" else x for x, kind in ((c, form.c), (d, form.d)))
    return ParameterBlock(
        *(quiet, form.m, form.n, form.k, form.bitwise == "xor"),
        *(_RESULTS[form.c], _RESULTS[form.d], form.saturate, len(halves)),
        *(np.ascontiguousarray((layout.row * form.n + layout.column).T), of_c, of_d),
        form.products,
        *sparse_words(form.sparse, slots_of(args[4])[0] if form.sparse else -1),
        *scale_words(form, args),
        *(oa.bits, oa.table, len(oa.shift), a[oa.register], oa.shift, oa.index),
        *(ob.bits, ob.table, len(ob.shift), b[ob.register], ob.shift, ob.index),
    )


def _layout(form: MmaForm) -> Layout:
    if form.products == 1:
        operands = _operand("a", form.m, form.stored, form.a), _operand("b", form.n, form.k, form.b)
        return Layout(*operands, *mma_d(form.m, form.n))
    at, row, depth = volta_ab(form.sides[0] == "col")
    _, column, along = volta_ab(form.sides[1] == "row")
    operands = operand_of(at * 32 + row * 4 + depth, "f16"), operand_of(at * 32 + along * 8 + column, "f16")
    return Layout(*operands, *volta_d(form.d == "f32"))


def _fast_mma(instr, args: tuple, unset) -> ParameterBlock:
    form = decode_form(instr)
    return block_of(form, _layout(form), args, quiet=not suspects(args, unset))


@unit(
    *BOXES,
    **SETS,
    writes=(0,),
    section="9.7.14.5",
    fast=FastForm(_fast_mma, called=multiply_warp, unheard=True),
)
def mma(instr):
    form = decode_form(instr)
    check_counts(instr, form)
    return multiplier(form, _layout(form))


def multiplier(form: MmaForm, layout: Layout):
    """The handler for a product of one warp, with operands D, A, B, C."""
    blocks: list[ParameterBlock] = []  # made at the first execution, when the operands have slots

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        unset = cluster.launch.program.slots.unset
        if unset and cluster.bus.heard:
            require_set(cluster, split, suspects(args, unset))
        cluster.tensor_operations += 1
        if cluster.dry:
            return
        if not blocks:
            blocks.append(block_of(form, layout, args, quiet=True))
        found = np.zeros(form.sparse.chunks * ROWS if form.sparse else 1, np.int64)
        registers = address_in_host(cluster.registers[split.warp])
        multiply_now(blocks[0].address, registers, address_in_host(found))
        if form.sparse:
            report_undefined(cluster, split, form.sparse, found)

    return run


def suspects(args, unset) -> list[int]:
    """Slots of the sources that the kernel may read before it writes them."""
    return [slot for operand in args[1:] for slot in slots_of(operand) if slot in unset]
