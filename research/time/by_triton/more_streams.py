"""Further kernels that move data: Adam, running sums, dropout, a table, norms, statistics."""

from __future__ import annotations

import triton
import triton.language as tl

from research.time.by_triton.row import Row
from research.time.by_triton.streams import row


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
    """SiLU of a convolution along time, for each channel separately: four taps, zeros before the start."""
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


@triton.jit
def quantised(x_ptr, out_ptr, scale_ptr, columns, BLOCK: tl.constexpr):
    """Quantises a row to bytes, with its scale."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    most = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10)
    done = tl.floor(x * (127.0 / most) + 0.5)
    tl.store(out_ptr + row * columns + at, done.to(tl.int8), mask=inside)
    tl.store(scale_ptr + row, most / 127.0)


@triton.jit
def embedding(index_ptr, table_ptr, out_ptr, vocabulary, columns, scale, BLOCK: tl.constexpr):
    """A row of the table for each token, scaled. The low bits of an index count; tokens lie 7919 rows apart,
    so that rows are spread whatever the indices."""
    token = tl.program_id(0)
    source = ((tl.load(index_ptr + token) & 7) + token * 7919) % vocabulary
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(table_ptr + source * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        tl.store(out_ptr + token * columns + at, (x * scale).to(out_ptr.dtype.element_ty), mask=at < columns)


@triton.jit
def group_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, pixels, channels, groups, eps,
               BLOCK: tl.constexpr):  # fmt: skip
    """A row is a group of channels, each `pixels` numbers; an image has `groups`. Two passes."""
    row = tl.program_id(0)
    total, square = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / columns
    rate = tl.rsqrt(tl.sum(square, axis=0) / columns - mean * mean + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        channel = row % groups * channels + at // pixels
        weight = tl.load(weight_ptr + channel, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + channel, mask=inside, other=0.0)
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        done = (x - mean) * rate * weight + bias
        tl.store(out_ptr + row * columns + at, done.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def residual_norm(x_ptr, other_ptr, weight_ptr, sum_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    """The sum of two rows, which is kept, and its RMS norm."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(other_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(sum_ptr + row * columns + at, x.to(sum_ptr.dtype.element_ty), mask=inside)
    rate = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + at, (x * rate * weight).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def batch_stats(x_ptr, sum_ptr, square_ptr, rows, columns, slabs, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums and sums of squares of a slab's columns, as batch norm needs them."""
    slab, block = tl.program_id(0) % slabs, tl.program_id(0) // slabs
    height = rows // slabs
    at = block * BLOCK + tl.arange(0, BLOCK)
    total, square = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, height, ROWS):
        here = slab * height + start + tl.arange(0, ROWS)
        x = tl.load(x_ptr + here[:, None] * columns + at[None, :]).to(tl.float32)
        total += x
        square += x * x
    tl.store(sum_ptr + slab * columns + at, tl.sum(total, axis=0))
    tl.store(square_ptr + slab * columns + at, tl.sum(square, axis=0))


@triton.jit
def top_one(x_ptr, most_ptr, place_ptr, columns, BLOCK: tl.constexpr):
    """The largest number of a row, and its first position."""
    row = tl.program_id(0)
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=float("-inf")).to(tl.float32)
        place = tl.where(x > most, at, place)
        most = tl.maximum(most, x)
    top = tl.max(most, axis=0)
    tl.store(most_ptr + row, top)
    tl.store(place_ptr + row, tl.min(tl.where(most == top, place, columns), axis=0))


# ---- rows ----


def flat(kernel, count: int, block: int, warps: int) -> Row:
    """A row for adam or dropout."""
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
