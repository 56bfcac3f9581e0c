"""Kernels in Triton, compiled for three architectures without a GPU: `python triton_kernels.py OUT_DIR`.

Run by make.py with the Python of a virtual environment that has Triton. Writes NAME.ptx per kernel and
architecture and index.json, the launches. Arguments are described as in cases.py.
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from spec import array, launch, output, save, scalar
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_masked(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def softmax_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=float("-inf"))
    grown = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, grown / tl.sum(grown, axis=0), mask=inside)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        centred = tl.where(at < columns, x - mean, 0.0)
        square += centred * centred
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0)
        tl.store(out_ptr + row * columns + at, (x - mean) * scale * weight + bias, mask=inside)


@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0)
    tl.atomic_add(bins_ptr + x, tl.full((BLOCK,), 1, tl.int32), mask=inside)


@triton.jit
def histogram_block(x_ptr, bins_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@triton.jit
def scan_rows(x_ptr, out_ptr, best_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.cumsum(x, axis=1))
    tl.store(best_ptr + tl.arange(0, ROWS), tl.argmax(x, axis=1))


@triton.jit
def sort_rows(x_ptr, out_ptr, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def through_fp8(x_ptr, e4m3_ptr, e5m2_ptr, back_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    small, wide = x.to(tl.float8e4nv), x.to(tl.float8e5)
    tl.store(e4m3_ptr + at, small)
    tl.store(e5m2_ptr + at, wide)
    tl.store(back_ptr + at, small.to(tl.float32) + wide.to(tl.float32))


@triton.jit
def special_functions(x_ptr, out_ptr, whole_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    y = tl.sin(x) + tl.log(x + 5.0) + tl.sqrt(x + 5.0) + tl.exp2(x) + tl.erf(x) + tl.floor(x)
    tl.store(out_ptr + at, y, mask=at < n)
    number = (x * 1000).to(tl.int32)
    tl.store(whole_ptr + at, number // 7 + number % 13 + tl.umulhi(at, number), mask=at < n)


@triton.jit
def random_numbers(out_ptr, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.randint(seed, at))


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        depth = k + tl.arange(0, BK)
        in_a = (rows[:, None] < M) & (depth[None, :] < K)
        in_b = (depth[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + depth[:, None] * N + columns[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    at = rows[:, None] * N + columns[None, :]
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def matmul_described(
    a_map, b_map, c_map, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
    c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def matmul_persistent(
    a_map,
    b_map,
    c_map,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    ROLES: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=not ROLES, warp_specialize=ROLES
    ):
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, num_stages=STAGES):
            acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
        c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def matmul_own_maps(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    a_map = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c_map = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
    c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    STAGES: tl.constexpr,
):
    rows, dims = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, DIM)
    q = tl.load(q_ptr + rows[:, None] * DIM + dims[None, :])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in tl.range(0, length, KEYS, num_stages=STAGES):
        keys = start + tl.arange(0, KEYS)
        k = tl.load(k_ptr + keys[None, :] * DIM + dims[:, None])
        score = tl.dot(q, k) * scale
        score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        top = new_top
    tl.store(out_ptr + rows[:, None] * DIM + dims[None, :], (acc / total[:, None]).to(tl.float16))


def described(name, dtype, rows, columns, fill="normal"):
    """A tensor descriptor of the host: tensor map, extents (i32) and strides (i64)."""
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


def described_gemm(kernel, m, n, k, bm, bn, bk, grid=None, roles=None, stages=3, archs=(90, 100), **more):
    """One of the matmuls that load through tensor maps; b is (n, k)."""
    own = kernel is matmul_own_maps
    make = array if own else described
    args = [make("a", "float16", m, k), make("b", "float16", n, k), make("c", "float16", m, n, fill="zeros")]
    args += (
        [scalar("K", k)] if kernel is matmul_described else [scalar("M", m), scalar("N", n), scalar("K", k)]
    )
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages) | ({} if roles is None else {"ROLES": roles})
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
    """(types by parameter name, attributes): arrays and extents that 16 divides are said to be so."""
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
    built = [build(e, arch) for e in elementwise_cases() + tensor_cases() for arch in e["archs"]]
    save(folder, {name: (ptx, spec) for name, ptx, spec in built})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
