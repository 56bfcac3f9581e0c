"""Public, plain kernels of a round: `python -m research.time.public_set drawn|small OUT PYTHON`.

PYTHON is an interpreter with pyptx 0.1.1, whose examples compute addresses where they are needed. The plain
kernels are those of plain.cu. Sizes are drawn (drawn.py), or "small", which right.py checks on ptxsim.
Needs nvcc and ptxas of CUDA 13.0, no GPU. All of it belongs to the half "unseen".
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from research import packed
from research.time import drawn
from research.time.run import Saved, save
from research.time.sass_counts import assembled, tool
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam

PLAIN = Path(__file__).with_name("plain.cu.xz")


@dataclass
class Plain:
    """A kernel of plain.cu.xz. `size`: M, N, K of a product, otherwise the extents that `scalars` name."""

    kernel: str
    size: tuple[int, ...]
    grid: tuple[int, int]
    block: tuple[int, ...]
    buffers: list[tuple]  # (name, shape, dtype, role)
    scalars: str  # one letter for each extent that the kernel takes, in the order of `size`
    flops: float


def matmul(kernel, size, tile, block, dtype="float32", transposed=False) -> Plain:
    """A kernel D = A B, or A B^T, in tiles (rows, columns)."""
    m, n, k = size
    sides = [("A", (m, k), dtype, "in"), ("B", (n, k) if transposed else (k, n), dtype, "in")]
    buffers = [*sides, ("D", (m, n), "float32", "out")]
    return Plain(kernel, size, (n // tile[1], m // tile[0]), block, buffers, "MNK", 2.0 * m * n * k)


def plains(*sizes) -> list[Plain]:
    """The kernels of plain.cu, in its order."""
    square, picture, float_, half, line, set_ = sizes
    halves = matmul("halves", half, (64, 64), (256,), "float16", True)
    return [
        plane("turned", square, turned=True),
        plane("blur", picture),
        matmul("tiles", float_, (64, 64), (256,)),
        replace(halves, buffers=[*halves.buffers[:2], ("D", half[:2], "float16", "out")]),
        prefix(*line),
        escape(*set_),
    ]


def plane(kernel: str, size: tuple[int, int], turned: bool = False) -> Plain:
    """A kernel with 32 x 32 numbers per CTA."""
    high, wide = size
    out = (wide, high) if turned else size
    buffers = [("x", size, "float32", "in"), ("y", out, "float32", "out")]
    flops = (1.0 if turned else 50.0) * high * wide
    return Plain(kernel, size, (wide // 32, high // 32), (32, 8), buffers, "HW", flops)


def prefix(high: int, wide: int) -> Plain:
    buffers = [(name, (high, wide), "float32", role) for name, role in (("x", "in"), ("y", "out"))]
    return Plain("prefix", (wide, high), (high, 1), (256,), buffers, "W", 2.0 * high * wide)


def escape(high: int, wide: int, limit: int) -> Plain:
    """A kernel of escape times; `flops`: as if every point took `limit` iterations."""
    size, buffers = (high, wide, limit), [("y", (high, wide), "int32", "out")]
    flops = 8.0 * high * wide * limit
    return Plain("escape", size, (wide // 32, high // 8), (32, 8), buffers, "HWL", flops)


def drawn_plains() -> list[Plain]:
    return plains(
        drawn.rows("plain turned", 8, (32, 32)),
        drawn.rows("plain blur", 8, (32, 32)),
        drawn.product("plain tiles", (64, 64, 16), (3e9, 12e9)),
        drawn.product("plain halves", (64, 64, 32), (3e9, 12e9)),
        drawn.rows("plain prefix", 8, (8, 1024)),
        (
            *drawn.rows("plain escape", 4, (8, 32), (10, 40)),
            drawn.extent(drawn.machine("turns"), 100, 400, 1),
        ),
    )


def drawn_publics() -> list[tuple]:
    """Three products of pyptx, and four of its eight streams, with rows of a multiple of 512."""
    products = [
        ("gemm", "build_gemm", (16, 8, 16), (1e9, 4e9), (512, 2048)),
        ("gemm_pipelined", "build_gemm_pipelined", (64, 64, 16), (8e9, 30e9), (512, 2048)),
        ("gemm_highperf_ampere", "build_gemm_highperf", (128, 128, 32), (8e9, 30e9), (512, 2048)),
    ]
    found = []
    for module, function, steps, work, depth in products:  # the second is unrolled over K
        sides = (768, 6144), (768, 6144), depth
        found.append(("ampere", module, function, drawn.product(f"pyptx {module}", steps, work, sides)))
    names = {"rms_norm": "rms_norm", "layer_norm": "layer_norm", "softmax": "softmax"}
    names["swiglu"] = "fused_silu_mul"
    streams = [(track, module) for track in ("ampere", "hopper") for module in names]
    for track, module in drawn.some("pyptx streams", streams, 4):
        each = 12 if module == "swiglu" else 8
        size = drawn.rows(f"pyptx {track} {module}", each, (8, 512), widths=(1024, 8192))
        found.append((track, module, f"build_{names[module]}", size))
    return found


PLAINS = {
    "drawn": drawn_plains(),
    "small": plains((64, 96), (96, 64), (128, 64, 48), (64, 128, 96), (3, 2048), (32, 64, 50)),
}
PUBLICS = {  # (track, module, function, arguments): M, N, K of a product, otherwise rows and columns
    "drawn": drawn_publics(),
    "small": [
        ("ampere", "gemm", "build_gemm", (32, 24, 48)),
        ("ampere", "gemm_pipelined", "build_gemm_pipelined", (128, 64, 112)),
        ("ampere", "gemm_highperf_ampere", "build_gemm_highperf", (128, 256, 160)),
        ("ampere", "rms_norm", "build_rms_norm", (3, 3072)),
        ("ampere", "layer_norm", "build_layer_norm", (3, 3584)),
        ("ampere", "swiglu", "build_fused_silu_mul", (4, 1024)),
        ("hopper", "swiglu", "build_fused_silu_mul", (4, 4096)),
    ],
}
TRACE = """
import importlib, json, sys, types
for name in ("jax", "jax.numpy"):  # imported by the examples; used only to run them
    sys.modules[name] = types.ModuleType(name)
sys.modules["jax"].numpy = sys.modules["jax.numpy"]
sys.modules["jax.numpy"].ndarray = object
module = importlib.import_module("pyptx.examples." + sys.argv[2])
made = getattr(module, sys.argv[3])(*map(int, sys.argv[4:]))
open(sys.argv[1], "w").write(made.ptx())
specs = [[[list(t.shape), t.dtype.name] for t in side] for side in (made._in_specs, made._out_specs)]
print(json.dumps([made._grid, made._block, made._smem, *specs]))
"""
DTYPES = {"bf16": "bfloat16", "f32": "float32"}


def artifact(ptx: str, entry: str, grid, block, shared: int, buffers, scalars=()) -> Artifact:
    """An artifact whose parameters are its buffers, in order, and then its scalars."""
    registers, cubin = assembled(ptx, tool("ptxas"))
    params = [BufferParam(b.name) for b in buffers] + [ScalarParam(n, "int32", v) for n, v in scalars]
    return Artifact(
        arch="sm_90a", entry=entry, cuda="", ptx=ptx, cubin=cubin, grid=tuple(grid), block=tuple(block),
        cluster=(1, 1, 1), shared_bytes=shared, params=tuple(params), buffers=tuple(buffers),
        registers=registers,
    )  # fmt: skip


def plain(one: Plain) -> Artifact:
    """A kernel of plain.cu.xz, alone in its module."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "k.ptx"
        source = text.with_suffix(".cu")
        source.write_text(packed.read(PLAIN))
        subprocess.run(["nvcc", "-arch=sm_90a", "-ptx", str(source), "-o", str(text)], check=True)
        ptx = only(text.read_text(), one.kernel)
    block = (*one.block, 1, 1)[:3]
    buffers = [BufferInfo(*about) for about in one.buffers]
    scalars = list(zip(one.scalars, one.size, strict=False))
    return artifact(ptx, one.kernel, (*one.grid, 1), block, 0, buffers, scalars)


def only(ptx: str, kernel: str) -> str:
    """The module with only this kernel; static shared memory of the others is removed with them."""
    head, *entries = re.split(r"(?m)^(?=\t?\.visible \.entry|// \.globl|\s*// \.globl)", ptx)
    kept = [e for e in entries if re.search(rf"\.entry {kernel}\(", e)]
    return head + "".join(kept)


def public(python: str, track: str, module: str, function: str, arguments) -> Artifact:
    """An example of pyptx."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "k.ptx"
        command = [python, "-c", TRACE, str(text), f"{track}.{module}", function, *map(str, arguments)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ptx = text.read_text()
    grid, block, shared, ins, outs = json.loads(said)
    sides = [(spec, "in") for spec in ins] + [(spec, "out") for spec in outs]
    buffers = [BufferInfo(f"b{i}", tuple(s), DTYPES[d], role) for i, ((s, d), role) in enumerate(sides)]
    entry = re.search(r"\.entry (\w+)", ptx)[1]
    return artifact(ptx, entry, grid, block, shared, buffers)


def main(which: str, out: Path, python: str) -> None:
    made = {}
    for one in PLAINS[which]:
        name = f"plain_{one.kernel}_" + "x".join(map(str, one.size))
        made[name] = plain(one), one.flops
    for track, module, function, arguments in PUBLICS[which]:
        name = f"pyptx_{module}_" + "x".join(map(str, arguments))
        m, n, *k = arguments
        flops = 2.0 * m * n * k[0] if k else 4.0 * m * n
        made[name] = public(python, track, module, function, arguments), flops
    for name, (kernel, _) in made.items():
        print(name, kernel.registers, kernel.grid, kernel.shared_bytes, len(kernel.ptx), flush=True)
    save(out, [Saved(name, kernel, "unseen", flops) for name, (kernel, flops) in made.items()])
    print(f"{len(made)} kernels, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
