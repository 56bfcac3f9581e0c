"""mma.sync (PTX ISA 9.7.14.5): D = A * B + C by one warp, all four matrices in registers.

Sums are exact (float64) and rounded once to the type of D; the chip is free to round and order its sums
otherwise (9.7.14.5.14). Sparse and block-scaled forms and m8n8k4 of f16 (sm_70) are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d
from ptxsim.isa.number_formats import DECODERS
from ptxsim.jit.compiled import compiled
from ptxsim.machine.cluster import Cluster
from ptxsim.machine.split import Split
from ptxsim.units.registry import refuse, slots_of, unit
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


@dataclass(frozen=True)
class MmaForm:
    """What the modifiers say."""

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    d: str
    saturate: bool
    bitwise: str  # "xor" or "and" of b1, else ""


def sizes_of(instr) -> tuple[int, int, int]:
    """(m, n, k) of the shape among the modifiers."""
    shape = next(m for m in instr.mods if m[0] == "m" and m[1].isdigit())
    m, n, k = shape[1:].replace("n", " ").replace("k", " ").split()
    return int(m), int(n), int(k)


def decode_form(instr) -> MmaForm:
    """The form of an `mma.sync`; PtxError for one that does not exist or is not modelled."""
    types = [m for m in instr.mods if m in BITS or m in ("f32", "s32")]
    m, n, k = sizes_of(instr)
    shape, (d, a, b, c) = f"m{m}n{n}k{k}", types
    for family, (shapes, results) in _LEGAL.items():
        if a in family:
            good = b in family and shape in shapes and c in results and d in results
            if not good or c != d:
                what = "sm_70's" if (shape, a) == ("m8n8k4", "f16") else "no such form, or"
                raise refuse(instr, f"mma.{shape}.{'.'.join(types)}: {what} not modelled (PTX ISA 9.7.14.5)")
    bitwise = next((x for x in ("xor", "and") if x in instr.mods), "")
    return MmaForm(m, n, k, a, b, c, d, "satfinite" in instr.mods, bitwise)


@lru_cache(maxsize=16)
def value_table(kind: str) -> np.ndarray:
    """float32 value of every bit pattern of a type of at most 16 bits; empty for wider types."""
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
    """How A or B lies in registers, for the compiled product."""

    index: np.ndarray  # int64 (elements, 32): place in the matrix, A by rows of k, B by columns of k
    register: np.ndarray  # int64 (elements,): which register of the operand
    shift: np.ndarray  # uint64 (elements,): bits below the element in it
    table: np.ndarray
    bits: int


@lru_cache(maxsize=128)
def _operand(which: str, size: int, k: int, kind: str) -> Operand:
    if which == "a":
        return operand_of(*mma_a(size, k, BITS[kind]), k, kind)
    depth, column = mma_b(k, size, BITS[kind])
    return operand_of(column, depth, k, kind)


def operand_of(row: np.ndarray, depth: np.ndarray, k: int, kind: str) -> Operand:
    """A, or B by its columns, whose elements [thread, element] lie at these rows and places along k."""
    bits = BITS[kind]
    element, per = np.arange(row.shape[1]), max(1, 32 // bits)
    shift = (element % per * bits).astype(np.uint64)
    return Operand(np.ascontiguousarray((row * k + depth).T), element // per, shift, value_table(kind), bits)


@compiled()
def _decode(R, w, slots, index, shift, table, bits, out):
    """Fills `out`, float64 (matrix elements,), from the registers of warp w."""
    mask = np.uint64((1 << bits) - 1) if bits < 64 else np.uint64(0xFFFFFFFFFFFFFFFF)
    if bits <= 16:
        for e in range(index.shape[0]):
            for l in range(32):
                out[index[e, l]] = table[(R[w, slots[e], l] >> shift[e]) & mask]
    elif bits == 32:
        cut = np.empty(1, np.uint32)  # the tensor core reads the upper 19 bits (PTX ISA 5.2.3)
        for e in range(index.shape[0]):
            for l in range(32):
                cut[0] = R[w, slots[e], l] & np.uint64(0xFFFFE000)
                out[index[e, l]] = cut.view(np.float32)[0]
    else:
        raw = R[w].view(np.float64)
        for e in range(index.shape[0]):
            for l in range(32):
                out[index[e, l]] = raw[slots[e], l]


@compiled()
def product(R, w, m, n, k, slots, index, shift, a_table, a_bits, b_table, b_bits):
    """float64 (m, n) of A * B; slots, index and shift are those of A's elements, then of B's."""
    a, b = np.empty(m * k), np.empty(n * k)
    ends = m * k // 32
    _decode(R, w, slots[:ends], index[:ends], shift[:ends], a_table, a_bits, a)
    _decode(R, w, slots[ends:], index[ends:], shift[ends:], b_table, b_bits, b)
    bt = np.empty((k, n))
    for j in range(n):
        for i in range(k):
            bt[i, j] = b[j * k + i]
    d = np.zeros((m, n))
    for i in range(m):
        for s in range(k):
            x = a[i * k + s]
            for j in range(n):
                d[i, j] += x * bt[s, j]
    return d


@compiled()
def add_f32(R, w, d, row, column, c_slots, d_slots):
    """D = product + C for f32 C and D; every NaN is the canonical one."""
    view = R[w].view(np.float32)
    wide = R[w].view(np.uint32)
    out = np.empty((len(c_slots), 32), np.float32)
    for e in range(len(c_slots)):
        for l in range(32):
            out[e, l] = np.float32(d[row[l, e], column[l, e]] + view[c_slots[e], 2 * l])
    for e in range(len(d_slots)):
        for l in range(32):
            view[d_slots[e], 2 * l] = out[e, l]
            if out[e, l] != out[e, l]:
                wide[d_slots[e], 2 * l] = 0x7FFFFFFF
            wide[d_slots[e], 2 * l + 1] = 0


def read_fragment(R: np.ndarray, w: int, slots, kind: str) -> np.ndarray:
    """float64 or int64 (32, elements) of C: what the registers of a warp hold."""
    raw = R[w, slots]
    if kind == "f16":
        halves = np.stack([raw & np.uint64(0xFFFF), raw >> np.uint64(16)], 1).reshape(-1, 32).T
        return halves.astype(np.uint16).view(np.float16).astype(float)
    if kind == "f64":
        return raw.view(np.float64).T
    words = raw.astype(np.uint32).T
    return words.view(np.int32).astype(np.int64) if kind == "s32" else words.view(np.float32).astype(float)


def registers_of(values: np.ndarray, kind: str, saturate: bool = False) -> np.ndarray:
    """uint64 (registers, 32) that hold (32, elements) of a result, rounded once to `kind`."""
    if kind == "s32":
        limits = np.iinfo(np.int32)
        exact = np.asarray(values, np.int64)
        exact = np.clip(exact, limits.min, limits.max) if saturate else exact
        return (exact.T & 0xFFFF_FFFF).astype(np.uint64)
    if kind == "f64":
        return np.ascontiguousarray(values.T, np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        rounded = values.T.astype(np.float16 if kind == "f16" else np.float32)
    raw = np.ascontiguousarray(rounded).view(f"u{rounded.itemsize}").astype(np.uint64)
    raw[np.isnan(rounded)] = 0x7FFF if kind == "f16" else 0x7FFF_FFFF
    return raw[0::2] | raw[1::2] << np.uint64(16) if kind == "f16" else raw


@dataclass(frozen=True)
class Layout:
    """How the matrices of one product lie in registers."""

    a: Operand
    b: Operand
    row: np.ndarray  # int64 (32, elements) of C and D
    column: np.ndarray


class _Plan:
    """Slots and tables of one instruction of a program, found once."""

    def __init__(self, form: MmaForm, layout: Layout, args, unset):
        d, a, b, c = (np.array(slots_of(x), np.int64) for x in args[:4])
        oa, ob = layout.a, layout.b
        self.d, self.c = d, c
        self.suspect = [int(s) for s in (*a, *b, *c) if s in unset]
        self.row, self.column = layout.row, layout.column
        self.inputs = (
            *(form.m, form.n, form.k),
            np.concatenate([a[oa.register], b[ob.register]]),
            np.concatenate([oa.index, ob.index]),
            np.concatenate([oa.shift, ob.shift]),
            *(oa.table, oa.bits, ob.table, ob.bits),
        )


_RESULT_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}


_SHAPES = " ".join(sorted({shape for shapes, _ in _LEGAL.values() for shape in shapes}))


@unit(
    "mma .sync.aligned.shape.row.col.d.half.half.d d, a, b, c",
    "mma .sync.aligned.shape.row.col.f32.wide.wide.f32 d, a, b, c",
    "mma .sync.aligned.shape.row.col.d.eight.eight.d d, a, b, c",
    "mma .sync.aligned.shape.row.col{.rn}.f64.f64.f64.f64 d, a, b, c",
    "mma .sync.aligned.shape.row.col{.satfinite}.s32.int.int.s32 d, a, b, c",
    "mma .sync.aligned.shape.row.col.s32.b1.b1.s32.bits.popc d, a, b, c",
    shape=_SHAPES,
    d="f16 f32",
    half="f16",
    wide="bf16 tf32",
    eight="e4m3 e5m2",
    int="s8 u8 s4 u4",
    bits="xor and",
    writes=(0,),
    section="9.7.14.5",
)
def mma(instr):
    form = decode_form(instr)
    _check_counts(instr, form)
    operands = _operand("a", form.m, form.k, form.a), _operand("b", form.n, form.k, form.b)
    return multiplier(form, Layout(*operands, *mma_d(form.m, form.n)))


def multiplier(form: MmaForm, layout: Layout):
    """The handler of a product of one warp whose operands are D, A, B, C."""
    plans: list[_Plan] = []  # made at the first execution, when the operands have slots

    def run(cluster: Cluster, split: Split, args):
        require_aligned(cluster, split)
        if not plans:
            plans.append(_Plan(form, layout, args, cluster.launch.program.slots.unset))
        plan, R, w = plans[0], cluster.registers, split.warp
        if plan.suspect and cluster.bus.heard:
            require_set(cluster, split, plan.suspect)
        cluster.tensor_operations += 1
        if cluster.dry:
            return
        if form.bitwise:
            d = _bit_product(R, w, form, layout, args)
        else:
            d = product(R, w, *plan.inputs)
        if form.c == form.d == "f32":
            add_f32(R, w, d, plan.row, plan.column, plan.c, plan.d)
            return
        values = d[plan.row, plan.column] + read_fragment(R, w, plan.c, form.c)
        if form.c == "f32":  # and D is f16: wmma has this
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
        R[w, plan.d] = registers_of(values, form.d, form.saturate)

    return run


def _check_counts(instr, form: MmaForm) -> None:
    """Registers per operand (PTX ISA 9.7.14.5.1 - 9.7.14.5.13)."""
    needs = []
    for elements, kind in (
        (form.m * form.n, form.d),
        (form.m * form.k, form.a),
        (form.k * form.n, form.b),
        (form.m * form.n, form.c),
    ):
        bits = _RESULT_BITS.get(kind) or BITS[kind]
        needs.append(max(1, elements * bits // 32 // max(32, bits)))
    require_counts(instr, needs)


def require_counts(instr, needs: list[int]) -> None:
    """PtxError unless operands D, A, B, C have so many registers."""
    sizes = [len(o.items) if hasattr(o, "items") else 1 for o in instr.operands]
    if sizes != needs:
        raise refuse(instr, f"operands D, A, B, C take {needs} registers, not {sizes}")


def _bit_product(R, w: int, form: MmaForm, layout: Layout, args) -> np.ndarray:
    """int64 (m, n): set bits of row AND / XOR column."""
    matrices = []
    for slots, operand, size in ((args[1], layout.a, form.m), (args[2], layout.b, form.n)):
        registers = np.array(slots_of(slots))
        out = np.empty(size * form.k)
        _decode(R, w, registers[operand.register], operand.index, operand.shift, operand.table, 1, out)
        matrices.append(out.reshape(size, form.k))
    a, b = matrices
    both = a @ b.T
    ones = both if form.bitwise == "and" else a.sum(1)[:, None] + b.sum(1)[None, :] - 2 * both
    return ones.astype(np.int64)
