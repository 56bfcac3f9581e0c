"""Products as layers have them: experts, a weight gradient, a router, shared K steps, few rows, a chain."""

from __future__ import annotations

import triton
import triton.language as tl

from research.time import drawn
from research.time.by_triton.kinds import tile_of
from research.time.by_triton.row import SMS, Row, name_of


@triton.jit
def experts(a_ptr, b_ptr, c_ptr, M, N, K, first, second, third, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, STAGES: tl.constexpr):  # fmt: skip
    """C = A B[e]^T. The rows are sorted by expert; the second, third and fourth begin at whole tiles."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    expert = (row >= first).to(tl.int32) + (row >= second).to(tl.int32) + (row >= third).to(tl.int32)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + expert * N * K + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def weight_gradient(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                    STAGES: tl.constexpr):  # fmt: skip
    """C = A^T B in float32: A (K, M), B (K, N)."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + depth[:, None] * M + rows[None, :]
    b_at = b_ptr + depth[:, None] * N + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.trans(tl.load(a_at)), tl.load(b_at), acc)
        a_at += BK * M
        b_at += BK * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def routed(a_ptr, b_ptr, c_ptr, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           STAGES: tl.constexpr):  # fmt: skip
    """C = softmax(A B^T * scale); a tile holds whole rows: N = BN."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a_ptr + rows[:, None] * K + depth[None, :]
    b_at = b_ptr + columns[None, :] * K + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
        a_at += BK
        b_at += BK
    acc *= scale
    grown = tl.exp(acc - tl.max(acc, axis=1)[:, None])
    done = grown / tl.sum(grown, axis=1)[:, None]
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], done.to(c_ptr.dtype.element_ty))


@triton.jit
def stream_k(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             STAGES: tl.constexpr):  # fmt: skip
    """C += A B^T in float32. The K steps of all tiles, in sequence, are divided evenly among the CTAs."""
    steps, tiles_n = K // BK, N // BN
    total = M // BM * tiles_n * steps
    share = tl.cdiv(total, tl.num_programs(0))
    now = tl.program_id(0) * share
    end = tl.minimum(now + share, total)
    depth = tl.arange(0, BK)
    while now < end:
        tile, begin = now // steps, now % steps
        stop = tl.minimum(steps, begin + end - now)
        rows = tile // tiles_n * BM + tl.arange(0, BM)
        columns = tile % tiles_n * BN + tl.arange(0, BN)
        a_at = a_ptr + rows[:, None] * K + begin * BK + depth[None, :]
        b_at = b_ptr + columns[None, :] * K + begin * BK + depth[:, None]
        acc = tl.zeros((BM, BN), tl.float32)
        for _ in tl.range(begin, stop, 1, num_stages=STAGES):
            acc = tl.dot(tl.load(a_at), tl.load(b_at), acc)
            a_at += BK
            b_at += BK
        tl.atomic_add(c_ptr + rows[:, None] * N + columns[None, :], acc)
        now += stop - begin


@triton.jit
def thin(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         STAGES: tl.constexpr):  # fmt: skip
    """C = A B^T with BM rows in all, as for the next token of a few sequences; B is read once."""
    rows, columns = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
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
def chained(a_ptr, b_ptr, c_ptr, d_ptr, hidden, BM: tl.constexpr, BH: tl.constexpr, DIM: tl.constexpr,
            STAGES: tl.constexpr):  # fmt: skip
    """D = relu(A B^T) C: A and D (.., DIM), B and C (hidden, DIM). The inner result stays in registers."""
    rows, dims = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, DIM)
    a = tl.load(a_ptr + rows[:, None] * DIM + dims[None, :])
    acc = tl.zeros((BM, DIM), tl.float32)
    for start in tl.range(0, hidden, BH, num_stages=STAGES):
        inner = start + tl.arange(0, BH)
        b = tl.load(b_ptr + inner[None, :] * DIM + dims[:, None])
        middle = tl.maximum(tl.dot(a, b), 0.0)
        c = tl.load(c_ptr + inner[:, None] * DIM + dims[None, :])
        acc = tl.dot(middle.to(a.dtype), c, acc)
    tl.store(d_ptr + rows[:, None] * DIM + dims[None, :], acc.to(d_ptr.dtype.element_ty))


# ---- rows: size, tile, stages, warps and dtype as drawn ----


def made(kernel, size, tile, stages: int, warps: int, dtype: str, arrays, scalars, grid: int) -> Row:
    args = [(*about, role) for about, role in zip(arrays, ("in", "in", "out"), strict=True)]
    name = name_of(kernel.__name__, size, tile, stages, warps, dtype)
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True)) | {"STAGES": stages}
    m, n, k = size
    return Row(name, kernel, args + scalars, constants, grid, warps, 2.0 * m * n * k)


def extents(size) -> list[tuple]:
    return list(zip("MNK", size, strict=True))


def of_experts(size, tile, stages: int, warps: int, dtype: str, small: bool) -> Row:
    if small:  # the third expert has no rows
        size, starts = (4 * tile[0], *size[1:]), (tile[0], 3 * tile[0], 3 * tile[0])
    else:
        starts = sorted(drawn.machine("experts starts").sample(range(1, size[0] // tile[0]), 3))
        starts = [tile[0] * start for start in starts]
    m, n, k = size
    arrays = [("a", dtype, (m, k)), ("b", dtype, (4 * n, k)), ("c", dtype, (m, n))]
    scalars = extents(size) + list(zip(("first", "second", "third"), starts, strict=True))
    return made(experts, size, tile, stages, warps, dtype, arrays, scalars, m // tile[0] * (n // tile[1]))


def gradient(size, tile, stages: int, warps: int, dtype: str, small: bool) -> Row:
    m, n, k = size
    arrays = [("a", dtype, (k, m)), ("b", dtype, (k, n)), ("c", "float32", (m, n))]
    grid = m // tile[0] * (n // tile[1])
    return made(weight_gradient, size, tile, stages, warps, dtype, arrays, extents(size), grid)


def router(size, tile, stages: int, warps: int, dtype: str, small: bool) -> Row:
    size = (size[0], tile[1], size[2])
    m, n, k = size
    arrays = [("a", dtype, (m, k)), ("b", dtype, (n, k)), ("c", dtype, (m, n))]
    scalars = [*extents(size), ("scale", k**-0.5)]
    return made(routed, size, tile, stages, warps, dtype, arrays, scalars, m // tile[0])


def shared_out(size, tile, stages: int, warps: int, dtype: str, small: bool) -> Row:
    if small:  # two tiles: atomics are slow on the simulator
        size = size[0], tile[1], size[2]
    m, n, k = size
    arrays = [("a", dtype, (m, k)), ("b", dtype, (n, k)), ("c", "float32", (m, n))]
    row = made(stream_k, size, tile, stages, warps, dtype, arrays, extents(size), 3 if small else SMS)
    row.args[2] = (*arrays[2], "inout")
    return row


def thin_rows(small: bool) -> Row:
    """16, 32 or 64 rows; 100 to 400 MB of weights."""
    m = drawn.machine("thin rows").choice((16, 32, 64))
    chance = drawn.machine("thin tile")
    tile = m, chance.choice((32, 64, 128)), chance.choice((64, 128, 256))
    stages = chance.choice((3, 4, 5))
    while (m + tile[1]) * tile[2] * 2 * stages > drawn.SHARED:
        stages -= 1
    limits = ((m, m), (4096, 32768), (2048, 12288))
    size = drawn.product("thin", tile, (1e8 * m, 4e8 * m), limits)
    if small:
        size = m, 2 * tile[1], (stages + 1) * tile[2]
    _, n, k = size
    arrays = [("a", "float16", (m, k)), ("b", "float16", (n, k)), ("c", "float16", (m, n))]
    return made(thin, size, tile, stages, 4, "float16", arrays, [("N", n), ("K", k)], n // tile[1])


def chain(small: bool) -> Row:
    chance = drawn.machine("chained tile")
    rows, inner, dim = chance.choice((64, 128)), chance.choice((32, 64, 128)), chance.choice((64, 128))
    stages, warps = chance.choice((2, 3)), rows // 16
    limits = ((4096, 24576), (2048, 16384), (dim, dim))
    m, hidden, _ = drawn.product("chained", (rows, inner, dim), (6e9, 30e9), limits)
    if small:
        m, hidden = 2 * rows, 4 * inner
    args = [("a", "bfloat16", (m, dim), "in"), ("b", "bfloat16", (hidden, dim), "in")]
    args += [("c", "bfloat16", (hidden, dim), "in"), ("d", "bfloat16", (m, dim), "out"), ("hidden", hidden)]
    name = name_of("chained", (m, hidden, dim), (rows, inner), stages, warps, "bfloat16")
    constants = dict(BM=rows, BH=inner, DIM=dim, STAGES=stages)
    return Row(name, chained, args, constants, m // rows, warps, 4.0 * m * hidden * dim)
