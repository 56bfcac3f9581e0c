"""tcgen05.mma (PTX ISA 9.7.16.9): D[tensor memory] = A * B (+ D), operands found through the descriptors given.

Products are computed in float32 by numpy's BLAS on the values that the descriptors really point at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.engine import Work
from ptxsim.formats import DECODERS
from ptxsim.isa.units import check_mods, refuse, unit
from ptxsim.machine_layout import SHARED_START
from ptxsim.operand_layout import mma_d_rows, operand_chunks, smem_descriptor
from ptxsim.tmem import COLUMNS, split_address

_KINDS = {  # kind -> (bytes of K per instruction, {format number: decoder of A and B})
    "kind::f16": (32, {0: "f16", 1: "bf16"}),
    "kind::tf32": (32, {2: "tf32"}),
    "kind::f8f6f4": (32, {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}),
    "kind::i8": (32, {0: "u8", 1: "s8"}),
}
_D_FORMATS = {"kind::f16": {0: "f16", 1: "f32"}, "kind::tf32": {1: "f32"}, "kind::f8f6f4": {0: "f16", 1: "f32"},
              "kind::i8": {2: "s32"}}  # fmt: skip
_COLLECTORS = {f"collector::a::{use}" for use in ("fill", "use", "lastuse", "discard")}


@dataclass(frozen=True)
class Shape:
    """What the instruction descriptor says (PTX ISA 9.7.16.4.2)."""

    m: int
    n: int
    a: str  # format of A
    b: str
    d: str
    a_mn: bool  # A is MN-major ("transposed")
    b_mn: bool
    negate_a: bool
    negate_b: bool


def decode_shape(kind: str, bits: int, group: int) -> Shape:
    """Decodes an instruction descriptor; ValueError, naming the field, if it is not legal for this kind."""
    formats, d_formats = _KINDS[kind][1], _D_FORMATS[kind]
    a, b, d = (bits >> 7) & 7, (bits >> 10) & 7, (bits >> 4) & 3
    m, n = ((bits >> 24) & 31) * 16, ((bits >> 17) & 63) * 8
    if a not in formats or b not in formats or d not in d_formats:
        raise ValueError(f"instruction descriptor {bits:#x}: formats A={a} B={b} D={d} are not legal for .{kind}")
    if (bits >> 2) & 1:
        raise ValueError("sparse MMA is not modelled")
    legal_m = (64, 128) if group == 1 else (128, 256)
    step = 16 if m in (128, 256) else 8
    step = 32 if group == 2 and m == 256 else step
    step = 16 if group == 2 and m == 256 else step
    if m not in legal_m or not n or n % step or n > 256:
        raise ValueError(f"instruction descriptor {bits:#x}: M={m} N={n} is not a legal shape for .cta_group::{group}")
    flag = [bool((bits >> i) & 1) for i in range(32)]
    return Shape(m, n, formats[a], formats[b], d_formats[d], flag[15], flag[16], flag[13], flag[14])


@dataclass
class Mma:
    """One issued instruction, as the tensor core will see it."""

    shape: Shape
    group: int
    cta: int  # rank of the CTA that issued it
    a: object  # descriptor (int), or ("tmem", column) of A in tensor memory
    b: int
    lane: int
    column: int
    accumulate: bool
    disabled: tuple  # masks of output lanes that are not written
    kbytes: int
    split: object
    row: int

    def key(self) -> tuple:
        return (self.shape, self.group, self.cta, self.lane, self.column, self.disabled)


@unit("tcgen05.mma", section="9.7.16.9.1")
def mma(instr):
    kind = next((m for m in instr.mods if m.startswith("kind::")), "")
    if kind not in _KINDS:
        raise refuse(instr, f"tcgen05.mma {'.' + kind if kind else 'without a kind'} is not modelled")
    check_mods(instr, {"mma", kind, "cta_group::1", "cta_group::2", *_COLLECTORS})
    group = 2 if "cta_group::2" in instr.mods else 1
    kbytes = _KINDS[kind][0]

    def run(cluster, split, args):
        d, a, b, descriptor, *rest = args
        lane, column = split_address(cluster.address(split, d))
        masks = next((r for r in rest if isinstance(r, tuple)), ())
        enable = next(r for r in rest if hasattr(r, "code"))
        try:
            shape = decode_shape(kind, cluster.scalar(split, descriptor) & 0xFFFF_FFFF, group)
        except ValueError as error:
            severity = "incomplete" if "not modelled" in str(error) else "error"
            cluster.reporter.add("descriptor", severity, str(error), "", split)
            return
        _check_issue(cluster, split, group)
        for lane_of in split.lanes[:32]:
            one = 1 << int(lane_of)
            op = Mma(
                shape, group, split.cta,
                ("tmem", cluster.address(split, a) & 0xFFFF_FFFF) if hasattr(a, "slot") else cluster.scalar(split, a),
                cluster.scalar(split, b), lane, column, bool(cluster.predicate(split, enable.code) & one),
                tuple(cluster.scalar(split, s) & 0xFFFF_FFFF for s in masks), kbytes, split, split.row,
            )  # fmt: skip
            _issue(cluster, split, op)

    return run


def _check_issue(cluster, split, group: int) -> None:
    if len(split.lanes) > 1:
        cluster.reporter.add("illegal", "error",
                             f"tcgen05.mma issued by {len(split.lanes)} lanes: the product is computed {len(split.lanes)} times",
                             "one elected thread issues it: with Tx.thread(parent=\"warp\")[Tx.ptx.elect_sync()]",
                             split, key="mma-lanes")  # fmt: skip
    if group == 2 and cluster.ctas < 2:
        cluster.reporter.add("cluster", "error", "cta_group::2 in a kernel without CTA clusters", "", split)


def _issue(cluster, split, op: Mma) -> None:
    if cluster.checks:
        cluster.checks.mma_issue(cluster, split, op)
    cluster.tensor_operations += 1
    work = Work(("tensor", split.thread), lambda: execute(cluster, [op]), "tcgen05.mma", split, _batch(cluster))
    work.op = op
    cluster.engine.submit(work)


def _batch(cluster):
    def run(batch):
        ops = [work.op for work in batch]
        start = 0
        for i in range(1, len(ops) + 1):
            if i == len(ops) or ops[i].key() != ops[start].key() or not ops[i].accumulate:
                execute(cluster, ops[start:i])
                start = i

    return run


def pair(op: Mma, cluster) -> list[int]:
    """Ranks of the CTAs that take part: the CTA, or the pair of ranks that differ in the last bit."""
    return [op.cta] if op.group == 1 else [r for r in (op.cta & ~1, op.cta | 1) if r < cluster.ctas]


def execute(cluster, ops: list[Mma]) -> None:
    """Runs instructions that accumulate into the same D as one product with a longer K."""
    first, shape = ops[0], ops[0].shape
    ranks = pair(first, cluster)
    if cluster.checks:
        for op in ops:
            cluster.checks.mma_execute(cluster, op, ranks)
    b = np.concatenate([_operand(cluster, ops, rank, "b") for rank in ranks])
    for i, rank in enumerate(ranks):
        a = _operand(cluster, ops, rank, "a")
        if shape.d == "s32":
            product = (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.int64).astype(np.int32)
        else:
            product = a @ b.T
        _write_d(cluster, first, rank, i, len(ranks), product)


def _operand(cluster, ops: list[Mma], rank: int, which: str) -> np.ndarray:
    """float32 (rows, K) of A or B as CTA `rank` holds it."""
    shape = ops[0].shape
    rows = (shape.m if which == "a" else shape.n) // ops[0].group
    parts = []
    for op in ops:
        source = op.a if which == "a" else op.b
        if isinstance(source, tuple):
            parts.append(_from_tmem(cluster, rank, source[1], rows, op))
        else:
            mn = shape.a_mn if which == "a" else shape.b_mn
            parts.append(_from_shared(cluster, rank, source, rows, mn, shape.a if which == "a" else shape.b, op))
    values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    negate = shape.negate_a if which == "a" else shape.negate_b
    return -values if negate else values


def _from_shared(cluster, rank: int, descriptor: int, rows: int, mn: bool, fmt: str, op: Mma) -> np.ndarray:
    decoder = DECODERS[fmt]
    width = decoder.bytes
    try:
        fields = smem_descriptor(descriptor)
        chunks = operand_chunks(fields, rows, op.kbytes // width, width, mn)
    except ValueError as error:
        op.split.row = op.row
        cluster.reporter.add("descriptor", "error", str(error), "", op.split)
        return np.zeros((rows, op.kbytes // width), np.float32)
    shared = cluster.shared[rank].view(np.complex128)
    if chunks.max() >= len(shared) or chunks.min() * 16 < SHARED_START:
        op.split.row = op.row
        cluster.reporter.add("out-of-bounds", "error",
                             f"the shared memory descriptor {descriptor:#x} reaches byte {int(chunks.max()) * 16 + 15} "
                             f"of a CTA that has {cluster.launch.shared_end}", "", op.split)  # fmt: skip
        return np.zeros((rows, op.kbytes // width), np.float32)
    raw = shared[chunks]
    values = decoder.decode(raw.view(decoder.raw))
    return np.ascontiguousarray(values.reshape(-1, rows).T) if mn else values.reshape(rows, -1)


def _from_tmem(cluster, rank: int, address: int, rows: int, op: Mma) -> np.ndarray:
    decoder = DECODERS[op.shape.a]
    lane, column = split_address(address)
    columns = op.kbytes // 4
    cells = np.ascontiguousarray(cluster.tmem[rank].cells[lane : lane + rows, column : column + columns])
    return decoder.decode(cells.view(decoder.raw)).reshape(rows, -1)


def _write_d(cluster, op: Mma, rank: int, index: int, count: int, product: np.ndarray) -> None:
    """Adds to or overwrites D in the tensor memory of one CTA."""
    shape, cells = op.shape, cluster.tmem[rank].cells
    for lanes, rows, columns, offset in mma_d_rows(shape.m, shape.n, op.group):
        start = op.column + offset
        stop = start + columns.stop - columns.start
        if stop > COLUMNS or not cluster.tmem[rank].allocated(start, stop - start):
            op.split.row = op.row
            cluster.reporter.add("tmem-alloc", "error",
                                 f"tcgen05.mma writes TMEM columns {start}..{stop - 1} of CTA {rank}, which are not (all) allocated",
                                 "allocate before the first MMA, free after the last read", op.split, key="mma-d")  # fmt: skip
            if stop > COLUMNS:
                return
        block = slice(op.lane + lanes.start, op.lane + lanes.stop)
        keep = _enabled(op, index, count, block)
        _store(cells[block, start:stop], product[rows, columns], op, keep)


def _enabled(op: Mma, index: int, count: int, block: slice) -> np.ndarray | None:
    if not any(op.disabled):
        return None
    masks = op.disabled[index * 4 : index * 4 + 4] if len(op.disabled) == 8 else op.disabled
    bits = np.array([(int(m) >> i) & 1 for m in masks for i in range(32)], bool)
    return ~bits[block]


def _store(target: np.ndarray, product: np.ndarray, op: Mma, keep: np.ndarray | None) -> None:
    if keep is not None:
        for row in np.flatnonzero(keep):
            _store(target[row : row + 1], product[row : row + 1], op, None)
        return
    if op.shape.d == "f32":
        view = target.view(np.float32)
        if op.accumulate:
            np.add(view, product, out=view)
        else:
            view[:] = product
    elif op.shape.d == "s32":
        view = target.view(np.int32)
        view[:] = view + product if op.accumulate else product
    else:
        old = target.astype(np.uint16).view(np.float16).astype(np.float32) if op.accumulate else 0
        target[:] = (product + old).astype(np.float16).view(np.uint16)
