"""Products of halves: in groups of tiles, persistent by TMA, split along K, in batches, with an epilogue."""

from __future__ import annotations

import triton
import triton.language as tl

from research.foreign import triton_code as code
from research.time.by_triton.row import SMS, TYPES, Row, name_of


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


@triton.jit
def split_k(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            STAGES: tl.constexpr, SPLIT: tl.constexpr):  # fmt: skip
    """C += A B^T in float32, K in SPLIT parts, each added by atomics."""
    tiles_n = N // BN
    tile, part = tl.program_id(0) // SPLIT, tl.program_id(0) % SPLIT
    rows = tile // tiles_n * BM + tl.arange(0, BM)
    columns = tile % tiles_n * BN + tl.arange(0, BN)
    depth = part * (K // SPLIT) + tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K // SPLIT, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    tl.atomic_add(c_ptr + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            STAGES: tl.constexpr):  # fmt: skip
    """C[i] = A[i] B[i]^T for a batch of matrices."""
    tiles_n = N // BN
    tiles = M // BM * tiles_n
    batch, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    rows = tile // tiles_n * BM + tl.arange(0, BM)
    columns = tile % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + batch * M * K + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + batch * N * K + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    out = c_ptr + batch * M * N + rows[:, None] * N + columns[None, :]
    tl.store(out, acc.to(c_ptr.dtype.element_ty))


@triton.jit
def fused(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
          STAGES: tl.constexpr):  # fmt: skip
    """C = GELU(A B^T + bias), by the sigmoid form."""
    tiles_n = N // BN
    rows = tl.program_id(0) // tiles_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    x = acc + tl.load(bias_ptr + columns)[None, :]
    x = x * tl.sigmoid(1.702 * x)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], x.to(c_ptr.dtype.element_ty))


# ---- rows ----


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


def product(kernel, size, tile, stages: int, warps: int, dtype: str, batch: int = 1, split: int = 0) -> Row:
    """A row for a matmul of this file."""
    (m, n, k), (bm, bn, bk) = size, tile
    out = "float32" if split else dtype
    args = [("a", dtype, (batch * m, k), "in"), ("b", dtype, (batch * n, k), "in")]
    if kernel is fused:
        args.append(("bias", "float32", (n,), "in"))
    args += [("c", out, (batch * m, n), "inout" if split else "out"), ("M", m), ("N", n), ("K", k)]
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages) | ({"SPLIT": split} if split else {})
    grid = batch * (m // bm) * (n // bn) * max(1, split)
    name = f"{kernel.__name__}_{batch}x{m}x{n}x{k}_{bm}x{bn}x{bk}_s{stages}_w{warps}_{dtype}"
    return Row(name, kernel, args, constants, grid, warps, 2.0 * batch * m * n * k)


def described(size, tile, stages: int, warps: int, dtype: str = "float16") -> Row:
    """A row with one tile per CTA, loaded by TMA."""
    (m, n, k), (bm, bn, bk) = size, tile
    args = [("a", dtype, (m, k), "in"), ("b", dtype, (n, k), "in"), ("c", "float16", (m, n), "out"), ("K", k)]
    maps = {"a": [bm, bk], "b": [bn, bk], "c": [bm, bn]}
    grid = (m // bm, n // bn)
    name = name_of("described", size, tile, stages, warps, dtype)
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages)
    return Row(name, code.matmul_described, args, constants, grid, warps, 2.0 * m * n * k, maps)
