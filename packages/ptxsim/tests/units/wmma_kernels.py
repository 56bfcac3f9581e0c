"""PTX kernels of one warp around wmma: D = A B + C of any shape, type, layout, stride and state space."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

WIDE = ("m16n16k16", "m8n32k16", "m32n8k16")
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
SMALL = {"s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
BITS = {**{kind: 8 * np.dtype(t).itemsize for kind, t in NUMPY.items()}, "s4": 4, "u4": 4, "b1": 1}
# A and B, D, C; shapes; whether .satfinite exists
_FORMS = [
    *((("f16", d, c), WIDE) for d in ("f16", "f32") for c in ("f16", "f32")),
    (("bf16", "f32", "f32"), WIDE),
    *(((kind, "s32", "s32"), WIDE) for kind in ("s8", "u8")),
    (("tf32", "f32", "f32"), ("m16n16k8",)),
    (("f64", "f64", "f64"), ("m8n8k4",)),
    *(((kind, "s32", "s32"), ("m8n8k32",)) for kind in ("s4", "u4")),
    (("b1", "s32", "s32"), ("m8n8k128",)),
]
SPACES = (".global", "", ".shared", ".shared::cta")
FORMS = [(shape, *kinds) for kinds, shapes in _FORMS for shape in shapes]


def sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = shape[1:].replace("n", " ").replace("k", " ").split()
    return int(m), int(n), int(k)


def counts(shape: str, kind: str, d: str, c: str) -> dict[str, int]:
    """Registers of each fragment, by the tables of PTX ISA 9.7.14.4.1."""
    m, n, k = sizes(shape)
    width = 64 if kind == "f64" else 32
    of = {"a": (m * k, kind), "b": (k * n, kind), "c": (m * n, c), "d": (m * n, d)}
    found = {which: size // 32 * BITS[one] // width for which, (size, one) in of.items()}
    return found | ({"a": 8, "b": 8} if kind == "f16" else {})


def vector(prefix: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


@dataclass
class Matrix:
    """One matrix in memory: lines of `stride` elements, from byte `start` of an array on."""

    values: np.ndarray
    kind: str
    side: str = "row"
    space: str = ".global"
    start: int = 0
    stride: int = 0  # elements; 0: the instruction has no stride operand
    array: np.ndarray = field(init=False)  # uint8, filled with 0x5A around the matrix

    def __post_init__(self):
        lines, length = (self.values if self.side == "row" else self.values.T).shape
        self.step = (self.stride or length) * BITS[self.kind] // 8
        size = self.start + (lines - 1) * self.step + length * BITS[self.kind] // 8
        self.array = np.full(-(-size // 16) * 16, 0x5A, np.uint8)
        self._lines()[:] = packed(self.values if self.side == "row" else self.values.T, self.kind)

    def _lines(self) -> np.ndarray:
        lines, length = (self.values if self.side == "row" else self.values.T).shape
        width = length * BITS[self.kind] // 8
        view = self.array[self.start :]
        return np.lib.stride_tricks.as_strided(view, (lines, width), (self.step, 1))

    @property
    def operands(self) -> str:
        return f", {self.stride}" if self.stride else ""


def packed(lines: np.ndarray, kind: str) -> np.ndarray:
    """uint8 (lines, bytes)."""
    if kind not in SMALL:
        return np.ascontiguousarray(lines.astype(NUMPY[kind])).view(np.uint8)
    bits = (lines[..., None].astype(np.int64) >> np.arange(BITS[kind])) & 1
    return np.packbits(bits.reshape(len(lines), -1).astype(np.uint8), axis=1, bitorder="little")


def random_matrix(rng, shape, kind: str) -> np.ndarray:
    """Values that the type holds, and whose products add up exactly."""
    if kind in SMALL:
        return rng.integers(*SMALL[kind], shape)
    if kind in ("s8", "u8"):
        return rng.integers(np.iinfo(kind.replace("s", "int").replace("u", "uint")).min, 127, shape)
    return rng.integers(-4, 5, shape)


def types_of(kind: str, d: str, c: str) -> str:
    """The types in the name of a wmma.mma."""
    return f"{d}.{c}" if kind == "f16" else f"{d}.{kind}.{kind}.{c}"


_HEAD = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k({parameters}) {{
.reg .b32 %t, %i, %w, %x, %sa, %sb, %sc, %sd; .reg .b64 %ga, %gb, %gc, %gd, %pa, %pb, %pc, %pd, %y, %z;
.reg .b{width} %a<8>, %b<8>; .reg .b{width} %c<8>, %d<8>; .reg .pred %p;
{shared}
mov.u32 %t, %tid.x;
"""
_labels = itertools.count()


def _copy(which: str, size: int, out: bool) -> str:
    """A loop that copies an array between global and shared memory by words."""
    label = f"L{next(_labels)}"
    place, back = f"add.u32 %x, %s{which}, %x;", "ld.shared.u32 %w, [%x]; st.global.u32 [%y], %w;"
    move = back if out else "ld.global.u32 %w, [%y]; st.shared.u32 [%x], %w;"
    return f"""mov.u32 %i, %t;
{label}: shl.b32 %x, %i, 2; cvt.u64.u32 %y, %x; add.u64 %y, %g{which}, %y; {place}
{move} add.u32 %i, %i, 32; setp.lt.u32 %p, %i, {size // 4}; @%p bra {label};
"""


def kernel(shape: str, matrices: dict[str, Matrix], product: str, after: str = "") -> str:
    """PTX of kernel `k`, whose parameters are the arrays of matrices a, b, c, d.

    `product` goes between the loads of fragments %a, %b, %c and the store of %d. Matrices in shared memory
    are copied there and, of D, back.
    """
    width = 64 if matrices["a"].kind == "f64" else 32
    shared = [f".shared .align 256 .b8 s{w}[{len(m.array)}];" for w, m in matrices.items()]
    text = _HEAD.format(
        parameters=", ".join(f".param .u64 p{w}" for w in matrices), width=width, shared="\n".join(shared)
    )
    number = counts(shape, matrices["a"].kind, matrices["d"].kind, matrices["c"].kind)
    for which, matrix in matrices.items():
        text += f"ld.param.u64 %g{which}, [p{which}]; cvta.to.global.u64 %g{which}, %g{which};\n"
        text += f"mov.u32 %s{which}, s{which}; mov.u64 %p{which}, %g{which};\n"
        if "shared" in matrix.space:
            text += _copy(which, len(matrix.array), out=False) + f"cvt.u64.u32 %p{which}, %s{which};\n"
        elif matrix.space == "":
            text += f"cvta.global.u64 %p{which}, %g{which};\n"
    text += "bar.sync 0;\n"
    for which in "abc":
        one = matrices[which]
        text += f"wmma.load.{which}.sync.aligned.{one.side}.{shape}{one.space}.{one.kind} "
        text += f"{vector(which, number[which])}, [%p{which}+{one.start}]{one.operands};\n"
    one = matrices["d"]
    text += f"{product}\nwmma.store.d.sync.aligned.{one.side}.{shape}{one.space}.{one.kind} "
    text += f"[%pd+{one.start}], {vector('d', number['d'])}{one.operands};\n"
    if "shared" in one.space:
        text += "bar.sync 0;\n" + _copy("d", len(one.array), out=True)
    return f"{text}{after}\nret;\n}}\n"


def mma(shape: str, matrices: dict[str, Matrix], more: str = "") -> str:
    """The wmma.mma of these matrices; `more`: modifiers at its end."""
    kind, d, c = (matrices[w].kind for w in "adc")
    number = counts(shape, kind, d, c)
    name = "wmma.mma.and.popc" if kind == "b1" else "wmma.mma"
    operands = ", ".join(vector(w, number[w]) for w in "dabc")
    sides = f"{matrices['a'].side}.{matrices['b'].side}"
    return f"{name}.sync.aligned.{sides}.{shape}.{types_of(kind, d, c)}{more} {operands};"


def random_matrices(rng, shape: str, kind: str, d: str, c: str, exact: bool = True) -> dict[str, Matrix]:
    """A, B, C and D (zeros) at random places, with random strides and layouts, in random spaces."""
    m, n, k = sizes(shape)
    found = {}
    for which, one, size in (("a", kind, (m, k)), ("b", kind, (k, n)), ("c", c, (m, n)), ("d", d, (m, n))):
        fixed = {"a": "row", "b": "col"}.get(which) if one in SMALL else None
        side = fixed or str(rng.choice(["row", "col"]))
        length, unit = size[side == "row"], 16 * 8 // BITS[one]  # elements of a line, and of 16 bytes
        stride = -(-length // unit) * unit + unit * int(rng.integers(4))
        if rng.integers(4) == 0 and length % unit == 0:
            stride = 0
        values = random_matrix(rng, size, one) if exact else rng.standard_normal(size)
        values = np.zeros(size) if which == "d" else values
        start, space = 32 * int(rng.integers(3)), str(rng.choice(SPACES))
        found[which] = Matrix(values, one, side, space, start, stride)
    return found
