"""Triton kernels of the fourth round: `python triton_fourth.py OUT.tar.xz [small]`. Needs Triton 3.9, no GPU.

Products of 8-bit and tf32 operands, of 8-bit weights, with two right sides, by one tile of TMA a CTA, over
plain pointers and persistent, of a triangle, of a convolution; attention that stops at the diagonal;
matrix-vector; streams: layer norm backward, cross entropy with its gradient, rotary embedding, sums of
columns, Adam, running sums, dropout, a depthwise convolution. No earlier round has these; the kinds that one
has come in other shapes. All of it is the half "unseen". "small" makes the same kernels at sizes that
right.py checks on ptxsim.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import triton
import triton.language as tl
from triton_bench import SMS, Row, attention, code, gemm, save
from triton_fourth_streams import streams
from triton_more import batched, fused, product, split_k


@triton.jit
def tile_of(number, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """(row, column) of a tile; GROUP rows of tiles are visited together."""
    tiles_m, tiles_n = M // BM, N // BN
    group = GROUP * tiles_n
    first = number // group * GROUP
    height = min(tiles_m - first, GROUP)
    return (first + number % group % height) * BM, number % group // height * BN


@triton.jit
def scaled(a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           STAGES: tl.constexpr):  # fmt: skip
    """C = A B^T * scale: of int8 (sums of int32), float8 or float32 (as tf32) on both sides."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    done = acc.to(tl.float32) * tl.load(scale_ptr + columns)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], done.to(c_ptr.dtype.element_ty))


@triton.jit
def weights(a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            STAGES: tl.constexpr):  # fmt: skip
    """C = A B^T * scale: A float16, B int8 that is widened on the way."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at).to(tl.float16), acc)
        a_at += BK
        b_at += BK
    done = acc * tl.load(scale_ptr + columns)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], done.to(c_ptr.dtype.element_ty))


@triton.jit
def dual(a_ptr, gate_ptr, up_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         STAGES: tl.constexpr):  # fmt: skip
    """C = SiLU(A G^T) * (A U^T)"""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    gate_at = gate_ptr + columns[None, :] * K + depth[:, None]
    up_at = up_ptr + columns[None, :] * K + depth[:, None]
    gate, up = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        a = tl.load(a_at)
        gate = tl.dot(a, tl.load(gate_at), gate)
        up = tl.dot(a, tl.load(up_at), up)
        a_at += BK
        gate_at += BK
        up_at += BK
    done = gate * tl.sigmoid(gate) * up
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], done.to(c_ptr.dtype.element_ty))


@triton.jit
def looping(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
            STAGES: tl.constexpr):  # fmt: skip
    """C = A B^T over plain pointers; a CTA takes one tile after another."""
    depth = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), M // BM * (N // BN), tl.num_programs(0)):
        row, column = tile_of(tile, M, N, BM, BN, 8)
        rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
        a_at = a_ptr + rows[:, None] * K + depth[None, :]
        b_at = b_ptr + columns[None, :] * K + depth[:, None]
        acc = tl.zeros((BM, BN), tl.float32)
        for _ in tl.range(0, K, BK, num_stages=STAGES):
            acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
            a_at += BK
            b_at += BK
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def triangular(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               STAGES: tl.constexpr):  # fmt: skip
    """C = A B^T with A lower triangular (M, M): a tile of rows needs no columns past its last row."""
    tiles_n = N // BN
    row = tl.program_id(0) // tiles_n * BM
    rows = row + tl.arange(0, BM)
    columns = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, row + BM, BK, num_stages=STAGES):
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :])
        a = tl.where(rows[:, None] >= k + depth[None, :], a, 0.0)
        acc = tl.dot(a, tl.load(b_at), acc)
        b_at += BK
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def convolution(x_ptr, weight_ptr, out_ptr, high, wide, channels, filters, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """3 x 3 with a border of zeros, as a product: rows are pixels, columns filters, depth 9 * channels."""
    tiles_n = filters // BN
    rows = tl.program_id(0) // tiles_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    y, x = rows // wide % high, rows % wide
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, 9 * channels, BK, num_stages=STAGES):
        tap = k // channels
        down, right = tap // 3 - 1, tap % 3 - 1
        inside = (y + down >= 0) & (y + down < high) & (x + right >= 0) & (x + right < wide)
        pixels = rows + down * wide + right
        at = x_ptr + pixels[:, None] * channels + k % channels + depth[None, :]
        a = tl.load(at, mask=inside[:, None], other=0.0)
        b = tl.load(weight_ptr + columns[None, :] * 9 * channels + k + depth[:, None])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + rows[:, None] * filters + columns[None, :], acc.to(out_ptr.dtype.element_ty))


@triton.jit
def causal(q_ptr, k_ptr, v_ptr, out_ptr, length, scale, ROWS: tl.constexpr, KEYS: tl.constexpr,
           DIM: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """Causal attention of several heads; no block of keys past the diagonal is visited."""
    blocks = length // ROWS
    base, block = tl.program_id(0) // blocks * length, tl.program_id(0) % blocks
    rows, dims = block * ROWS + tl.arange(0, ROWS), tl.arange(0, DIM)
    q = tl.load(q_ptr + (base + rows)[:, None] * DIM + dims[None, :])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in tl.range(0, (block + 1) * ROWS, KEYS, num_stages=STAGES):
        keys = start + tl.arange(0, KEYS)
        k = tl.load(k_ptr + (base + keys)[None, :] * DIM + dims[:, None])
        score = tl.dot(q, k) * scale
        score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + (base + keys)[:, None] * DIM + dims[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        top = new_top
    at = out_ptr + (base + rows)[:, None] * DIM + dims[None, :]
    tl.store(at, (acc / total[:, None]).to(tl.float16))


# ---- rows ----


def name_of(kind: str, size, tile, stages: int, warps: int, dtype: str) -> str:
    shapes = "_".join("x".join(map(str, part)) for part in (size, tile))
    return f"{kind}_{shapes}_s{stages}_w{warps}_{dtype}"


def of_tiles(kernel, size, tile, stages: int, warps: int, dtype: str, out: str = "") -> Row:
    """A product of this file with one right side, or two."""
    (m, n, k), (bm, bn, bk) = size, tile
    sides = ["gate", "up"] if kernel is dual else ["b"]
    args = [("a", dtype, (m, k), "in")]
    args += [(b, "int8" if kernel is weights else dtype, (n, k), "in") for b in sides]
    if kernel in (scaled, weights):
        args.append(("scale", "float32", (n,), "in"))
    args += [("c", out or dtype, (m, n), "out"), ("M", m), ("N", n), ("K", k)]
    tiles = m // bm * (n // bn)
    grid = min(tiles, SMS) if kernel is looping else tiles
    work = 2.0 * m * n * k * len(sides)
    if kernel is triangular:
        work = 1.0 * m * n * (m + bm)
    name = name_of(kernel.__name__, size, tile, stages, warps, dtype)
    return Row(name, kernel, args, dict(BM=bm, BN=bn, BK=bk, STAGES=stages), grid, warps, work)


def described(size, tile, stages: int, warps: int, dtype: str = "float16") -> Row:
    """A tile a CTA by TMA."""
    (m, n, k), (bm, bn, bk) = size, tile
    args = [("a", dtype, (m, k), "in"), ("b", dtype, (n, k), "in"), ("c", "float16", (m, n), "out"), ("K", k)]
    maps = {"a": [bm, bk], "b": [bn, bk], "c": [bm, bn]}
    grid = (m // bm, n // bn)
    name = name_of("described", size, tile, stages, warps, dtype)
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages)
    return Row(name, code.matmul_described, args, constants, grid, warps, 2.0 * m * n * k, maps)


def image(
    images: int, high: int, wide: int, channels: int, filters: int, tile, stages: int, warps: int
) -> Row:
    pixels, (bm, bn, bk) = images * high * wide, tile
    args = [("x", "float16", (pixels, channels), "in"), ("weight", "float16", (filters, 9 * channels), "in")]
    args += [("out", "float16", (pixels, filters), "out"), ("high", high), ("wide", wide)]
    args += [("channels", channels), ("filters", filters)]
    grid = pixels // bm * (filters // bn)
    size = images, high, wide, channels, filters
    name = name_of("convolution", size, tile, stages, warps, "float16")
    constants = dict(BM=bm, BN=bn, BK=bk, STAGES=stages)
    return Row(name, convolution, args, constants, grid, warps, 18.0 * pixels * channels * filters)


def heads(count: int, length: int, dim: int, rows: int, keys: int, warps: int, stages: int = 2) -> Row:
    args = [(n, "float16", (count * length, dim), "in") for n in "qkv"]
    args += [("out", "float16", (count * length, dim), "out"), ("length", length), ("scale", 0.18)]
    name = f"causal_{count}x{length}x{dim}_{rows}x{keys}_s{stages}_w{warps}"
    constants = dict(ROWS=rows, KEYS=keys, DIM=dim, STAGES=stages)
    return Row(name, causal, args, constants, count * (length // rows), warps, 2.0 * count * length**2 * dim)


def products() -> list[Row]:
    return [
        gemm("grouped", (2432, 2944, 1664), (128, 128, 64), 4, 8, "bfloat16"),
        gemm("grouped", (1472, 6016, 832), (64, 128, 64), 3, 4),
        gemm("persistent", (3072, 4352, 1408), (128, 128, 64), 3, 4, "bfloat16"),
        gemm("persistent", (2304, 3712, 2752), (256, 128, 64), 3, 8),
        product(batched, (384, 640, 512), (128, 128, 64), 3, 4, "float16", batch=40),
        product(fused, (3200, 2432, 960), (128, 128, 32), 5, 4, "bfloat16"),
        product(split_k, (896, 1408, 9216), (128, 128, 64), 3, 8, "float16", split=3),
        of_tiles(scaled, (2816, 3712, 1664), (128, 128, 128), 3, 8, "int8", "float16"),
        of_tiles(scaled, (3456, 2304, 1792), (128, 256, 128), 3, 8, "float8_e4m3fn", "bfloat16"),
        of_tiles(scaled, (1920, 2688, 736), (128, 128, 32), 3, 8, "float32"),
        of_tiles(weights, (1664, 3584, 1216), (128, 128, 64), 3, 8, "float16"),
        of_tiles(dual, (2304, 2816, 1344), (128, 128, 64), 3, 8, "bfloat16"),
        described((2688, 3328, 1856), (128, 128, 64), 4, 4),
        of_tiles(looping, (3584, 2176, 1600), (128, 128, 64), 3, 8, "bfloat16"),
        of_tiles(triangular, (3200, 1536, 3200), (128, 128, 64), 3, 8, "float16"),
        image(12, 48, 40, 192, 384, (128, 128, 64), 3, 8),
        attention(9600, 64, 32, 128, 4, 3),
        heads(12, 2304, 128, 128, 64, 8),
        heads(20, 1920, 32, 64, 64, 4, 3),
    ]


def small_products() -> list[Row]:
    """The kinds above at sizes for ptxsim."""
    return [
        gemm("grouped", (256, 384, 192), (128, 128, 64), 4, 8, "bfloat16"),
        gemm("grouped", (128, 256, 192), (64, 128, 64), 3, 4),
        gemm("persistent", (256, 384, 192), (128, 128, 64), 3, 4, "bfloat16"),
        gemm("persistent", (256, 512, 320), (256, 128, 64), 3, 8),
        product(batched, (128, 256, 128), (128, 128, 64), 3, 4, "float16", batch=2),
        product(fused, (256, 128, 160), (128, 128, 32), 5, 4, "bfloat16"),
        product(split_k, (128, 256, 576), (128, 128, 64), 3, 8, "float16", split=3),
        of_tiles(scaled, (256, 256, 384), (128, 128, 128), 3, 8, "int8", "float16"),
        of_tiles(scaled, (256, 256, 384), (128, 256, 128), 3, 8, "float8_e4m3fn", "bfloat16"),
        of_tiles(scaled, (256, 128, 160), (128, 128, 32), 3, 8, "float32"),
        of_tiles(weights, (256, 256, 192), (128, 128, 64), 3, 8, "float16"),
        of_tiles(dual, (256, 256, 192), (128, 128, 64), 3, 8, "bfloat16"),
        described((256, 384, 192), (128, 128, 64), 4, 4),
        replace(of_tiles(looping, (384, 256, 192), (128, 128, 64), 3, 8, "bfloat16"), grid=4),
        of_tiles(triangular, (384, 128, 384), (128, 128, 64), 3, 8, "float16"),
        image(2, 8, 16, 64, 128, (128, 128, 64), 3, 8),
        attention(256, 64, 32, 128, 4, 3),
        heads(2, 256, 128, 128, 64, 8),
        heads(2, 192, 32, 64, 64, 4, 3),
    ]


if __name__ == "__main__":
    small = sys.argv[2:] == ["small"]
    made = [*(small_products() if small else products()), *streams(small)]
    save([replace(row, half="unseen") for row in made], Path(sys.argv[1]))
