"""Triton kernels at the sizes of a benchmark, as artifacts for sm_90a: `python triton_bench.py OUT.tar.xz`.

Needs Triton 3.9 (no GPU): `PYTHONPATH=folder-with-triton`. Each kernel of ROWS is compiled once and saved
with its launch; index.json says what it computes: floating-point operations, bytes that must move, and the
half of the set it belongs to. Constants of the time model may be fitted to the half "calibration", never to
the half "unseen". The first kernels were once drawn into two halves by a hash of their names; both have been
timed since, and are calibration now. The unseen half is that of the second round .
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # the PTX names no folder

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "research" / "foreign")]

import triton_code as code  # noqa: E402

from research import store  # noqa: E402
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam  # noqa: E402

TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
TYPES |= {"int8": "i8", "float8_e4m3fn": "fp8e4nv", "int32": "i32"}
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "float8_e4m3fn": 1, "int32": 4}
SMS = 132


@triton.jit
def matmul_grouped(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    GROUP: tl.constexpr,
):
    """C = A B^T over plain pointers; GROUP rows of tiles are visited together. Extents are whole tiles."""
    tiles_m, tiles_n = M // BM, N // BN
    number, group = tl.program_id(0), GROUP * tiles_n
    first = number // group * GROUP
    height = min(tiles_m - first, GROUP)
    row = first + number % group % height
    column = number % group // height
    rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty))


@dataclass
class Row:
    """One kernel at one size. `args` in the kernel's order: (name, dtype, shape, role) or (name, value)."""

    name: str
    kernel: object
    args: list
    constants: dict
    grid: int | tuple[int, int]
    warps: int
    flops: float
    maps: dict = field(default_factory=dict)  # name of a described array -> its block
    half: str = "calibration"

    @property
    def moved(self) -> int:
        """Bytes of all arrays: what a launch must at least read or write."""
        total = 0
        for argument in self.args:
            if len(argument) == 4:
                total += BYTES[argument[1]] * math.prod(argument[2])
        return total


def gemm(kind: str, size, tile, stages: int, warps: int, dtype: str = "float16") -> Row:
    """One matmul: `kind` is grouped (pointers), tma, or persistent (TMA, a CTA per SM)."""
    (m, n, k), (bm, bn, bk) = size, tile
    arrays = [("a", dtype, (m, k), "in"), ("b", dtype, (n, k), "in"), ("c", dtype, (m, n), "out")]
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages)
    tiles, extents = m // bm * (n // bn), [("M", m), ("N", n), ("K", k)]
    shape = f"{m}x{n}x{k}_{bm}x{bn}x{bk}_s{stages}_w{warps}_{TYPES[dtype]}"
    maps = {"a": [bm, bk], "b": [bn, bk], "c": [bm, bn]}
    flops = 2.0 * m * n * k
    if kind == "grouped":
        return Row(
            f"grouped_{shape}",
            matmul_grouped,
            arrays + extents,
            constants | {"GROUP": 8},
            tiles,
            warps,
            flops,
        )
    kernel = code.matmul_persistent
    constants |= {"ROLES": False}
    grid = min(tiles, SMS)
    return Row(f"{kind}_{shape}", kernel, arrays + extents, constants, grid, warps, flops, maps)


def attention(length: int, rows: int, keys: int, dim: int, warps: int, stages: int = 2) -> Row:
    """Causal attention of one head; every block of keys is visited, so half of the products are masked."""
    args = [(n, "float16", (length, dim), "in") for n in "qkv"]
    args += [("out", "float16", (length, dim), "out"), ("length", length), ("scale", 0.18)]
    constants = dict(ROWS=rows, KEYS=keys, DIM=dim, STAGES=stages)
    flops = 4.0 * length * length * dim
    name = f"attention_{length}x{dim}_{rows}x{keys}_s{stages}_w{warps}"
    return Row(name, code.attention, args, constants, length // rows, warps, flops)


def streams() -> list[Row]:
    """Kernels that only move data."""
    shapes = ((8192, 4096), (4096, 8192), (32768, 1024))
    rows = [add(1 << 26, block) for block in (1024, 4096)]
    return rows + [make(*shape) for shape in shapes for make in (softmax, layer_norm)]


def add(n: int, block: int) -> Row:
    args = [("x", "float32", (n,), "in"), ("y", "float32", (n,), "in"), ("out", "float32", (n,), "out")]
    args += [("n", n)]
    constants = dict(BLOCK=block)
    return Row(f"add_{n}_{block}", code.add_masked, args, constants, n // block, block // 256, float(n))


def softmax(height: int, width: int) -> Row:
    args = [("x", "float32", (height, width), "in"), ("out", "float32", (height, width), "out")]
    args += [("columns", width)]
    flops = 5.0 * height * width
    return Row(f"softmax_{height}x{width}", code.softmax_rows, args, dict(BLOCK=width), height, 8, flops)


def layer_norm(height: int, width: int) -> Row:
    args = [("x", "float16", (height, width), "in"), ("weight", "float32", (width,), "in")]
    args += [("bias", "float32", (width,), "in"), ("out", "float32", (height, width), "out")]
    args += [("columns", width), ("eps", 1e-5)]
    flops = 8.0 * height * width
    return Row(f"layernorm_{height}x{width}", code.layer_norm, args, dict(BLOCK=1024), height, 4, flops)


def gemms() -> list[Row]:
    cube = {n: (n, n, n) for n in (2048, 4096, 8192)}
    return [
        gemm("grouped", cube[2048], (128, 128, 64), 3, 4),
        gemm("grouped", cube[4096], (128, 128, 64), 3, 4),
        gemm("grouped", cube[4096], (128, 128, 32), 4, 4),
        gemm("grouped", cube[4096], (128, 256, 64), 3, 8),
        gemm("grouped", cube[4096], (128, 256, 64), 3, 8, "bfloat16"),
        gemm("grouped", cube[8192], (128, 256, 64), 3, 8, "bfloat16"),
        gemm("grouped", cube[2048], (64, 128, 64), 4, 4),
        gemm("grouped", (4096, 4096, 1024), (128, 128, 64), 4, 8),
        gemm("grouped", (1024, 1024, 8192), (64, 64, 64), 4, 4, "bfloat16"),
        gemm("grouped", cube[2048], (128, 128, 32), 2, 4, "bfloat16"),
        gemm("persistent", cube[2048], (128, 128, 64), 3, 4),
        gemm("persistent", cube[4096], (128, 128, 64), 3, 4),
        gemm("persistent", cube[4096], (128, 128, 64), 4, 8, "bfloat16"),
        gemm("persistent", cube[4096], (128, 256, 64), 3, 8),
        gemm("persistent", cube[4096], (128, 256, 64), 3, 8, "bfloat16"),
        gemm("persistent", cube[8192], (128, 256, 64), 3, 8),
        gemm("persistent", cube[8192], (128, 128, 64), 4, 4, "bfloat16"),
        gemm("persistent", (8192, 8192, 512), (128, 256, 64), 3, 8, "bfloat16"),
        gemm("persistent", (4096, 4096, 1024), (128, 128, 64), 2, 4),
        gemm("persistent", (2048, 2048, 16384), (128, 128, 64), 3, 8),
        gemm("persistent", (1024, 1024, 4096), (64, 128, 64), 4, 4, "bfloat16"),
        gemm("persistent", (6144, 6144, 2048), (128, 256, 64), 3, 8),
    ]


def attentions() -> list[Row]:
    return [
        attention(16896, 128, 64, 64, 8),
        attention(16896, 128, 128, 128, 8),
        attention(8448, 64, 64, 64, 4),
        attention(16896, 128, 64, 128, 4),
    ]


def second() -> list[Row]:
    """The second round: shapes and blocks that the first does not have, many of them uneven over 132 SMs."""
    cube = {n: (n, n, n) for n in (2560, 3072, 5120)}
    rows = [
        gemm("grouped", cube[5120], (128, 256, 64), 4, 8, "bfloat16"),
        gemm("grouped", cube[3072], (128, 128, 64), 4, 4),
        gemm("grouped", cube[2560], (128, 128, 32), 3, 4, "bfloat16"),
        gemm("grouped", (3584, 3584, 1792), (64, 256, 64), 3, 4),
        gemm("persistent", cube[3072], (128, 256, 64), 3, 8, "bfloat16"),
        gemm("persistent", cube[5120], (128, 256, 64), 3, 8),
        gemm("persistent", (2560, 2560, 5120), (128, 128, 64), 4, 4),
        gemm("persistent", (1536, 3072, 6144), (128, 128, 64), 3, 8, "bfloat16"),
        attention(8448, 128, 64, 128, 8),
        attention(12672, 128, 128, 64, 8),
        softmax(16384, 2048),
        layer_norm(16384, 2048),
        add(1 << 25, 2048),
    ]
    return [replace(row, half="unseen") for row in rows]


ROWS = [*gemms(), *attentions(), *streams(), *second()]


# ---- compiling ----


def signature(row: Row) -> tuple[dict, dict]:
    names = [n for n in row.kernel.arg_names if n not in row.constants]
    types, attributes = {}, {}
    for i, (name, argument) in enumerate(zip(names, row.args, strict=True)):
        if argument[0] in row.maps:
            types[name] = f"tensordesc<{TYPES[argument[1]]}[{','.join(map(str, row.maps[argument[0]]))}]>"
            continue
        if len(argument) == 4:
            types[name] = f"*{TYPES[argument[1]]}"
        else:
            types[name] = "fp32" if isinstance(argument[1], float) else "i32"
        if len(argument) == 4 or (types[name] == "i32" and argument[1] % 16 == 0):
            attributes[(i,)] = [["tt.divisibility", 16]]
    return types | dict.fromkeys(row.constants, "constexpr"), attributes


def params_of(row: Row, metas: list) -> tuple:
    """The PTX parameters: extents and strides follow each tensor map; two pointers end the list."""
    found: list = []
    for argument in row.args:
        if argument[0] in row.maps:
            name, dtype, (height, width), _ = argument
            meta = metas.pop(0)
            found.append(_map(name, dtype, height, width, meta))
            found += [
                ScalarParam(f"{name}_rows", "int32", height),
                ScalarParam(f"{name}_columns", "int32", width),
            ]
            found += [ScalarParam(f"{name}_pitch", "int64", width), ScalarParam(f"{name}_step", "int64", 1)]
        elif len(argument) == 4:
            found.append(BufferParam(argument[0]))
        else:
            kind = "float32" if isinstance(argument[1], float) else "int32"
            found.append(ScalarParam(argument[0], kind, argument[1]))
    return (*found, BufferParam("scratch"), BufferParam("profile"))


def _map(name: str, dtype: str, height: int, width: int, meta: dict) -> TensorMapParam:
    return TensorMapParam(
        buffer=name,
        byte_offset=0,
        dtype=dtype,
        dims=(width, height),
        strides=(width * BYTES[dtype],),
        box=tuple(meta["block_size"])[::-1],
        element_strides=(1, 1),
        swizzle={0: 0, 1: 32, 2: 64, 3: 128}[meta["swizzle"]],
        l2_promotion=2,
    )


def build(row: Row) -> Artifact:
    types, attributes = signature(row)
    source = ASTSource(row.kernel, types, row.constants, attributes)
    compiled = triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": row.warps, "ptx_version": 88}
    )
    meta, ptx = compiled.metadata, compiled.asm["ptx"]
    buffers = [BufferInfo(name, shape, dtype, role) for name, dtype, shape, role in arrays_of(row)]
    grid = (*row.grid, 1) if isinstance(row.grid, tuple) else (row.grid, 1, 1)
    scratch = max(16, meta.global_scratch_size * math.prod(grid))
    buffers += [BufferInfo("scratch", (scratch,), "uint8", "inout")]
    buffers += [BufferInfo("profile", (16,), "uint8", "inout")]
    registers, cubin = assembled(ptx)
    return Artifact(
        arch="sm_90a",
        entry=meta.name,
        cuda="",
        ptx=ptx,
        cubin=cubin,
        grid=grid,
        block=(32 * meta.num_warps, 1, 1),
        cluster=(1, 1, 1),
        shared_bytes=meta.shared,
        params=params_of(row, list(meta.tensordesc_meta or [])),
        buffers=tuple(buffers),
        registers=registers,
        tools={"triton": triton.__version__},
    )


def arrays_of(row: Row) -> list[tuple]:
    return [argument for argument in row.args if len(argument) == 4]


def assembled(ptx: str) -> tuple[int, bytes]:
    """(registers per thread, cubin) by the ptxas that Triton brings."""
    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        text.write_text(ptx)
        done = subprocess.run(
            [str(ptxas), "-arch=sm_90a", "-v", str(text), "-o", str(cubin)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr[:2000])
        registers = re.search(r"Used (\d+) registers", done.stderr)
        return int(registers[1]), cubin.read_bytes()


def save(rows: list[Row], out: Path) -> None:
    """The set: every row built, and index.json."""
    index, files = {}, {}
    for row in rows:
        artifact = build(row)
        index[row.name] = {"half": row.half, "flops": row.flops, "bytes": row.moved}
        files[f"{row.name}.lab"] = artifact.to_bytes()
        print(row.name, row.half, artifact.registers, artifact.shared_bytes, flush=True)
    store.save(out, files | {"index.json": json.dumps(index, indent=1).encode()})
    print(f"{len(index)} kernels, {out.stat().st_size} bytes")


if __name__ == "__main__":
    save(ROWS, Path(sys.argv[1]))
