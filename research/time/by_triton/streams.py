"""Kernels that move data rather than multiply: sums, norms, gates, transposition, losses."""

from __future__ import annotations

import triton
import triton.language as tl

from research.foreign import triton_code as code
from research.time.by_triton.row import Row


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
    """One pass with a running maximum, as in the loss of a language model."""
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
    """Rotates the pairs formed by a head's two halves by the token's angles."""
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


# ---- rows ----


def add(n: int, block: int) -> Row:
    args = [("x", "float32", (n,), "in"), ("y", "float32", (n,), "in"), ("out", "float32", (n,), "out")]
    args += [("n", n)]
    constants = dict(BLOCK=block)
    return Row(f"add_{n}_{block}", code.add_masked, args, constants, n // block, block // 256, float(n))


def softmax(height: int, width: int) -> Row:
    args = [("x", "float32", (height, width), "in"), ("out", "float32", (height, width), "out")]
    args += [("columns", width)]
    flops = 5.0 * height * width
    return Row(f"softmax_{height}x{width}", code.softmax_rows, args, dict(BLOCK=width), height, 8, flops)


def layer_norm(height: int, width: int) -> Row:
    args = [("x", "float16", (height, width), "in"), ("weight", "float32", (width,), "in")]
    args += [("bias", "float32", (width,), "in"), ("out", "float32", (height, width), "out")]
    args += [("columns", width), ("eps", 1e-5)]
    flops = 8.0 * height * width
    return Row(f"layernorm_{height}x{width}", code.layer_norm, args, dict(BLOCK=1024), height, 4, flops)


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


def row(kernel, shape, args, constants: dict, grid: int, warps: int, each: float) -> Row:
    """A row; `each`: operations per number of `shape`."""
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
