"""Products of other kinds: 8-bit and tf32 operands, two right sides, looping CTAs, a triangle, 3 x 3."""

from __future__ import annotations

import triton
import triton.language as tl

from research.time.by_triton.row import SMS, Row, name_of


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
    """A 3 x 3 convolution with a border of zeros, as a product: rows are pixels, columns filters, depth 9 *
    channels.
    """
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


# ---- rows ----


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
