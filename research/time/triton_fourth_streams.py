"""Triton kernels of the fourth round that move data rather than multiply; triton_fourth.py saves them."""

from __future__ import annotations

import triton
import triton.language as tl
from triton_bench import Row
from triton_more import gated, rows_of


@triton.jit
def matvec(a_ptr, x_ptr, out_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = A x"""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        a = tl.load(a_ptr + rows[:, None] * columns + at[None, :], mask=inside[None, :], other=0.0)
        x = tl.load(x_ptr + at, mask=inside, other=0.0)
        total += a.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(out_ptr + rows, tl.sum(total, axis=1))


@triton.jit
def norm_backward(x_ptr, grad_ptr, weight_ptr, mean_ptr, rate_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """The gradient of layer norm's input, from its saved mean and 1 / deviation."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
    mean, rate = tl.load(mean_ptr + row), tl.load(rate_ptr + row)
    normed = tl.where(inside, (x - mean) * rate, 0.0)
    grad = weight * grad
    along, across = tl.sum(normed * grad, axis=0) / columns, tl.sum(grad, axis=0) / columns
    done = (grad - (normed * along + across)) * rate
    tl.store(out_ptr + row * columns + at, done.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def cross_entropy(x_ptr, label_ptr, loss_ptr, grad_ptr, columns, BLOCK: tl.constexpr):
    """Loss of a row of logits, and its gradient: two passes over the row. A label counts modulo 64."""
    row = tl.program_id(0)
    label = tl.load(label_ptr + row) & 63
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=-65000.0).to(tl.float32)
        higher = tl.maximum(most, x)
        total = total * tl.exp(most - higher) + tl.exp(x - higher)
        most = higher
    top = tl.max(most, axis=0)
    whole = top + tl.log(tl.sum(total * tl.exp(most - top), axis=0))
    tl.store(loss_ptr + row, whole - tl.load(x_ptr + row * columns + label).to(tl.float32))
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        grad = tl.exp(x - whole) - tl.where(at == label, 1.0, 0.0)
        tl.store(grad_ptr + row * columns + at, grad.to(grad_ptr.dtype.element_ty), mask=at < columns)


@triton.jit
def rotary(x_ptr, cos_ptr, sin_ptr, out_ptr, HEADS: tl.constexpr, HALF: tl.constexpr):
    """Pairs of a head's two halves, turned by the token's angles."""
    token, pair = tl.program_id(0), tl.arange(0, HALF)
    at = token * HEADS * HALF * 2 + tl.arange(0, HEADS)[:, None] * HALF * 2 + pair[None, :]
    first, second = tl.load(x_ptr + at).to(tl.float32), tl.load(x_ptr + at + HALF).to(tl.float32)
    cos = tl.load(cos_ptr + token * HALF + pair)[None, :]
    sin = tl.load(sin_ptr + token * HALF + pair)[None, :]
    tl.store(out_ptr + at, (first * cos - second * sin).to(out_ptr.dtype.element_ty))
    tl.store(out_ptr + at + HALF, (second * cos + first * sin).to(out_ptr.dtype.element_ty))


@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, slabs, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[slab] = the sums over the slab's rows; a later kernel would add the slabs."""
    slab, block = tl.program_id(0) % slabs, tl.program_id(0) // slabs
    height = rows // slabs
    at = block * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, height, ROWS):
        here = slab * height + start + tl.arange(0, ROWS)
        total += tl.load(x_ptr + here[:, None] * columns + at[None, :]).to(tl.float32)
    tl.store(out_ptr + slab * columns + at, tl.sum(total, axis=0))


@triton.jit
def adam(grad_ptr, weight_ptr, mean_ptr, square_ptr, rate, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(grad_ptr + at).to(tl.float32)
    mean = 0.9 * tl.load(mean_ptr + at) + 0.1 * grad
    square = 0.999 * tl.load(square_ptr + at) + 0.001 * grad * grad
    weight = tl.load(weight_ptr + at) - rate * mean / (tl.sqrt(square) + 1e-8)
    tl.store(mean_ptr + at, mean)
    tl.store(square_ptr + at, square)
    tl.store(weight_ptr + at, weight)


@triton.jit
def running_sum(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    before = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        tl.store(out_ptr + row * columns + at, before + tl.cumsum(x, axis=0), mask=at < columns)
        before += tl.sum(x, axis=0)


@triton.jit
def dropout(x_ptr, other_ptr, out_ptr, seed, BLOCK: tl.constexpr):
    """out = dropout(x) + other, a tenth dropped: Philox for each number."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, other = tl.load(x_ptr + at).to(tl.float32), tl.load(other_ptr + at).to(tl.float32)
    kept = tl.where(tl.rand(seed, at) > 0.1, x * (1 / 0.9), 0.0)
    tl.store(out_ptr + at, (kept + other).to(out_ptr.dtype.element_ty))


@triton.jit
def four_taps(x_ptr, weight_ptr, out_ptr, channels, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    """SiLU of a convolution along time, each channel by itself: four taps, zeros before the first time."""
    across = channels // BLOCK
    times = tl.program_id(0) // across * TIMES + tl.arange(0, TIMES)
    at = tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((TIMES, BLOCK), tl.float32)
    for tap in tl.static_range(4):
        then = times + tap - 3
        x = tl.load(x_ptr + then[:, None] * channels + at[None, :], mask=(then >= 0)[:, None], other=0.0)
        total += x.to(tl.float32) * tl.load(weight_ptr + tap * channels + at).to(tl.float32)[None, :]
    done = total * tl.sigmoid(total)
    tl.store(out_ptr + times[:, None] * channels + at[None, :], done.to(out_ptr.dtype.element_ty))


# ---- rows: (kernel, its extents, its block) ----


def row(kernel, shape, args, constants: dict, grid: int, warps: int, each: float) -> Row:
    """`each`: operations for one number of `shape`."""
    count = 1.0
    for extent in shape:
        count *= extent
    name = f"{kernel.__name__}_{'x'.join(map(str, shape))}_{'x'.join(map(str, constants.values()))}_w{warps}"
    return Row(name, kernel, args, constants, grid, warps, each * count)


def vector(height: int, width: int, rows: int, block: int, warps: int) -> Row:
    args = [("a", "float16", (height, width), "in"), ("x", "float16", (width,), "in")]
    args += [("out", "float32", (height,), "out"), ("columns", width)]
    return row(matvec, (height, width), args, dict(ROWS=rows, BLOCK=block), height // rows, warps, 2)


def backward(height: int, width: int, block: int, warps: int) -> Row:
    args = [(n, "bfloat16", (height, width), "in") for n in ("x", "grad")]
    args += [("weight", "float32", (width,), "in")]
    args += [(n, "float32", (height,), "in") for n in ("mean", "rate")]
    args += [("out", "bfloat16", (height, width), "out"), ("columns", width)]
    return row(norm_backward, (height, width), args, dict(BLOCK=block), height, warps, 12)


def entropy(height: int, width: int, block: int, warps: int) -> Row:
    args = [("x", "bfloat16", (height, width), "in"), ("label", "int32", (height,), "in")]
    args += [("loss", "float32", (height,), "out"), ("grad", "bfloat16", (height, width), "out")]
    args += [("columns", width)]
    return row(cross_entropy, (height, width), args, dict(BLOCK=block), height, warps, 9)


def turning(tokens: int, heads: int, half: int, warps: int) -> Row:
    shape = tokens, heads * half * 2
    args = [("x", "bfloat16", shape, "in")] + [(n, "float32", (tokens, half), "in") for n in ("cos", "sin")]
    args += [("out", "bfloat16", shape, "out")]
    return row(rotary, shape, args, dict(HEADS=heads, HALF=half), tokens, warps, 3)


def sums(height: int, width: int, slabs: int, rows: int, block: int, warps: int) -> Row:
    args = [("x", "bfloat16", (height, width), "in"), ("out", "float32", (slabs, width), "out")]
    args += [("rows", height), ("columns", width), ("slabs", slabs)]
    grid = width // block * slabs
    return row(column_sums, (height, width), args, dict(ROWS=rows, BLOCK=block), grid, warps, 1)


def flat(kernel, count: int, block: int, warps: int) -> Row:
    """adam or dropout."""
    if kernel is adam:
        args = [("grad", "bfloat16", (count,), "in")]
        args += [(n, "float32", (count,), "inout") for n in ("weight", "mean", "square")] + [("rate", 0.001)]
    else:
        args = [(n, "float16", (count,), "in") for n in ("x", "other")]
        args += [("out", "float16", (count,), "out"), ("seed", 20)]
    return row(kernel, (count,), args, dict(BLOCK=block), count // block, warps, 10)


def running(height: int, width: int, block: int, warps: int) -> Row:
    args = [("x", "float32", (height, width), "in"), ("out", "float32", (height, width), "out")]
    args += [("columns", width)]
    return row(running_sum, (height, width), args, dict(BLOCK=block), height, warps, 2)


def taps(times: int, channels: int, rows: int, block: int, warps: int) -> Row:
    shape = times, channels
    args = [("x", "bfloat16", shape, "in"), ("weight", "float32", (4, channels), "in")]
    args += [("out", "bfloat16", shape, "out"), ("channels", channels)]
    grid = times // rows * (channels // block)
    return row(four_taps, shape, args, dict(TIMES=rows, BLOCK=block), grid, warps, 12)


def streams(small: bool) -> list[Row]:
    """At the sizes of the round, or of ptxsim."""
    if small:
        return [
            rows_of(gated, 4, 1400, 512, 4, "float16"),
            vector(32, 700, 8, 256, 4),
            backward(5, 1500, 2048, 8),
            entropy(3, 3000, 1024, 8),
            turning(5, 16, 64, 4),
            sums(96, 256, 2, 8, 128, 4),
            flat(adam, 3072, 512, 4),
            flat(dropout, 3072, 1024, 4),
            running(3, 1100, 512, 4),
            taps(64, 256, 16, 128, 4),
        ]
    return [
        rows_of(gated, 7000, 3328, 512, 4, "float16"),
        vector(14_000, 6_912, 8, 256, 4),
        backward(11_000, 3_072, 4096, 8),
        entropy(1_800, 50_304, 2048, 8),
        turning(9_000, 32, 64, 4),
        sums(18_432, 3_584, 16, 8, 128, 4),
        flat(adam, 13_107_200, 512, 4),
        flat(dropout, 40_960_000, 1024, 4),
        running(5_000, 5_120, 1024, 4),
        taps(12_288, 2_816, 16, 128, 4),
    ]
