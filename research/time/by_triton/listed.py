"""The rows of the first four rounds, which were chosen by hand."""

from __future__ import annotations

from dataclasses import replace

from research.time.by_triton import more_streams as more
from research.time.by_triton.attention import attention, heads
from research.time.by_triton.kinds import dual, image, looping, of_tiles, scaled, triangular, weights
from research.time.by_triton.products import batched, described, fused, gemm, product, split_k
from research.time.by_triton.row import Row
from research.time.by_triton.streams import (
    add,
    backward,
    entropy,
    gated,
    layer_norm,
    log_sum_exp,
    rms_norm,
    rows_of,
    softmax,
    sums,
    turned,
    turning,
    vector,
)  # fmt: skip


def unseen(rows: list[Row]) -> list[Row]:
    return [replace(row, half="unseen") for row in rows]


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


def streams() -> list[Row]:
    """Kernels that only move data."""
    shapes = ((8192, 4096), (4096, 8192), (32768, 1024))
    rows = [add(1 << 26, block) for block in (1024, 4096)]
    return rows + [make(*shape) for shape in shapes for make in (softmax, layer_norm)]


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
    return unseen(rows)


def third() -> list[Row]:
    return [
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


def fourth_products() -> list[Row]:
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


def small_fourth_products() -> list[Row]:
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


def fourth_streams(small: bool) -> list[Row]:
    """The rows, at the sizes of the round, or of ptxsim."""
    if small:
        return [
            rows_of(gated, 4, 1400, 512, 4, "float16"),
            vector(32, 700, 8, 256, 4),
            backward(5, 1500, 2048, 8),
            entropy(3, 3000, 1024, 8),
            turning(5, 16, 64, 4),
            sums(96, 256, 2, 8, 128, 4),
            more.flat(more.adam, 3072, 512, 4),
            more.flat(more.dropout, 3072, 1024, 4),
            more.running(3, 1100, 512, 4),
            more.taps(64, 256, 16, 128, 4),
        ]
    return [
        rows_of(gated, 7000, 3328, 512, 4, "float16"),
        vector(14_000, 6_912, 8, 256, 4),
        backward(11_000, 3_072, 4096, 8),
        entropy(1_800, 50_304, 2048, 8),
        turning(9_000, 32, 64, 4),
        sums(18_432, 3_584, 16, 8, 128, 4),
        more.flat(more.adam, 13_107_200, 512, 4),
        more.flat(more.dropout, 40_960_000, 1024, 4),
        more.running(5_000, 5_120, 1024, 4),
        more.taps(12_288, 2_816, 16, 128, 4),
    ]
