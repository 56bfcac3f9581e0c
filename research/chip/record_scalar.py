"""Records a GPU's results of scalar instructions: the reference of test_scalar_hardware.py.

    python -m research.chip.record_scalar make DIR sm_90a    needs ptxas; writes kernels.cubin, sources.npz
    python record_scalar.py run DIR                   needs numpy and a GPU driver; writes DIR/results.npz
    python -m research.chip.record_scalar keep DIR FILE.npz  digests of results, hash of sources

Each form is a kernel that applies it to one row of 64-bit patterns per thread. The patterns come from a seed,
so the file holds digests of the results, and a hash of the patterns. cvt.rna.tf32 is left out: the chip turns
a NaN whose payload is in the low bits into infinity.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

ROWS = 48
FORMS = """
add.sat.s32 sub.sat.s32 add.s16x2 mul.hi.s16 mul.hi.s64 mul.wide.s16 mad.hi.sat.s32 mad.wide.u16
mul24.hi.s32 mul24.lo.u32 mad24.hi.sat.s32 sad.s32 sad.u64 div.u16 div.s32 div.u64 div.s64 rem.s16 rem.u32
rem.s64 abs.s32 neg.s64 min.relu.s16x2 max.u16x2 popc.b64 clz.b64 bfind.s32 bfind.shiftamt.s64 bfe.s32
bfe.u64 bfi.b32 bfi.b64 brev.b64 szext.clamp.s32 szext.wrap.s32 bmsk.clamp.b32 bmsk.wrap.b32 fns.b32
dp4a.s32.u32 dp2a.lo.s32.s32 dp2a.hi.u32.s32 prmt.b32 prmt.b32.f4e prmt.b32.b4e prmt.b32.rc8 prmt.b32.ecl
prmt.b32.ecr prmt.b32.rc16 shf.l.clamp.b32 shf.r.clamp.b32 shf.l.wrap.b32 shf.r.wrap.b32 shl.b16 shr.s16
shr.s64 cnot.b16 add.cc.u32 addc.cc.u64 sub.cc.u32 subc.cc.s64 mad.lo.cc.u32 madc.hi.cc.s32 add.f32
add.ftz.f32 add.rz.f32 add.rm.ftz.sat.f32 mul.rp.f32 mul.ftz.f32 mul.sat.f32 fma.rn.f32 fma.rn.ftz.f32
fma.rz.f32 fma.rm.sat.f32 div.rn.f32 div.rn.ftz.f32 div.rp.f32 rcp.rz.f32 sqrt.rm.f32 add.rp.f64 mul.rm.f64
fma.rz.f64 div.rz.f64 sqrt.rp.f64 min.f32 max.ftz.NaN.f32 min.NaN.xorsign.abs.f32 max.xorsign.abs.f32
min.f64 max.f64 copysign.f32 testp.normal.f32 testp.subnormal.f64 testp.number.f32 add.f16 sub.sat.f16
mul.f16x2 mul.ftz.f16 fma.rn.f16 fma.rn.relu.f16 fma.rn.ftz.sat.f16 add.bf16 mul.bf16x2 fma.rn.bf16
fma.rn.relu.bf16x2 min.f16x2 max.NaN.f16 min.xorsign.abs.bf16 max.ftz.f16x2 setp.ltu.f32 setp.ne.f32
setp.num.f64 setp.gtu.f16 setp.le.ftz.f32 setp.lt.xor.s32 set.ge.u32.f32 set.equ.f16.f16 set.lt.f16x2.f16x2
set.gt.u32.bf16x2 set.lt.bf16.s32 slct.b32.f32 slct.ftz.b32.f32 cvt.s8.s32 cvt.sat.u8.s32 cvt.sat.s16.u64
cvt.rni.s32.f32 cvt.rzi.u32.f32 cvt.rmi.s64.f32 cvt.rpi.u64.f64 cvt.rzi.s32.f64 cvt.rni.s16.f16
cvt.rzi.u16.bf16 cvt.rzi.s8.f32 cvt.rni.ftz.u8.f32 cvt.rn.f32.s64 cvt.rz.f32.u64 cvt.rm.f64.s64
cvt.rn.f16.s32 cvt.rp.bf16.u32 cvt.f32.f16 cvt.f32.bf16 cvt.f64.f16 cvt.rn.f16.f32 cvt.rz.f16.f32
cvt.rp.bf16.f32 cvt.rn.relu.satfinite.f16.f32 cvt.rn.sat.f16.f32 cvt.rn.f32.f64 cvt.rp.f32.f64
cvt.rn.ftz.f32.f64 cvt.rz.f16.f64 cvt.rn.f16x2.f32 cvt.rz.relu.bf16x2.f32 cvt.rni.f32.f32 cvt.rmi.f16.f16
cvt.rpi.sat.f64.f64 cvt.rn.satfinite.e4m3x2.f32 cvt.rn.relu.satfinite.e5m2x2.f32
cvt.rn.satfinite.e5m2x2.f16x2 cvt.rn.f16x2.e4m3x2 cvt.rn.relu.f16x2.e5m2x2 cvt.pack.sat.s16.s32
cvt.pack.sat.u8.s32.b32 cvt.pack.sat.s4.s32.b32
"""
CLASSES = {"pred": "p", "f32": "f", "f64": "e"}  # type -> letter of its registers; others by width
LOAD = {
    "p": "setp.ne.u64 {r}, %q, 0;",
    "h": "cvt.u16.u64 {r}, %q;",
    "r": "cvt.u32.u64 {r}, %q;",
    "d": "mov.b64 {r}, %q;",
    "f": "cvt.u32.u64 %w, %q; mov.b32 {r}, %w;",
    "e": "mov.b64 {r}, %q;",
}
STORE = {
    "p": "selp.u64 %q, 1, 0, {r};",
    "h": "cvt.u64.u16 %q, {r};",
    "r": "cvt.u64.u32 %q, {r};",
    "d": "mov.b64 %q, {r};",
    "f": "mov.b32 %w, {r}; cvt.u64.u32 %q, %w;",
    "e": "mov.b64 %q, {r};",
}
HEAD = """.visible .entry k{i}(.param .u64 a, .param .u64 b)
{{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>, %w, %t; .reg .b64 %d<9>, %q, %in, %out, %row;
.reg .f32 %f<9>; .reg .f64 %e<9>;
ld.param.u64 %in, [a]; ld.param.u64 %out, [b]; mov.u32 %t, %tid.x; mul.wide.u32 %row, %t, 8;
add.u64 %in, %in, %row; add.u64 %out, %out, %row;
"""


def letter(kind: str) -> str:
    if kind in CLASSES:
        return CLASSES[kind]
    bits = int("".join(c for c in kind if c.isdigit()))
    return "h" if bits <= 16 else "r" if bits == 32 else "d"


def kernel(i: int, name: str, op) -> str:
    """PTX of one form: load a row, set the carry, apply the form, store results and carry."""
    text, regs = [HEAD.format(i=i)], []
    for k, kind in enumerate((*op.src, *op.dst)):
        regs.append(f"%{letter(kind)}{k + 1}")
        if k < len(op.src):
            text.append(f"ld.global.u64 %q, [%in+{k * ROWS * 8}]; " + LOAD[letter(kind)].format(r=regs[-1]))
    borrow = name.startswith("sub")
    if op.carry in ("in", "both"):
        text.append(f"ld.global.u64 %q, [%in+{5 * ROWS * 8}]; cvt.u32.u64 %w, %q;")
        text.append("sub.cc.u32 %w, 0, %w;" if borrow else "add.cc.u32 %w, %w, -1;")
    text.append(f"{name} {', '.join(regs[len(op.src) :] + regs[: len(op.src)])};")
    if op.carry in ("out", "both"):
        text.append("subc.u32 %w, 0, 0; and.b32 %w, %w, 1;" if borrow else "addc.u32 %w, 0, 0;")
        text.append(f"cvt.u64.u32 %q, %w; st.global.u64 [%out+{ROWS * 8}], %q;")
    text.append(STORE[letter(op.dst[0])].format(r=regs[len(op.src)]))
    return "\n".join([*text, "st.global.u64 [%out], %q;", "ret;", "}\n"])


def number(kind: str, rng: random.Random) -> int:
    """A float bit pattern: special, near one, or arbitrary."""
    ebits, mbits = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}[kind]
    one, top = ((1 << (ebits - 1)) - 1) << mbits, ((1 << ebits) - 1) << mbits
    borders = [0, 1, (1 << mbits) - 1, 1 << mbits, one, one + 1, one - 1, top - 1, top]
    special = [*borders, top | 1 << (mbits - 1), top | 1]
    near = one + rng.randint(-(14 << mbits), 14 << mbits)
    halves = one + (rng.randint(-3, 9) << mbits) + (rng.randint(0, 15) << max(mbits - 4, 0))
    return rng.choice([rng.choice(special), near, halves]) | rng.getrandbits(1) << (ebits + mbits)


def pattern(name: str, k: int, kind: str, rng: random.Random) -> int:
    """A source operand of a form: a float if a packed or untyped register holds one, small bit positions."""
    op, *mods = name.split(".")
    floats = [m for m in mods if m.startswith(("f16", "bf16", "f32", "f64"))]
    if kind == "pred":
        return rng.getrandbits(1)
    held = floats[-1] if floats and kind[0] == "b" and not (op == "slct" and k < 2) else kind
    if "f" in held:
        single = held.removesuffix("x2")
        low = number(single, rng)
        return low | number(single, rng) << 16 if held.endswith("x2") else low
    bits = int("".join(c for c in kind if c.isdigit()))
    if op in ("bfe", "bfi", "shl", "shr", "shf", "szext", "bmsk") and (
        k >= 1 + (op in ("bfi", "shf")) or op == "bmsk"
    ):
        return rng.choice([0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 100, 255, rng.randint(0, 40)])
    if op == "fns" and k:
        return rng.randint(0, 31) if k == 1 else rng.randint(-32, 32) & 0xFFFFFFFF
    edges = [
        0,
        1,
        2,
        (1 << bits) - 1,
        1 << (bits - 1),
        (1 << (bits - 1)) - 1,
        (1 << (bits - 1)) + 1,
        127,
        128,
        255,
    ]
    return rng.choice([rng.choice(edges), rng.getrandbits(bits), rng.getrandbits(rng.randint(1, bits))])


def operation(name: str):
    """The row of the instruction table for a form."""
    from ptxsim.isa.scalar import table as scalar

    op, *mods = name.split(".")
    form, modifiers = scalar.spellings(op)[scalar.ordered(tuple(mods))][0]
    return form.build(modifiers, scalar.HOT)


def sources(name: str) -> np.ndarray:
    """(6, ROWS) bit patterns of a form: those of its operands, and the carry in the last row."""
    rng, made = random.Random(zlib.crc32(name.encode())), np.zeros((6, ROWS), np.uint64)
    for k, kind in enumerate(operation(name).src):
        made[k] = [pattern(name, k, kind, rng) for _ in range(ROWS)]
    made[5] = [rng.getrandbits(1) for _ in range(ROWS)]
    return made


def make(folder: Path, arch: str) -> None:
    """Kernels and sources of every form."""
    names = FORMS.split()
    text = [f".version 9.0\n.target {arch}\n.address_size 64\n"]
    text += [kernel(i, name, operation(name)) for i, name in enumerate(names)]
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "kernels.ptx").write_text("".join(text))
    subprocess.run(
        ["ptxas", "-arch", arch, folder / "kernels.ptx", "-o", folder / "kernels.cubin"], check=True
    )
    np.savez_compressed(folder / "sources.npz", sources=np.stack([sources(name) for name in names]))


def run(folder: Path) -> None:
    """Runs every kernel through the driver API."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        if code:
            raise SystemExit(f"{name} failed with CUDA error {code}")

    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    rows = np.load(folder / "sources.npz")["sources"]
    results = np.zeros((len(rows), 2, ROWS), np.uint64)
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuModuleLoadData", ctypes.byref(module), (folder / "kernels.cubin").read_bytes())
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(rows[0].nbytes))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(results[0].nbytes))
    for i, row in enumerate(rows):
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, f"k{i}".encode())
        call("cuMemcpyHtoD_v2", source, ctypes.c_void_p(row.ctypes.data), ctypes.c_size_t(row.nbytes))
        call(
            "cuMemcpyHtoD_v2",
            target,
            ctypes.c_void_p(results[i].ctypes.data),
            ctypes.c_size_t(results[i].nbytes),
        )
        pointers = [ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in (source, target)]
        call("cuLaunchKernel", function, 1, 1, 1, ROWS, 1, 1, 0, None, (ctypes.c_void_p * 2)(*pointers), None)
        call(
            "cuMemcpyDtoH_v2",
            ctypes.c_void_p(results[i].ctypes.data),
            target,
            ctypes.c_size_t(results[i].nbytes),
        )
    np.savez_compressed(folder / "results.npz", results=results)


def keep(folder: Path, file: Path) -> None:
    """The fixture: names, digests of each form's result and of CC.CF, and a hash of the sources."""
    from research.chip import digests

    given, results = np.load(folder / "sources.npz")["sources"], np.load(folder / "results.npz")["results"]
    kept = digests.of(results.reshape(-1, ROWS)).reshape(len(results), 2, -1)
    np.savez_compressed(file, names=np.array(FORMS.split()), digests=kept, sources=digest(given))


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    if command == "make":
        make(Path(folder), *rest)
    elif command == "run":
        run(Path(folder))
    else:
        keep(Path(folder), Path(rest[0]))
