"""Random instructions on a GPU and on ptxsim, each result kept: `python -m research.chip.fuzz COMMAND ..`

    make DIR [SEED]       needs ptxas: picks spellings; DIR gets kernels.cubin, steps.txt, sources.npy
    run DIR               needs numpy and a GPU driver (runs as a plain file too): DIR/results.npy

fuzz_record.py keeps the results as a fixture, and reports where ptxsim's results differ. A step is one
instruction, or a chain through CC.CF, on fresh operands. Everything that it writes is stored: an instruction
whose result only its partner reads (sub.cc by subc) would hide what both compute wrongly. Text and operands
are derived from a step's name and number, so the fixture holds no PTX.
"""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LANES = 32
PER_KERNEL = 40  # steps per kernel
ROW = 8 * LANES  # bytes of one operand or result of a warp, 64 bits a lane
CHAINS = 60
EVERY = 4  # spellings of each form of the table
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
OPENING = """.visible .entry k{i}(.param .u64 a, .param .u64 b)
{{
.reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<20>, %w, %t, %sm; .reg .b64 %d<20>, %q, %in, %out, %row;
.reg .f32 %f<20>; .reg .f64 %e<20>; .shared .align 16 .b8 own[512];
ld.param.u64 %in, [a]; ld.param.u64 %out, [b]; mov.u32 %t, %tid.x; mul.wide.u32 %row, %t, 8;
add.u64 %in, %in, %row; add.u64 %out, %out, %row; mov.u32 %sm, own; mad.lo.u32 %sm, %t, 16, %sm;
"""
LOAD = {
    "p": "setp.ne.u64 {r}, %q, 0;", "h": "cvt.u16.u64 {r}, %q;", "r": "cvt.u32.u64 {r}, %q;",
    "d": "mov.b64 {r}, %q;", "f": "cvt.u32.u64 %w, %q; mov.b32 {r}, %w;", "e": "mov.b64 {r}, %q;",
}  # fmt: skip
STORE = {
    "p": "selp.u64 %q, 1, 0, {r};", "h": "cvt.u64.u16 %q, {r};", "r": "cvt.u64.u32 %q, {r};",
    "d": "mov.b64 %q, {r};", "f": "mov.b32 %w, {r}; cvt.u64.u32 %q, %w;", "e": "mov.b64 %q, {r};",
}  # fmt: skip
NEWER = ("x2.f32", "f32x2", "e2m1", "e2m3", "e3m2", "ue8m0", "s2f6")  # missing on sm_90a, or partly missing
ATOMICS = {
    "u32": "add min max inc dec", "s32": "min max", "b32": "and or xor exch cas", "u64": "add",
    "s64": "min max", "b64": "exch cas", "f32": "add", "f64": "add", "f16x2": "add.noftz",
    "bf16x2": "add.noftz",
    "f16": "add.noftz", "bf16": "add.noftz", "b16": "cas",
}  # fmt: skip
ARITHMETIC = """
add.f32 sub.f32 mul.f32 fma.rn.f32 div.rn.f32 rcp.rn.f32 sqrt.rn.f32 add.f64 sub.f64 mul.f64 fma.rn.f64
div.rn.f64 rcp.rn.f64 sqrt.rn.f64 min.f32 max.f32 min.f64 max.f64 min.f16 max.bf16 add.f16 mul.bf16
fma.rn.f16x2 neg.f32 abs.f32 neg.f64 abs.f64 neg.f16 abs.bf16x2 neg.bf16 cvt.f32.f32 cvt.rn.f32.f64
cvt.f64.f32 cvt.f32.f16 cvt.f64.f16 cvt.f32.bf16 cvt.rn.f16.f64 cvt.rn.f16.f32 cvt.rn.bf16.f32 cvt.rni.f64.f64
cvt.rni.f32.f32 cvt.f16.f16 cvt.rni.f16.f16 cvt.f64.f64 cvt.sat.f32.f32 cvt.rn.bf16x2.f32
cvt.rzi.s32.f32 cvt.rzi.u64.f64
cvt.rp.ftz.f16.f32 cvt.rm.ftz.f16.f32 cvt.rp.ftz.sat.f16.f32 cvt.rp.ftz.bf16.f32 cvt.rz.ftz.f32.f64
"""  # drawn two more times each, for their NaNs
WARP = """
shfl.sync.up.b32 shfl.sync.down.b32 shfl.sync.bfly.b32 shfl.sync.idx.b32 vote.sync.all.pred
vote.sync.any.pred vote.sync.uni.pred vote.sync.ballot.b32 match.any.sync.b32 match.any.sync.b64
match.all.sync.b32 match.all.sync.b64 redux.sync.add.u32 redux.sync.add.s32 redux.sync.min.u32
redux.sync.min.s32 redux.sync.max.u32 redux.sync.max.s32 redux.sync.and.b32 redux.sync.or.b32
redux.sync.xor.b32 movmatrix.sync.aligned.m8n8.trans.b16 activemask.b32
"""


@dataclass(frozen=True)
class Step:
    name: str
    sources: tuple[str, ...]  # types
    results: tuple[str, ...]
    text: str  # PTX; {s0} .. are the sources' registers, {d0} .. those of the results


# ---- steps ----


def letter(kind: str) -> str:
    """The letter of the register class that holds a type."""
    if kind in ("pred", "f32", "f64"):
        return {"pred": "p", "f32": "f", "f64": "e"}[kind]
    bits = int("".join(c for c in kind if c.isdigit())[:2])
    return "h" if bits <= 16 and "x2" not in kind else "d" if bits == 64 else "r"


def step_of(name: str) -> Step:
    """The step with this name."""
    if "+" in name:
        return _chain(name)
    op = name.split(".")[0]
    if op in ("atom", "red"):
        return _atomic(name)
    return _warp(name) if name in WARP.split() else _scalar(name)


def _built(name: str):
    from ptxsim.isa.scalar import table as scalar

    op, *mods = name.split(".")
    form, words = scalar.spellings(op)[scalar.ordered(tuple(mods))][0]
    return form.build(words, scalar.HOT)


def _names(letter_: str, count: int, first: int = 0) -> str:
    return ", ".join(f"{{{letter_}{first + i}}}" for i in range(count))


def _scalar(name: str) -> Step:
    bar = name.endswith("|")
    op = _built(name)
    target = "{d0}|{d1}" if bar else _names("d", len(op.dst))
    return Step(name, op.src, op.dst, f"{name.rstrip('.|')} {target}, {_names('s', len(op.src))};")


def _chain(name: str) -> Step:
    """Instructions that pass on CC.CF; at the end an addition and a subtraction read it."""
    sources, results, lines = [], [], []
    for part in [*name.split("+"), "addc.u32", "subc.u32"]:
        op, reader = _built(part), len(lines) >= name.count("+") + 1
        reads = "0, 0" if reader else _names("s", len(op.src), len(sources))
        lines.append(f"{part} {{d{len(results)}}}, {reads};")
        sources += [] if reader else op.src
        results += op.dst
    return Step(name, tuple(sources), tuple(results), "\n".join(lines))


def _atomic(name: str) -> Step:
    """An atomic on a word of the thread's own; the returned value and the final word are both stored."""
    op, space, *_, kind = name.split(".")
    wide = letter(kind) == "d" or kind == "f64"
    home, store = ("%sm", "shared") if space == "shared" else ("%out", "global")
    held = kind if letter(kind) in "rd" else "b64" if wide else "b16" if letter(kind) == "h" else "b32"
    width = "".join(c for c in held if c.isdigit())[:2] if "x2" not in held else "32"
    cas = ".cas." in name
    values = (kind,) * (3 if cas else 2)
    target = "{d0}, " if op == "atom" else ""
    last = 1 if op == "atom" else 0
    text = [
        f"st.{store}.b64 [{home}], 0;",
        f"st.{store}.b{width} [{home}], {{s0}};",
        f"{name} {target}[{home}], {', '.join(f'{{s{i}}}' for i in range(1, len(values)))};",
        f"ld.{store}.b64 {{d{last}}}, [{home}];",
    ]
    return Step(name, values, (kind,) * last + ("b64",), "\n".join(text))


def _warp(name: str) -> Step:
    op, kind = name.split(".")[0], name.split(".")[-1]
    if op == "shfl":
        return Step(name, ("b32",) * 3, ("b32", "pred"), f"{name} {{d0}}|{{d1}}, {{s0}}, {{s1}}, {{s2}}, -1;")
    if op == "vote":
        return Step(name, ("pred",), (kind,), f"{name} {{d0}}, {{s0}}, -1;")
    if name.startswith("match.all"):
        return Step(name, (kind,), ("b32", "pred"), f"{name} {{d0}}|{{d1}}, {{s0}}, -1;")
    if op == "activemask":
        return Step(name, (), ("b32",), f"{name} {{d0}};")
    if op == "movmatrix":
        return Step(name, ("b32",), ("b32",), f"{name} {{d0}}, {{s0}};")
    return Step(name, (kind,), ("b32",), f"{name} {{d0}}, {{s0}}, -1;")


def pick(seed: int) -> list[str]:
    """Names of random steps: spellings of every form of the table, chains, atomics, warp instructions."""
    from ptxsim.isa.scalar import table as scalar

    rng = random.Random(seed)
    found = []
    for family in scalar.FAMILIES:
        for form in family.forms:
            names = [".".join((family.name, *words)) for words, _ in form.expand() if "cc" not in words]
            names = [n for n in names if family.name not in ("addc", "subc", "madc", "lop3")]
            found += rng.sample(names, min(EVERY, len(names)))
    first = ["add.cc.{}", "sub.cc.{}", "mad.lo.cc.{}", "mad.hi.cc.{}"]
    middle = [
        "addc.cc.{}",
        "subc.cc.{}",
        "addc.{}",
        "subc.{}",
        "madc.lo.cc.{}",
        "madc.hi.cc.{}",
        "madc.hi.{}",
    ]
    for _ in range(CHAINS):
        kinds = ["u32", "s32", "u64", "s64"]
        parts = [rng.choice(first), *(rng.choice(middle) for _ in range(rng.randint(0, 3)))]
        found.append("+".join(p.format(rng.choice(kinds)) for p in parts))
    for op in ("atom", "red"):
        for kind, operations in ATOMICS.items():
            for what in operations.split():
                if op == "atom" or what not in ("cas", "exch"):
                    found += [f"{op}.{space}.{what}.{kind}" for space in ("shared", "global")]
    found = [n for n in [*found, *WARP.split()] if not any(word in n for word in NEWER)]
    rng.shuffle(found)
    return list(dict.fromkeys(found)) + [n for n in ARITHMETIC.split() for _ in range(2)]


# ---- text and operands ----


def kernels(names: list[str]) -> str:
    """One PTX module; kernel i runs PER_KERNEL steps from i * PER_KERNEL on. Each step starts on its own
    line.
    """
    text, source, result = [HEAD], 0, 0
    for start in range(0, len(names), PER_KERNEL):
        text.append(OPENING.format(i=start // PER_KERNEL))
        for number, name in enumerate(names[start : start + PER_KERNEL], start):
            step = step_of(name)
            text.append(f"// step {number} {name}\n{_statements(step, source, result)}")
            source, result = source + len(step.sources), result + len(step.results)
        text.append("ret;\n}\n")
    return "".join(text)


def _statements(step: Step, source: int, result: int) -> str:
    registers = {f"s{i}": f"%{letter(kind)}{i + 1}" for i, kind in enumerate(step.sources)}
    registers |= {
        f"d{i}": f"%{letter(kind)}{i + 1 + len(step.sources)}" for i, kind in enumerate(step.results)
    }
    lines = []
    for i, kind in enumerate(step.sources):
        lines.append(f"ld.global.u64 %q, [%in+{(source + i) * ROW}];")
        lines.append(LOAD[letter(kind)].format(r=registers[f"s{i}"]))
    text = step.text.replace("[%out]", f"[%out+{result * ROW}]")
    lines.append(text.format(**registers))
    for i, kind in enumerate(step.results):
        lines.append(STORE[letter(kind)].format(r=registers[f"d{i}"]))
        lines.append(f"st.global.u64 [%out+{(result + i) * ROW}], %q;")
    return "\n".join(lines) + "\n"


def operands(names: list[str]) -> np.ndarray:
    """uint64 (rows, 32): the sources of all steps, with many edge values."""
    from research.chip.record_scalar import pattern

    rows = []
    for number, name in enumerate(names):
        step, rng = step_of(name), random.Random(zlib.crc32(f"{number} {name}".encode()))
        dense = number % 2  # with all kinds of NaNs and infinities
        for k, kind in enumerate(step.sources):
            row = [pattern(name, k, kind, rng) for _ in range(LANES)]
            held = _float_in(name, kind)
            if dense and held:
                row = [special(held, rng) if rng.random() < 0.6 else x for x in row]
            if name.startswith(("match", "vote")) and rng.random() < 0.5:
                row = [rng.choice(row[:3]) for _ in row]
            rows.append(row)
    return np.array(rows, np.uint64)


def _float_in(name: str, kind: str) -> str:
    """The floating type of a source, even if an untyped register holds it; "" for integers."""
    words = [w for w in name.split(".") if re.fullmatch(r"b?f(16|32|64)(x2)?", w)]
    if kind in ("f16", "bf16", "f32", "f64") or not words or name.startswith(("slct", "set", "selp")):
        return kind if kind in ("f16", "bf16", "f32", "f64") else ""
    return words[-1] if letter(words[-1]) == letter(kind) or kind[1:] == words[-1][-2:] else ""


def special(kind: str, rng: random.Random) -> int:
    """An infinity, a NaN with any payload, quiet or not, zero or one; in both halves of a packed type."""
    if kind.endswith("x2"):
        return special(kind[:-2], rng) | special(kind[:-2], rng) << 16
    ebits, mbits = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}[kind]
    top, one = ((1 << ebits) - 1) << mbits, ((1 << ebits - 1) - 1) << mbits
    value = rng.choice([0, one, top, top | rng.randint(1, (1 << mbits) - 1), top | rng.randint(1, 9)])
    return value | rng.getrandbits(1) << ebits + mbits


def results_of(names: list[str]) -> list[tuple[int, str, str]]:
    """(step, its name, type) of every row of results."""
    return [(i, name, kind) for i, name in enumerate(names) for kind in step_of(name).results]


# ---- commands ----


def make(folder: Path, seed: str = "1") -> None:
    """Drops the steps that ptxas refuses, and writes what `run` needs."""
    folder.mkdir(exist_ok=True, parents=True)
    names = pick(int(seed))
    while True:
        text = kernels(names)
        (folder / "kernels.ptx").write_text(text)
        command = ["ptxas", "-arch", "sm_90a", folder / "kernels.ptx", "-o", folder / "kernels.cubin"]
        done = subprocess.run(command, capture_output=True, text=True)
        refused = {int(n) for n in re.findall(r"line (\d+);", done.stdout + done.stderr)}
        if done.returncode == 0:
            break
        steps = _steps_at(text, refused)
        print(f"ptxas refuses {len(steps)} steps: {', '.join(names[i] for i in sorted(steps)[:8])} ..")
        if not steps:
            raise SystemExit(done.stderr or done.stdout)
        names = [name for i, name in enumerate(names) if i not in steps]
    (folder / "steps.txt").write_text("\n".join(names))
    np.save(folder / "sources.npy", operands(names))
    (folder / "counts.txt").write_text(f"{-(-len(names) // PER_KERNEL)} {len(results_of(names))}")
    print(f"{len(names)} steps, {len(results_of(names))} results")


def _steps_at(text: str, lines: set[int]) -> set[int]:
    """The steps at these line numbers."""
    found, current = set(), None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("// step "):
            current = int(line.split()[2])
        if number in lines and current is not None:
            found.add(current)
    return found


def run(folder: Path) -> None:
    """Runs every kernel through the driver API."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        if code:
            raise SystemExit(f"{name} failed with CUDA error {code}")

    kernels_, rows = (int(x) for x in (folder / "counts.txt").read_text().split())
    sources, results = np.load(folder / "sources.npy"), np.zeros((rows, LANES), np.uint64)
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), (folder / "kernels.cubin").read_bytes())
    for pointer, array in ((source, sources), (target, results)):
        size = ctypes.c_size_t(array.nbytes)
        call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), size)
    for i in range(kernels_):
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, f"k{i}".encode())
        pointers = [ctypes.cast(ctypes.byref(p), ctypes.c_void_p) for p in (source, target)]
        given = (ctypes.c_void_p * 2)(*pointers)
        call("cuLaunchKernel", function, 1, 1, 1, LANES, 1, 1, 0, None, given, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(results.ctypes.data), target, ctypes.c_size_t(results.nbytes))
    np.save(folder / "results.npy", results)
    print(f"{kernels_} kernels done")


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    {"make": make, "run": run}[command](Path(folder), *rest)
