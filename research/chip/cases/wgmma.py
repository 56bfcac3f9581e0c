"""wgmma: every type, N, layout, sign, transposition, with A in shared memory and in registers."""

from __future__ import annotations

import numpy as np

from ptxsim.isa.layouts.descriptors import MatrixDescriptor, encode_matrix_descriptor, operand_addresses
from ptxsim.isa.layouts.fragments import wgmma_a, wgmma_d
from research.chip.case import Case, names, program, rows, vector
from research.chip.cases.matrix import FLOAT, ROUNDING, bits_of, pack, random_matrix

A_AT, B_AT, SHARED = 0, 16384, 49152  # bytes from the start of dynamic shared memory
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
FP8_ERROR = 2.0**-8  # absolute, for sums around 10: Hopper aligns FP8 products to about 13 bits before adding
TYPES = [
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    *((d, a, b) for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
]
HALF = ("f32", "f16", "f16")
# fills shared memory with the first SHARED bytes of %in, and moves %in past them
FILL = f"""mul.wide.u32 %y1, %t, 16; add.u64 %y0, %in, %y1; shl.b32 %x0, %t, 4; add.u32 %x1, %sm, %x0; mov.u32 %x2, 0;
FILL: ld.global.v4.b32 {{%x4, %x5, %x6, %x7}}, [%y0]; st.shared.v4.b32 [%x1], {{%x4, %x5, %x6, %x7}};
add.u64 %y0, %y0, 2048; add.u32 %x1, %x1, 2048; add.u32 %x2, %x2, 2048;
setp.lt.u32 %s0, %x2, {SHARED}; @%s0 bra FILL; add.u64 %in, %in, {SHARED};
fence.proxy.async.shared::cta; bar.sync 0;
"""


def cases() -> list[Case]:
    found = [wgmma(f"wgmma.types.{place(r)}", 64, k, 32, r=r) for k in TYPES for r in (False, True)]
    found += [wgmma("wgmma.n", n, ("f32", "bf16", "bf16"), 32) for n in range(8, 257, 8)]
    found += [wgmma("wgmma.n", n, ("s32", "s8", "s8"), 32) for n in (8, 24, 32, 48, 112, 240, 256)]
    found += [
        wgmma(f"wgmma.layout.{s}.{int(x)}{int(y)}", 128, HALF, s, (x, y))
        for s in (0, 32, 64, 128)
        for x in (False, True)
        for y in (False, True)
    ]
    found += [wgmma("wgmma.layout.rs", 32, HALF, 64, (False, True), r=True)]
    found += [wgmma(f"wgmma.signs.{i}", 16, HALF, tail=f"%p, {s}, 0, 0") for i, s in enumerate(SIGNS)]
    found += [
        wgmma(f"wgmma.scale.{d[1:]}", 48, k, tail=d + tail(k)[2:], c=True)
        for k in (HALF, ("f16", "f16", "f16"), ("s32", "s8", "s8"))
        for d in ("%p", "%q")
    ]
    found += [wgmma("wgmma.random", 64, k, 32, values="random") for k in TYPES if k[0] != "s32"]
    found += [wgmma("wgmma.special", 16, k, 32, values="special") for k in TYPES if k[0] != "s32"]
    found += [single_bits(n, s, r) for n, s, r in ((8, 0, False), (24, 32, True), (256, 128, False))]
    found += [saturated(""), saturated(".satfinite"), groups()]
    return found


SIGNS = ("-1, 1", "1, -1", "-1, -1")


def place(registers: bool) -> str:
    return "rs" if registers else "ss"


def tail(kinds, registers: bool = False, mn=(False, False)) -> str:
    """The operands after the matrices."""
    if kinds[0] == "s32":
        return "%p"
    flags = mn[1:] if registers else mn
    trans = "".join(f", {int(f)}" for f in flags) if kinds[1] in ("f16", "bf16") else ""
    return "%p, 1, 1" + trans


def layout(rows_: int, depth: int, size: int, mn: bool, swizzle: int) -> MatrixDescriptor:
    """A dense canonical layout, from address 0."""
    span = swizzle or 16
    if swizzle == 0:
        across = (rows_ if mn else depth) * size // 16 * 128
        return MatrixDescriptor(0, *((across, 128) if mn else (128, across)), 0)
    return MatrixDescriptor(0, depth * span if mn else 16, 8 * span, swizzle)


def place_matrix(matrix, kind: str, desc: MatrixDescriptor, mn: bool, memory: np.ndarray) -> None:
    size = bits_of(kind) // 8
    places = operand_addresses(desc, *matrix.shape, size, mn)
    lanes = pack(matrix.reshape(-1, 4 // size if size < 4 else 1), kind)  # registers of consecutive elements
    raw = np.ascontiguousarray(lanes.T).view(f"u{size}").reshape(matrix.shape)
    memory.view(f"u{size}")[places // size] = raw


def descriptor(register: str, desc: MatrixDescriptor, offset: int) -> str:
    """PTX that makes the descriptor of a matrix at %sm + offset."""
    return (
        f"add.u32 %x12, %sm, {offset}; and.b32 %x12, %x12, 0x3ffff; shr.u32 %x12, %x12, 4; "
        f"cvt.u64.u32 {register}, %x12; or.b64 {register}, {register}, "
        f"{encode_matrix_descriptor(desc, 'sm_90')};\n"
    )


def operands(n: int, kinds, values: str):
    k = DEPTH[kinds[1]]
    rng = np.random.default_rng(n)
    if values == "random":
        return rng.standard_normal((64, k)), rng.standard_normal((n, k))
    a, b = random_matrix(rng, (64, k), kinds[1]), random_matrix(rng, (n, k), kinds[2])
    if values == "special":
        a[0, 0], a[1, 1], a[2, :2], a[3, 0] = np.inf, np.nan, (np.inf, -np.inf), 2.0**-130
        b[1, :] = 448.0
        if kinds[1] == "e4m3":
            a[np.isinf(a)] = np.nan
    return a, b


def wgmma(
    name, n, kinds, swizzle=128, mn=(False, False), r=False, tail=None, c=False, values="integers"
) -> Case:
    """One wgmma; C is zero, or integers if `c`."""
    last = tail if tail is not None else globals()["tail"](kinds, r, mn)
    d, ta, tb = kinds
    k, size = DEPTH[ta], bits_of(ta) // 8
    a, b = operands(n, kinds, values)
    memory = np.zeros(SHARED, np.uint8)
    a_desc, b_desc = layout(64, k, size, mn[0], swizzle), layout(n, k, size, mn[1], swizzle)
    place_matrix(b, tb, b_desc, mn[1], memory[B_AT:])
    count = n // (4 if d == "f16" else 2)
    body, ptx_a = FILL, "%y2"
    if r:
        memory[:2048].view(np.uint32).reshape(128, 4)[:] = pack(a[wgmma_a(k, 8 * size)], ta).T
        ptx_a = "{%x8, %x9, %x10, %x11}"
        body += f"shl.b32 %x12, %t, 4; add.u32 %x12, %sm, %x12; ld.shared.v4.b32 {ptx_a}, [%x12];\n"
    else:
        place_matrix(a, ta, a_desc, mn[0], memory)
        body += descriptor("%y2", a_desc, A_AT)
    outputs = names("o", count)
    body += descriptor("%y3", b_desc, B_AT) + rows(outputs) + "wgmma.fence.sync.aligned;\n"
    body += f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{'.'.join(kinds)} {vector(outputs)}, {ptx_a}, %y3, {last};\n"
    body += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n" + rows(outputs, load=False)
    start = np.random.default_rng(1).integers(-50, 50, (64, n)) if c else np.zeros((64, n), int)
    data = np.concatenate([memory.view(np.uint32), pack(start[wgmma_d(n)], d).ravel()])
    arrays = {"in": data, "out": np.zeros((count, 128), np.uint32)}
    compare = (FLOAT[d], *ROUNDING[d]) if values != "integers" else ("bits", 0.0, 0.0)
    if values == "random" and ta in ("e4m3", "e5m2"):
        compare = (FLOAT[d], 2.0**-9, FP8_ERROR)
    full = f"{name}.n{n}.{'.'.join(kinds)}"
    return Case(full, program(body), arrays, ("out",), 128, 1, 1, SHARED, "sm_90a", {}, *compare)


def single_bits(n: int, swizzle: int, r: bool) -> Case:
    """256 bits in place of 32 bytes."""
    case = wgmma(f"wgmma.bits.{place(r)}.{swizzle}", n, ("s32", "u8", "u8"), swizzle, r=r, c=True)
    case.ptx = case.ptx.replace("k32.s32.u8.u8 ", "k256.s32.b1.b1.and.popc ")
    case.name = case.name.replace("u8.u8", "b1.b1")
    return case


def saturated(word: str) -> Case:
    """Integer accumulators that overflow."""
    case = wgmma(f"wgmma.overflow{word}", 16, ("s32", "s8", "s8"), 32, c=True)
    case.ptx = case.ptx.replace(".s32.s8.s8 ", f".s32.s8.s8{word} ")
    start = np.where(np.arange(8)[:, None] % 2, 2**31 - 100, -(2**31) + 100) + np.zeros((8, 128), int)
    case.arrays["in"][-8 * 128 :] = start.astype(np.int64).astype(np.uint32).ravel()
    return case


def groups() -> Case:
    """A chain of four on one accumulator and two on another, in groups that are waited for in turn."""
    case = wgmma("wgmma.groups", 16, HALF, 32, c=True)
    one = next(line for line in case.ptx.splitlines() if line.startswith("wgmma.mma_async"))
    minus = one.replace("%p, 1, 1", "%p, -1, 1")  # ptxas 13 merges two that are equal and adjacent
    other = one.replace(vector(names("o", 8)), vector(names("r", 8)))
    zero = "".join(f"mov.b32 {r}, 0;" for r in names("r", 8))
    commit, wait = "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned {};"
    steps = [
        zero,
        "wgmma.fence.sync.aligned;",
        one,
        minus,
        commit,
        other,
        commit,
        wait.format(1),
        one,
        commit,
        wait.format(1),
        other,
        one,
        commit,
        wait.format(0),
    ]
    text = (
        "\n".join(steps)
        + "\n"
        + "".join(f"add.f32 {o}, {o}, {r};" for o, r in zip(names("o", 8), names("r", 8), strict=True))
    )
    case.ptx = case.ptx.replace(one, text)
    return case
