"""Builds a row for sm_90a without a GPU, and saves a set of rows: a store of artifacts and index.json.

index.json says what each computes: floating-point operations, bytes that must move, and the half of the set
it belongs to. Constants of the time model may be fitted to the half "calibration", never to "unseen".
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from research import store
from research.time.by_triton.row import BYTES, TYPES, Row
from research.time.sass_counts import assembled
from tirxlab.artifact import Artifact, BufferInfo, BufferParam, ScalarParam, TensorMapParam

PTXAS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"


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
    """The PTX parameters: extents and strides follow each tensor map; two pointers come last."""
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
    registers, cubin = assembled(ptx, PTXAS)
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


def save(rows: list[Row], out: Path) -> None:
    """Builds every row and saves the set with its index.json."""
    index, files = {}, {}
    for row in rows:
        artifact = build(row)
        index[row.name] = {"half": row.half, "flops": row.flops, "bytes": row.moved}
        files[f"{row.name}.lab"] = artifact.to_bytes()
        print(row.name, row.half, artifact.registers, artifact.shared_bytes, flush=True)
    store.save(out, files | {"index.json": json.dumps(index, indent=1).encode()})
    print(f"{len(index)} kernels, {out.stat().st_size} bytes")
