"""mma.sync (PTX ISA 9.7.14.5): D = A * B + C by one warp, all four matrices in registers.

Sums are computed in float64, which is exact, and rounded once to the type of D. A chip may round and order
its sums differently (9.7.14.5.14). Block-scaled forms (sm_120a) and m8n8k4 of f16 (sm_70) are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d
from ptxsim.isa.mathlib.floating import as_f32, as_f64, f32_result, f64_bits
from ptxsim.isa.mathlib.inner import inner
from ptxsim.isa.mathlib.integer import M16, M32
from ptxsim.isa.mathlib.small_floats import f16_f32, f16_of
from ptxsim.isa.mathlib.soft_float import RN
from ptxsim.isa.number_formats import DECODERS
from ptxsim.jit import bytecode
from ptxsim.jit.called import ParameterBlock, called
from ptxsim.jit.compiled import compiled
from ptxsim.jit.host import address_in_host
from ptxsim.jit.intrinsics import column, lane_value, load32, set_lane_value
from ptxsim.jit.loop_memory import set_word, word
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import FastForm, refuse, slots_of, unit
from ptxsim.units.sparse_a import (
    ROWS,
    SPARSE_WORDS,
    Sparse,
    all_defined,
    decode_sparse,
    expand,
    report_undefined,
    sparse_words,
)
from ptxsim.units.warp import require_aligned, require_set

_BYTES = {kind: DECODERS[kind].bytes for kind in ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")}
BITS = {**{kind: 8 * size for kind, size in _BYTES.items()}, "f64": 64, "s4": 4, "u4": 4, "b1": 1}
# types of A and B -> (shapes, types of C and D)
_INT4, _INT8, _FP8 = ("s4", "u4"), ("s8", "u8"), ("e4m3", "e5m2")
_LEGAL = {
    ("f16",): ({"m16n8k8", "m16n8k16"}, ("f16", "f32")),
    ("bf16",): ({"m16n8k8", "m16n8k16"}, ("f32",)),
    ("tf32",): ({"m16n8k4", "m16n8k8"}, ("f32",)),
    ("f64",): ({"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}, ("f64",)),
    _FP8: ({"m16n8k16", "m16n8k32"}, ("f16", "f32")),
    _INT8: ({"m8n8k16", "m16n8k16", "m16n8k32"}, ("s32",)),
    _INT4: ({"m8n8k32", "m16n8k32", "m16n8k64"}, ("s32",)),
    ("b1",): ({"m8n8k128", "m16n8k128", "m16n8k256"}, ("s32",)),
}
_SPARSE = {
    ("f16",): ({"m16n8k16", "m16n8k32"}, ("f16", "f32")),
    ("bf16",): ({"m16n8k16", "m16n8k32"}, ("f32",)),
    ("tf32",): ({"m16n8k8", "m16n8k16"}, ("f32",)),
    _FP8: ({"m16n8k64"}, ("f16", "f32")),
    _INT8: ({"m16n8k32", "m16n8k64"}, ("s32",)),
    _INT4: ({"m16n8k64", "m16n8k128"}, ("s32",)),
}
SPARSE = ("sp", "sp::ordered_metadata")


@dataclass(frozen=True)
class MmaForm:
    """The decoded modifiers of an MMA."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    saturate: bool
    bitwise: str  # "xor" or "and" for b1, else ""
    sparse: Sparse | None = None

    @property
    def stored(self) -> int:
        """Elements of a row of A in registers."""
        return self.k // 2 if self.sparse else self.k


def sizes_of(instr) -> tuple[int, int, int]:
    """(m, n, k) from the shape among the modifiers."""
    shape = next(m for m in instr.mods if m[0] == "m" and m[1].isdigit())
    m, n, k = shape[1:].replace("n", " ").replace("k", " ").split()
    return int(m), int(n), int(k)


def decode_form(instr) -> MmaForm:
    """The form of an `mma.sync`; raises PtxError for one that does not exist or is not modelled."""
    types = [m for m in instr.mods if m in BITS or m in ("f32", "s32")]
    m, n, k = sizes_of(instr)
    shape, (d, a, b, c) = f"m{m}n{n}k{k}", types
    sparse = instr.mods[0] in SPARSE
    for family, (shapes, results) in (_SPARSE if sparse else _LEGAL).items():
        if a in family:
            good = b in family and shape in shapes and c in results and d in results
            if not good or c != d:
                what = "sm_70's" if (shape, a) == ("m8n8k4", "f16") else "no such form, or"
                raise refuse(instr, f"mma.{shape}.{'.'.join(types)}: {what} not modelled (PTX ISA 9.7.14.5)")
    bitwise = next((x for x in ("xor", "and") if x in instr.mods), "")
    made = decode_sparse(instr, k, BITS[a], instr.operands[5]) if sparse else None
    return MmaForm(m, n, k, a, b, c, d, "satfinite" in instr.mods, bitwise, made)


@lru_cache(maxsize=16)
def value_table(kind: str) -> np.ndarray:
    """The float32 value of every bit pattern of a type of at most 16 bits; empty for wider types."""
    bits = BITS[kind]
    if bits > 16:
        return np.zeros(0, np.float32)
    codes = np.arange(1 << bits)
    if kind in ("s4", "u4", "b1"):
        return (np.where(codes > 7, codes - 16, codes) if kind == "s4" else codes).astype(np.float32)
    decoder = DECODERS[kind]
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

QUIET, M, N, K, XOR, C_KIND, D_KIND, SATURATE, RESULTS, D_PLACES, C_SLOTS, D_SLOTS, METADATA = range(13)
A_WORDS = METADATA + SPARSE_WORDS
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
    a, b, d, out = np.empty(m * k), np.empty(n * k), np.empty(m * n), np.empty(32 * count)
    if word(block, METADATA) >= 0:
        stored = np.empty(m * k // 2)
        _decode(block + 8 * A_WORDS, registers, stored)
        expand(block + 8 * METADATA, registers, stored, a, 0, found)
    else:
        _decode(block + 8 * A_WORDS, registers, a)
    _decode(block + 8 * (A_WORDS + OPERAND_WORDS), registers, b)
    _product(m, n, k, word(block, XOR), a, b, d)
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
        *sparse_words(form.sparse, args[4] if form.sparse else -1),
        *(oa.bits, oa.table, len(oa.shift), a[oa.register], oa.shift, oa.index),
        *(ob.bits, ob.table, len(ob.shift), b[ob.register], ob.shift, ob.index),
    )


_RESULT_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}


_SETS: dict[str, Any] = {
    "shape": " ".join(
        sorted({shape for forms in (_LEGAL, _SPARSE) for s, _ in forms.values() for shape in s})
    ),
    "d": "f16 f32",
    "half": "f16",
    "wide": "bf16 tf32",
    "eight": "e4m3 e5m2",
    "int": "s8 u8 s4 u4",
    "bits": "xor and",
}
_TYPES = (
    ".d.half.half.d", ".f32.wide.wide.f32", ".d.eight.eight.d", "{.satfinite}.s32.int.int.s32",
)  # fmt: skip
_DENSE = "mma .sync.aligned.shape.row.col"


def _layout(form: MmaForm) -> Layout:
    operands = _operand("a", form.m, form.stored, form.a), _operand("b", form.n, form.k, form.b)
    return Layout(*operands, *mma_d(form.m, form.n))


def _fast_mma(instr, args: tuple, unset) -> ParameterBlock:
    form = decode_form(instr)
    return block_of(form, _layout(form), args, quiet=not suspects(args, unset))


@unit(
    *(f"{_DENSE}{types} d, a, b, c" for types in _TYPES),
    f"{_DENSE}{{.rn}}.f64.f64.f64.f64 d, a, b, c",
    f"{_DENSE}.s32.b1.b1.s32.bits.popc d, a, b, c",
    *(f"mma.{s} .sync.aligned.shape.row.col{types} d, a, b, c, e, f" for types in _TYPES for s in SPARSE),
    **_SETS,
    writes=(0,),
    section="9.7.14.5",
    fast=FastForm(_fast_mma, called=multiply_warp, unheard=True),
)
def mma(instr):
    form = decode_form(instr)
    _check_counts(instr, form)
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
    """Slots of A, B and C that the kernel may read before it writes them."""
    return [slot for operand in args[1:4] for slot in slots_of(operand) if slot in unset]


def _check_counts(instr, form: MmaForm) -> None:
    """Raises PtxError for a wrong number of registers in an operand (PTX ISA 9.7.14.5.1 - 9.7.14.5.13)."""
    needs = []
    for elements, kind in (
        (form.m * form.n, form.d),
        (form.m * form.stored, form.a),
        (form.k * form.n, form.b),
        (form.m * form.n, form.c),
    ):
        bits = _RESULT_BITS.get(kind) or BITS[kind]
        needs.append(max(1, elements * bits // 32 // max(32, bits)))
    require_counts(instr, needs + [1, 1] * bool(form.sparse))


def require_counts(instr, needs: list[int]) -> None:
    """Raises PtxError unless the operands have these numbers of registers."""
    sizes = [len(o.items) if hasattr(o, "items") else 1 for o in instr.operands]
    if sizes != needs:
        raise refuse(instr, f"the operands D, A, B, C, .. take {needs} registers, not {sizes}")
