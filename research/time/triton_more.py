"""Triton kernels of the third round: `python triton_more.py OUT.tar.xz`. Needs what triton_bench.py needs.

Its matmuls, attention and streams in configurations that no earlier round has, and kinds that none has: a
product split along K, batches, a fused epilogue, a gated activation, RMS norm, a transposition, log-sum-exp.
All of it is the half "unseen".
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import triton
import triton.language as tl
from triton_bench import Row, attention, gemm, layer_norm, save, softmax


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


@triton.jit
def gated(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """out = SiLU(x[:, :columns]) * x[:, columns:]"""
    row = tl.program_id(0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        gate = tl.load(x_ptr + row * 2 * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        up = tl.load(x_ptr + row * 2 * columns + columns + at, mask=at < columns, other=0.0).to(tl.float32)
        done = gate * tl.sigmoid(gate) * up
        tl.store(out_ptr + row * columns + at, done.to(out_ptr.dtype.element_ty), mask=at < columns)


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + at, (x * scale * weight).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def transpose(x_ptr, out_ptr, height, width, BLOCK: tl.constexpr):
    across = width // BLOCK
    rows = tl.program_id(0) // across * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * width + columns[None, :])
    tl.store(out_ptr + columns[:, None] * height + rows[None, :], tl.trans(x))


@triton.jit
def log_sum_exp(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """One pass with a running maximum, as the loss of a language model takes it."""
    row = tl.program_id(0)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-65000.0).to(tl.float32)
        higher = tl.maximum(most, x)
        total = total * tl.exp(most - higher) + tl.exp(x - higher)
        most = higher
    top = tl.max(most, axis=0)
    tl.store(out_ptr + row, top + tl.log(tl.sum(total * tl.exp(most - top), axis=0)))


def product(kernel, size, tile, stages: int, warps: int, dtype: str, batch: int = 1, split: int = 0) -> Row:
    """A matmul of this file."""
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


def rows_of(kernel, height: int, width: int, block: int, warps: int, dtype: str = "float16") -> Row:
    """A kernel with one CTA for each row."""
    x = ("x", dtype, (height, 2 * width if kernel is gated else width), "in")
    args = [x, ("out", dtype, (height, width), "out"), ("columns", width)]
    if kernel is rms_norm:
        args = [x, ("weight", "float32", (width,), "in"), *args[1:], ("eps", 1e-6)]
    if kernel is log_sum_exp:
        args[1] = ("out", "float32", (height,), "out")
    name = f"{kernel.__name__}_{height}x{width}_{block}_w{warps}"
    return Row(name, kernel, args, dict(BLOCK=block), height, warps, 4.0 * height * width)


def turned(height: int, width: int, block: int, warps: int) -> Row:
    args = [("x", "float16", (height, width), "in"), ("out", "float16", (width, height), "out")]
    args += [("height", height), ("width", width)]
    grid = height // block * (width // block)
    name = f"transpose_{height}x{width}_{block}"
    return Row(name, transpose, args, dict(BLOCK=block), grid, warps, float(height * width))


ROWS = [
    gemm("grouped", (2176, 3456, 1600), (128, 128, 64), 4, 8, "bfloat16"),
    gemm("grouped", (1664, 5888, 960), (64, 128, 32), 5, 4),
    gemm("grouped", (3968, 2304, 4160), (128, 64, 64), 3, 4, "bfloat16"),
    gemm("grouped", (4736, 2560, 8192), (128, 256, 64), 3, 8),
    gemm("persistent", (3968, 3456, 1600), (128, 128, 64), 4, 8, "bfloat16"),
    gemm("persistent", (1280, 7680, 2368), (128, 256, 64), 2, 8),
    gemm("persistent", (2432, 2560, 9728), (64, 256, 64), 3, 4, "bfloat16"),
    product(split_k, (1152, 1280, 8192), (128, 128, 64), 3, 4, "bfloat16", split=4),
    product(split_k, (640, 896, 15360), (64, 128, 64), 4, 4, "float16", split=6),
    product(batched, (512, 768, 640), (128, 128, 32), 4, 4, "bfloat16", batch=24),
    product(batched, (256, 256, 256), (64, 64, 64), 2, 4, "float16", batch=96),
    product(fused, (2816, 3072, 1280), (128, 128, 64), 3, 8, "bfloat16"),
    product(fused, (1408, 6656, 704), (128, 256, 64), 3, 8, "float16"),
    attention(4224, 64, 128, 64, 4, 3),
    attention(6336, 128, 32, 128, 8),
    attention(10560, 64, 64, 128, 4),
    softmax(24000, 512),
    softmax(3000, 16384),
    layer_norm(5000, 6144),
    rows_of(rms_norm, 9000, 4096, 4096, 8),
    rows_of(gated, 6000, 5632, 1024, 4, "bfloat16"),
    rows_of(log_sum_exp, 4000, 32000, 2048, 8),
    turned(6144, 4096, 64, 4),
]

if __name__ == "__main__":
    save([replace(row, half="unseen") for row in ROWS], Path(sys.argv[1]))
