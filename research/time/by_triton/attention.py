"""Attention: one causal head, several causal heads, a window, and queries that share their keys."""

from __future__ import annotations

import triton
import triton.language as tl

from research.foreign import triton_code as code
from research.time.by_triton.row import Row


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


@triton.jit
def windowed(q_ptr, k_ptr, v_ptr, out_ptr, length, window, scale, ROWS: tl.constexpr, KEYS: tl.constexpr,
             DIM: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """Causal attention of several heads; a row sees the last `window` keys."""
    blocks = length // ROWS
    base, block = tl.program_id(0) // blocks * length, tl.program_id(0) % blocks
    rows, dims = block * ROWS + tl.arange(0, ROWS), tl.arange(0, DIM)
    q = tl.load(q_ptr + (base + rows)[:, None] * DIM + dims[None, :])
    top = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    first = tl.maximum(block * ROWS - window, 0) // KEYS * KEYS
    for start in tl.range(first, (block + 1) * ROWS, KEYS, num_stages=STAGES):
        keys = start + tl.arange(0, KEYS)
        k = tl.load(k_ptr + (base + keys)[None, :] * DIM + dims[:, None])
        apart = rows[:, None] - keys[None, :]
        score = tl.where((apart >= 0) & (apart < window), tl.dot(q, k) * scale, -1e30)
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + (base + keys)[:, None] * DIM + dims[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        top = new_top
    at = out_ptr + (base + rows)[:, None] * DIM + dims[None, :]
    tl.store(at, (acc / total[:, None]).to(tl.float16))


@triton.jit
def shared_keys(q_ptr, k_ptr, v_ptr, out_ptr, length, scale, ROWS: tl.constexpr, KEYS: tl.constexpr,
                DIM: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """One new token: ROWS heads of queries share the keys of a CTA, and see all of them."""
    base = tl.program_id(0) * length
    dims = tl.arange(0, DIM)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    q = tl.load(q_ptr + rows[:, None] * DIM + dims[None, :])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in tl.range(0, length, KEYS, num_stages=STAGES):
        keys = base + start + tl.arange(0, KEYS)
        k = tl.load(k_ptr + keys[None, :] * DIM + dims[:, None])
        score = tl.dot(q, k) * scale
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        top = new_top
    tl.store(out_ptr + rows[:, None] * DIM + dims[None, :], (acc / total[:, None]).to(tl.float16))


# ---- rows ----


def attention(length: int, rows: int, keys: int, dim: int, warps: int, stages: int = 2) -> Row:
    """Causal attention of one head; every block of keys is visited, so half of the products are masked."""
    args = [(n, "float16", (length, dim), "in") for n in "qkv"]
    args += [("out", "float16", (length, dim), "out"), ("length", length), ("scale", 0.18)]
    constants = dict(ROWS=rows, KEYS=keys, DIM=dim, STAGES=stages)
    flops = 4.0 * length * length * dim
    name = f"attention_{length}x{dim}_{rows}x{keys}_s{stages}_w{warps}"
    return Row(name, code.attention, args, constants, length // rows, warps, flops)


def heads(count: int, length: int, dim: int, rows: int, keys: int, warps: int, stages: int = 2) -> Row:
    args = [(n, "float16", (count * length, dim), "in") for n in "qkv"]
    args += [("out", "float16", (count * length, dim), "out"), ("length", length), ("scale", 0.18)]
    name = f"causal_{count}x{length}x{dim}_{rows}x{keys}_s{stages}_w{warps}"
    constants = dict(ROWS=rows, KEYS=keys, DIM=dim, STAGES=stages)
    return Row(name, causal, args, constants, count * (length // rows), warps, 2.0 * count * length**2 * dim)


def several(kernel, count: int, length: int, window: int, block) -> Row:
    """A row for heads of windowed or shared_keys."""
    rows, keys, dim, warps, stages = block
    asked = count * (length if window else rows)
    args = [("q", "float16", (asked, dim), "in")]
    args += [(n, "float16", (count * length, dim), "in") for n in "kv"]
    args += [("out", "float16", (asked, dim), "out"), ("length", length)]
    args += [("window", window)] * bool(window) + [("scale", 0.18)]
    shape = "x".join(map(str, (count, length, window, dim) if window else (count, length, dim)))
    name = f"{kernel.__name__}_{shape}_{rows}x{keys}_s{stages}_w{warps}"
    constants = dict(ROWS=rows, KEYS=keys, DIM=dim, STAGES=stages)
    work = 4.0 * asked * (window or length) * dim
    return Row(name, kernel, args, constants, asked // rows, warps, work)
