"""The forms of mma.sync (PTX ISA 9.7.14.5, 9.7.14.6): shapes, types, and how many registers operands take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxsim.isa.number_formats import DECODERS
from ptxsim.units.registry import refuse
from ptxsim.units.sparse_a import Sparse, decode_sparse

_BYTES = {kind: DECODERS[kind].bytes for kind in ("f16", "bf16", "tf32", "s8", "u8")}
_INT4, _INT8, _FP8 = ("s4", "u4"), ("s8", "u8"), ("e4m3", "e5m2")
_LOW = (*_FP8, "e3m2", "e2m3", "e2m1")  # with a .kind, each in a byte
PACKED = "e2m1x2"  # e2m1 of .kind::mxf4 and mxf4nvf4
BITS = {
    **{kind: 8 * size for kind, size in _BYTES.items()},
    **{"f64": 64, **dict.fromkeys(_LOW, 8), "s4": 4, "u4": 4, PACKED: 4, "b1": 1},
}
# types of A and B -> (shapes, types of C and D)
_LEGAL = {
    ("f16",): ({"m8n8k4", "m16n8k8", "m16n8k16"}, ("f16", "f32")),
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
_VECTORS = {"scale_vec::2X": 2, "scale_vec::4X": 4}
_RESULT_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}


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
    factors: int = 0  # scale factors of a row of A, or of a column of B, along K
    scale: str = ""  # their format
    products: int = 1  # of this size at once: four of m8n8k4 in f16
    sides: tuple[str, ...] = ("row", "col")  # of A and B

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
    mods = instr.mods
    d, a, b, c = (m for m in mods if m in BITS or m in ("f32", "s32"))
    m, n, k = sizes_of(instr)
    kind, sparse = next((x[6:] for x in mods if x.startswith("kind::")), ""), mods[0] in SPARSE
    if not kind:
        _require_legal(instr, f"m{m}n{n}k{k}", (d, a, b, c), sparse)
    elif c != d:
        raise refuse(instr, f"C and D have different types, .{c} and .{d}; ptxas refuses it, too")
    elif kind not in ("f8f6f4", "mxf8f6f4"):
        a = b = PACKED
    bitwise = next((x for x in ("xor", "and") if x in mods), "")
    made = decode_sparse(instr, k, BITS[a], instr.operands[5]) if sparse else None
    default = {"mxf8f6f4": 1, "mxf4": 2}.get(kind, 0)
    factors = next((count for word, count in _VECTORS.items() if word in mods), default)
    return MmaForm(
        *(m, n, k, a, b, c, d, "satfinite" in mods, bitwise, made, factors, mods[-1] if factors else ""),
        *(4 if (k, a) == (4, "f16") else 1, tuple(x for x in mods if x in ("row", "col"))),
    )


def _require_legal(instr, shape: str, types: tuple[str, ...], sparse: bool) -> None:
    d, a, b, c = types
    for family, (shapes, results) in (_SPARSE if sparse else _LEGAL).items():
        if a in family:
            good = b in family and shape in shapes and c in results and d in results
            if not good or c != d:
                what = "no such form, or not modelled (PTX ISA 9.7.14.5)"
                raise refuse(instr, f"mma.{shape}.{'.'.join(types)}: {what}")


def check_counts(instr, form: MmaForm) -> None:
    """Raises PtxError for a wrong number of registers in an operand (PTX ISA 9.7.14.5.1 - 9.7.14.5.13)."""
    needs = []
    for elements, kind in (
        (form.m * form.n, form.d),
        (form.m * form.stored, form.a),
        (form.k * form.n, form.b),
        (form.m * form.n, form.c),
    ):
        bits = _RESULT_BITS.get(kind) or BITS[kind]
        needs.append(max(1, form.products * elements * bits // 32 // max(32, bits)))
    require_counts(instr, needs + [1, 1] * bool(form.sparse) + [1, 2, 1, 2] * bool(form.factors))


def require_counts(instr, needs: list[int]) -> None:
    """Raises PtxError unless the operands have these numbers of registers."""
    sizes = [len(o.items) if hasattr(o, "items") else 1 for o in instr.operands]
    if sizes != needs:
        raise refuse(instr, f"the operands D, A, B, C, .. take {needs} registers, not {sizes}")


# ---- the syntax boxes ----

SETS: dict[str, Any] = {
    "shape": " ".join(
        sorted({shape for forms in (_LEGAL, _SPARSE) for s, _ in forms.values() for shape in s})
    ),
    "d": "f16 f32",
    "half": "f16",
    "wide": "bf16 tf32",
    "eight": "e4m3 e5m2",
    "low": " ".join(_LOW),
    "int": "s8 u8 s4 u4",
    "bits": "xor and",
    "side": "row col",
    "vec": " ".join(_VECTORS),
}
_TYPES = (
    ".d.half.half.d", ".f32.wide.wide.f32", ".d.eight.eight.d", "{.satfinite}.s32.int.int.s32",
)  # fmt: skip
_FP4 = ".f32.e2m1.e2m1.f32"
_KINDS = (  # K, for dense A; the rest; the operands of scale factors
    (32, "kind::f8f6f4.d.low.low.d", ""),
    (32, "kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.low.low.f32.ue8m0", ", sa, i, sb, j"),
    (64, f"kind::mxf4.block_scale{{.scale_vec::2X}}{_FP4}.ue8m0", ", sa, i, sb, j"),
    (64, f"kind::mxf4nvf4.block_scale.vec{_FP4}.ue8m0", ", sa, i, sb, j"),
    (64, f"kind::mxf4nvf4.block_scale.scale_vec::4X{_FP4}.ue4m3", ", sa, i, sb, j"),
)
_DENSE = "mma .sync.aligned.shape.row.col"
BOXES = (
    "mma .sync.aligned.m8n8k4.side.side.d.half.half.d d, a, b, c",  # first: the next takes any order
    *(f"{_DENSE}{types} d, a, b, c" for types in _TYPES),
    f"{_DENSE}{{.rn}}.f64.f64.f64.f64 d, a, b, c",
    f"{_DENSE}.s32.b1.b1.s32.bits.popc d, a, b, c",
    *(f"mma.{s} .sync.aligned.shape.row.col{types} d, a, b, c, e, f" for types in _TYPES for s in SPARSE),
    *(f"mma .sync.aligned.m16n8k{k}.row.col.{rest} d, a, b, c{more}" for k, rest, more in _KINDS),
    *(
        f"mma.{SPARSE[1]} .sync.aligned.m16n8k{2 * k}.row.col.{rest} d, a, b, c, e, f{more}"
        for k, rest, more in _KINDS
    ),
)
