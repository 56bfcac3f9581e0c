"""The instructions that are compared, and the PTX that runs one of them on many tiles at once.

In memory, one register of all threads is a row: `in` holds the operands' registers, `out` those of D.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor
from ptxsim.isa.layouts.fragments import mma_a, mma_b, mma_d, wgmma_a, wgmma_d
from research.chip.case import names, program, rows, vector

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "f32": 32, "f64": 64, "s32": 32}
BITS |= {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
FP8, INT8, INT4 = ("e4m3", "e5m2"), ("s8", "u8"), ("s4", "u4")
WIDE = 16  # columns of a wgmma


@dataclass(frozen=True)
class Form:
    """One instruction: D (m, n) = A (m, k) * B (k, n) + C."""

    unit: str  # "mma", or "wgmma" with A in shared memory, "wgmma.rs" with A in registers
    m: int
    n: int
    k: int
    a: str
    b: str
    d: str  # the type of C too
    last: str = ""  # modifiers after the types

    @property
    def name(self) -> str:
        if self.unit == "mma":
            return f"mma.m{self.m}n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}.{self.d}{self.last}"
        return f"{self.unit}.m{self.m}n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}"

    @property
    def family(self) -> str:
        kind = "fp8" if self.a in FP8 else self.a
        return f"{self.unit.partition('.')[0]} {kind}"

    @property
    def is_float(self) -> bool:
        return self.d != "s32"

    @property
    def threads(self) -> int:
        return 32 if self.unit == "mma" else 128


def forms() -> list[Form]:
    """Every dense form of mma.sync that ptxsim has, and every type of wgmma at one N."""
    found = [Form("mma", 16, 8, k, "f16", "f16", d) for k in (8, 16) for d in ("f16", "f32")]
    found += [Form("mma", 16, 8, k, "bf16", "bf16", "f32") for k in (8, 16)]
    found += [Form("mma", 16, 8, k, "tf32", "tf32", "f32") for k in (4, 8)]
    found += [Form("mma", m, 8, k, "f64", "f64", "f64") for m, k in ((8, 4), (16, 4), (16, 8), (16, 16))]
    found += [
        Form("mma", 16, 8, k, a, b, d) for k in (16, 32) for d in ("f16", "f32") for a in FP8 for b in FP8
    ]
    sizes = ((8, 16), (16, 16), (16, 32)), ((8, 32), (16, 32), (16, 64))
    for kinds, shapes in zip((INT8, INT4), sizes, strict=True):
        found += [Form("mma", m, 8, k, a, b, "s32") for m, k in shapes for a in kinds for b in kinds]
    bits = ((8, 128), (16, 128), (16, 256))
    found += [
        Form("mma", m, 8, k, "b1", "b1", "s32", f".{op}.popc") for m, k in bits for op in ("and", "xor")
    ]
    for unit in ("wgmma", "wgmma.rs"):
        kinds = [
            ("f16", "f16", "f16"),
            ("f16", "f16", "f32"),
            ("bf16", "bf16", "f32"),
            ("tf32", "tf32", "f32"),
        ]
        kinds += [(a, b, d) for d in ("f16", "f32") for a in FP8 for b in FP8]
        kinds += [(a, b, "s32") for a in INT8 for b in INT8]
        found += [Form(unit, 64, WIDE, 256 // BITS[a], a, b, d) for a, b, d in kinds]
    return found


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """(registers, tiles, threads) of codes (tiles, threads, elements), the
    first element in the lowest bits.
    """
    if bits == 64:
        return np.ascontiguousarray(codes.transpose(2, 0, 1).astype(np.uint64))
    per = 32 // bits
    parts = codes.astype(np.uint32).reshape(*codes.shape[:2], -1, per)
    shifts = np.arange(per, dtype=np.uint32) * np.uint32(bits)
    return np.ascontiguousarray(np.bitwise_or.reduce(parts << shifts, axis=3).transpose(2, 0, 1))


def unpack(registers: np.ndarray, bits: int) -> np.ndarray:
    """Codes (tiles, threads, elements) of registers (registers, tiles, threads)."""
    if bits >= 32:
        return registers.transpose(1, 2, 0)
    per = 32 // bits
    parts = registers.transpose(1, 2, 0)[..., None] >> (np.arange(per, dtype=np.uint32) * np.uint32(bits))
    return (parts & np.uint32((1 << bits) - 1)).reshape(*parts.shape[:2], -1)


def _core_matrices(codes: np.ndarray, bits: int) -> np.ndarray:
    """(registers, tiles, 128): words of a K-major operand without swizzle, thread by thread in shared memory.

    8 rows of 16 bytes are contiguous, the two halves of K next to each other.
    """
    tiles, rows_, k = codes.shape
    raw = codes.astype(f"u{bits // 8}").reshape(tiles, rows_ // 8, 8, 2, k // 2).transpose(0, 1, 3, 2, 4)
    words = np.ascontiguousarray(raw).reshape(tiles, -1).view(np.uint32)
    return words.reshape(tiles, 128, -1).transpose(2, 0, 1)


def registers(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    """The registers that hold A, B (tiles, n, k) and C: (registers, tiles, threads) each."""
    bits = BITS[form.a]
    if form.unit == "mma":
        row, depth = mma_a(form.m, form.k, bits)
        along, column = mma_b(form.k, form.n, bits)
        found = [pack(a[:, row, depth], bits), pack(b[:, column, along], bits)]
    else:
        row, depth = wgmma_a(form.k, bits) if form.unit == "wgmma.rs" else (None, None)
        first = _core_matrices(a, bits) if row is None else pack(a[:, row, depth], bits)
        found = [first, _core_matrices(b, bits)]
    row, column = mma_d(form.m, form.n) if form.unit == "mma" else wgmma_d(form.n)
    return [*found, pack(c[:, row, column], BITS[form.d])]


def result(form: Form, out: np.ndarray) -> np.ndarray:
    """Codes (tiles, m, n) of D from its registers."""
    codes = unpack(out, BITS[form.d])
    row, column = mma_d(form.m, form.n) if form.unit == "mma" else wgmma_d(form.n)
    found = np.empty((len(codes), form.m, form.n), codes.dtype)
    found[:, row, column] = codes
    return found


def ptx(form: Form, counts: list[int]) -> str:
    """A kernel `k(in, out)` in which each warp or warpgroup multiplies one tile; `counts`: registers of A, B,
    C.
    """
    wide = form.d == "f64"
    kind, prefix, to = ("b64", "e", "y") if wide else ("b32", "r", "o")
    inputs = names(prefix, sum(counts))
    a, b, c = (inputs[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(3))
    if form.unit == "mma":
        outputs = names(to, counts[2])
        body = rows(inputs, kind)
        words = f"{form.d}.{form.a}.{form.b}.{form.d}{form.last}"
        body += f"mma.sync.aligned.m{form.m}n{form.n}k{form.k}.row.col.{words} "
        body += f"{vector(outputs)}, {vector(a)}, {vector(b)}, {vector(c)};\n"
    else:
        outputs, body = c, rows(inputs, kind) + _wgmma(form, a, b, c)
    text = program(body + rows(outputs, kind, load=False), target="sm_90a")
    index = "mov.u32 %x30, %ctaid.x; mov.u32 %x31, %nctaid.x; mov.u32 %n, %ntid.x; mov.u32 %x29, %tid.x;\n"
    index += "mad.lo.u32 %t, %x30, %n, %x29; mul.lo.u32 %n, %n, %x31; "
    return text.replace("mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; ", index)


_B_AT = 2048  # byte offset of B, after A


def _wgmma(form: Form, a: list[str], b: list[str], d: list[str]) -> str:
    text = f"mad.lo.u32 %x0, %x29, {4 * len(b)}, %sm;\n"
    text += "".join(f"st.shared.b32 [%x0+{_B_AT + 4 * i}], {r};\n" for i, r in enumerate(b))
    matrix_a = vector(a)
    if form.unit == "wgmma":
        matrix_a = "%y2"
        text += f"shl.b32 %x1, %x29, 4; add.u32 %x1, %x1, %sm; st.shared.v4.b32 [%x1], {vector(a)};\n"
    layout = encode_matrix_descriptor(MatrixDescriptor(0, 128, 256, 0), "sm_90")
    for register, place in (("%y2", 0), ("%y3", _B_AT)):
        text += f"add.u32 %x2, %sm, {place}; and.b32 %x2, %x2, 0x3ffff; shr.u32 %x2, %x2, 4; "
        text += f"cvt.u64.u32 {register}, %x2; or.b64 {register}, {register}, {layout};\n"
    text += "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;\n"
    tail = "%p" + ", 1, 1" * form.is_float
    if form.a in ("f16", "bf16"):
        tail += ", 0" * (1 if form.unit == "wgmma.rs" else 2)
    text += f"wgmma.mma_async.sync.aligned.m64n{form.n}k{form.k}.{form.d}.{form.a}.{form.b} "
    text += f"{vector(d)}, {matrix_a}, %y3, {tail};\n"
    return text + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
