"""Kernels in Triton, compiled for three architectures without a GPU: `python triton_kernels.py OUT_DIR`.

Run by make.py with the Python of a virtual environment that has Triton. Writes NAME.ptx per kernel and
architecture and index.json, the launches. Arguments are described as in cases.py.
"""

import sys
from pathlib import Path

import triton
from spec import array, launch, output, save, scalar
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_code import (
    add_masked,
    add_to_tile,
    attention,
    gathered,
    histogram,
    histogram_block,
    largest,
    layer_norm,
    matmul,
    matmul_described,
    matmul_own_maps,
    matmul_persistent,
    random_numbers,
    scan_rows,
    small_tile,
    softmax_rows,
    sort_rows,
    special_functions,
    through_fp8,
)  # fmt: skip


def described(name, dtype, rows, columns, fill="normal"):
    """A tensor descriptor made by the host: tensor map, extents (i32) and strides (i64)."""
    return {"map": name, "dtype": dtype, "shape": [rows, columns], "fill": fill}


POINTERS = {
    "float32": "*fp32",
    "float16": "*fp16",
    "int32": "*i32",
    "bfloat16": "*bf16",
    "int8": "*i8",
    "float8_e4m3fn": "*fp8e4nv",
    "float8_e5m2": "*fp8e5",
}
SCALARS = {"int32": "i32", "float32": "fp32"}
ALL = (80, 90, 100)


def case(kernel, computes, args, constants, grid, archs=ALL, suffix="", blocks=None):
    return dict(
        kernel=kernel,
        computes=computes,
        args=args,
        constants=constants,
        grid=grid,
        archs=archs,
        suffix=suffix,
        blocks=blocks or {},
    )


def gemm(m, n, k, bm, bn, bk, dtype="float16", out="float32", stages=3, **more):
    """matmul over plain pointers."""
    args = [
        array("a", dtype, m, k),
        array("b", dtype, k, n),
        output("c", out, m, n),
        scalar("M", m),
        scalar("N", n),
        scalar("K", k),
    ]
    grid = [-(-m // bm), -(-n // bn), 1]
    return case(matmul, "matmul", args, dict(BM=bm, BN=bn, BK=bk, STAGES=stages), grid, **more)


def described_gemm(kernel, m, n, k, bm, bn, bk, grid=None, roles=None, archs=(90, 100), **more):
    """One of the matmuls that load through tensor maps; b is (n, k)."""
    own = kernel is matmul_own_maps
    make = array if own else described
    args = [make("a", "float16", m, k), make("b", "float16", n, k), make("c", "float16", m, n, fill="zeros")]
    args += (
        [scalar("K", k)] if kernel is matmul_described else [scalar("M", m), scalar("N", n), scalar("K", k)]
    )
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=3) | ({} if roles is None else {"ROLES": roles})
    blocks = {"a": [bm, bk], "b": [bn, bk], "c": [bm, bn]}
    grid = grid or [m // bm, n // bn, 1]
    return case(kernel, "matmul_nt", args, constants, grid, archs, blocks=blocks, **more)


def elementwise_cases():
    x, y = array("x", "float32", 1000), array("y", "float32", 1000)
    wide = array("x", "float32", 6, 781)
    norm = [
        array("x", "float16", 5, 700),
        array("weight", "float32", 700),
        array("bias", "float32", 700),
        output("out", "float32", 5, 700),
        scalar("columns", 700),
        scalar("eps", 1e-5, "float32"),
    ]
    numbers = array("x", "int32", 1000, fill="below 32")
    bins = output("bins", "int32", 32)
    return [
        case(
            add_masked,
            "add",
            [x, y, output("out", "float32", 1000), scalar("n", 1000)],
            dict(BLOCK=256),
            [4, 1, 1],
        ),
        case(
            softmax_rows,
            "softmax",
            [wide, output("out", "float32", 6, 781), scalar("columns", 781)],
            dict(BLOCK=1024),
            [6, 1, 1],
        ),
        case(layer_norm, "layer_norm", norm, dict(BLOCK=256), [5, 1, 1]),
        case(histogram, "histogram", [numbers, bins, scalar("n", 1000)], dict(BLOCK=256), [4, 1, 1]),
        case(
            histogram_block,
            "histogram",
            [array("x", "int32", 1024, fill="below 32"), bins],
            dict(BLOCK=512, BINS=32),
            [2, 1, 1],
        ),
        case(
            scan_rows,
            "scan",
            [array("x", "float32", 16, 64), output("out", "float32", 16, 64), output("best", "int32", 16)],
            dict(ROWS=16, COLUMNS=64),
            [1, 1, 1],
        ),
        case(
            sort_rows,
            "sort",
            [array("x", "int32", 3, 128, fill="below 1000"), output("out", "int32", 3, 128)],
            dict(COLUMNS=128),
            [3, 1, 1],
        ),
        case(
            through_fp8,
            "fp8",
            [
                array("x", "float32", 512),
                output("e4m3", "float8_e4m3fn", 512),
                output("e5m2", "float8_e5m2", 512),
                output("back", "float32", 512),
            ],
            dict(BLOCK=512),
            [1, 1, 1],
            archs=(90, 100),
        ),
        case(
            special_functions,
            "special",
            [x, output("out", "float32", 1000), output("whole", "int32", 1000), scalar("n", 1000)],
            dict(BLOCK=512),
            [2, 1, 1],
        ),
        case(
            random_numbers,
            "philox",
            [output("out", "int32", 256), scalar("seed", 7)],
            dict(BLOCK=256),
            [1, 1, 1],
        ),
    ]


def small_cases():
    """Tiles with fewer elements than threads: each warp has a copy."""
    row = array("x", "float32", 256)
    index = array("index", "int32", 256, fill="below 256")
    tiles = array("x", "float32", 2, 32, 32)
    return [
        case(
            small_tile,
            "tile_sums",
            [array("x", "float32", 4, 16), output("out", "float32", 4, 16)],
            dict(ROWS=4, COLUMNS=16),
            [1, 1, 1],
        ),
        case(largest, "largest", [row, output("out", "float32", 8)], dict(BLOCK=256, COUNT=8), [1, 1, 1]),
        case(gathered, "gathered", [row, index, output("out", "float32", 256)], dict(BLOCK=256), [1, 1, 1]),
        case(
            add_to_tile,
            "tile_total",
            [tiles, output("out", "float32", 64, 64)],
            dict(SIZE=64, ROWS=32, COLUMNS=32),
            [2, 1, 1],
            archs=(90, 100),
        ),
        gemm(16, 16, 32, 16, 16, 16, suffix="_small"),
    ]


def tensor_cases():
    attend = [
        *(array(name, "float16", 128, 64) for name in "qkv"),
        output("out", "float16", 128, 64),
        scalar("length", 128),
        scalar("scale", 0.18, "float32"),
    ]
    return [
        gemm(100, 72, 96, 64, 64, 32),
        gemm(128, 128, 192, 128, 128, 64, suffix="_full"),
        gemm(64, 64, 64, 64, 64, 32, dtype="bfloat16", suffix="_bf16"),
        gemm(64, 64, 64, 64, 64, 32, dtype="float32", suffix="_tf32"),
        gemm(64, 64, 128, 64, 64, 64, dtype="float8_e4m3fn", suffix="_fp8", archs=(90, 100)),
        gemm(64, 64, 64, 64, 64, 32, dtype="int8", out="int32", suffix="_int8", archs=(80,)),
        case(attention, "attention", attend, dict(ROWS=64, KEYS=32, DIM=64, STAGES=2), [2, 1, 1]),
        case(
            attention,
            "attention",
            attend,
            dict(ROWS=128, KEYS=32, DIM=64, STAGES=2),
            [1, 1, 1],
            suffix="_128",
            archs=(90, 100),
        ),
        described_gemm(matmul_described, 128, 128, 192, 128, 64, 64),
        described_gemm(matmul_persistent, 256, 128, 128, 128, 64, 64, grid=[2, 1, 1], roles=False),
        described_gemm(
            matmul_persistent,
            256,
            128,
            128,
            128,
            128,
            64,
            grid=[1, 1, 1],
            roles=True,
            suffix="_roles",
            archs=(100,),
        ),  # Triton 3.9 fails to compile it for sm_90
        described_gemm(matmul_own_maps, 128, 128, 128, 128, 64, 64),
    ]


def scalars_of(argument) -> list[str]:
    """Triton's types of one argument."""
    if "array" in argument:
        return POINTERS[argument["dtype"]]
    return SCALARS[argument["dtype"]]


def signature(entry) -> tuple[dict, dict]:
    """(types by parameter name, attributes); arrays and extents divisible by 16 are marked so."""
    names = [n for n in entry["kernel"].arg_names if n not in entry["constants"]]
    types, attributes = {}, {}
    for i, (name, argument) in enumerate(zip(names, entry["args"], strict=True)):
        if "map" in argument:
            block = entry["blocks"][argument["map"]]
            types[name] = f"tensordesc<{POINTERS[argument['dtype']][1:]}{block}>".replace(" ", "")
            continue
        types[name] = scalars_of(argument)
        if "array" in argument or argument["value"] % 16 == 0:
            attributes[(i,)] = [["tt.divisibility", 16]]
    return types | dict.fromkeys(entry["constants"], "constexpr"), attributes


SWIZZLE = {0: 0, 1: 32, 2: 64, 3: 128}


def launch_args(entry, compiled) -> list[dict]:
    """The PTX parameters: a tensor map is followed by its extents and strides; two pointers end the list."""
    found, metas = [], list(compiled.metadata.tensordesc_meta or [])
    for argument in entry["args"]:
        if "map" not in argument:
            found.append(argument)
            continue
        meta = metas.pop(0)
        rows, columns = argument["shape"]
        box = list(meta["block_size"])[::-1]
        found.append(argument | {"box": box, "swizzle": SWIZZLE[meta["swizzle"]]})
        found += [scalar("", rows), scalar("", columns), scalar("", columns, "int64"), scalar("", 1, "int64")]
    scratch = compiled.metadata.global_scratch_size * entry["grid"][0] * entry["grid"][1]
    return [*found, output("scratch", "uint8", max(scratch, 16)), output("profile", "uint8", 16)]


def build(entry, arch: int) -> tuple[str, str, dict]:
    """(name, PTX, launch) of a kernel."""
    types, attributes = signature(entry)
    source = ASTSource(entry["kernel"], types, entry["constants"], attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": 4})
    meta = compiled.metadata
    spec = launch(
        f"Triton {triton.__version__}",
        meta.name,
        entry["computes"],
        entry["grid"],
        [32 * meta.num_warps, 1, 1],
        launch_args(entry, compiled),
        shared=meta.shared,
    )
    return f"triton_{entry['kernel'].__name__}{entry['suffix']}_sm{arch}", compiled.asm["ptx"], spec


def main(folder: Path) -> None:
    built = [
        build(e, arch) for e in elementwise_cases() + small_cases() + tensor_cases() for arch in e["archs"]
    ]
    save(folder, {name: (ptx, spec) for name, ptx, spec in built})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
