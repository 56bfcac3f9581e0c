"""The kernels in Triton; triton_kernels.py defines their launches."""

import triton
import triton.language as tl


@triton.jit
def add_masked(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def softmax_rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=float("-inf"))
    grown = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + at, grown / tl.sum(grown, axis=0), mask=inside)


@triton.jit
def layer_norm(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        centred = tl.where(at < columns, x - mean, 0.0)
        square += centred * centred
    scale = tl.rsqrt(tl.sum(square, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + at, mask=inside, other=0.0)
        bias = tl.load(bias_ptr + at, mask=inside, other=0.0)
        tl.store(out_ptr + row * columns + at, (x - mean) * scale * weight + bias, mask=inside)


@triton.jit
def histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0)
    tl.atomic_add(bins_ptr + x, tl.full((BLOCK,), 1, tl.int32), mask=inside)


@triton.jit
def histogram_block(x_ptr, bins_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(bins_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


@triton.jit
def scan_rows(x_ptr, out_ptr, best_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.cumsum(x, axis=1))
    tl.store(best_ptr + tl.arange(0, ROWS), tl.argmax(x, axis=1))


@triton.jit
def sort_rows(x_ptr, out_ptr, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def through_fp8(x_ptr, e4m3_ptr, e5m2_ptr, back_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    small, wide = x.to(tl.float8e4nv), x.to(tl.float8e5)
    tl.store(e4m3_ptr + at, small)
    tl.store(e5m2_ptr + at, wide)
    tl.store(back_ptr + at, small.to(tl.float32) + wide.to(tl.float32))


@triton.jit
def special_functions(x_ptr, out_ptr, whole_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    y = tl.sin(x) + tl.log(x + 5.0) + tl.sqrt(x + 5.0) + tl.exp2(x) + tl.erf(x) + tl.floor(x)
    tl.store(out_ptr + at, y, mask=at < n)
    number = (x * 1000).to(tl.int32)
    tl.store(whole_ptr + at, number // 7 + number % 13 + tl.umulhi(at, number), mask=at < n)


@triton.jit
def random_numbers(out_ptr, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.randint(seed, at))


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        depth = k + tl.arange(0, BK)
        in_a = (rows[:, None] < M) & (depth[None, :] < K)
        in_b = (depth[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + depth[:, None] * N + columns[None, :], mask=in_b, other=0.0)
        acc = tl.dot(a, b, acc)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    at = rows[:, None] * N + columns[None, :]
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def matmul_described(
    a_map, b_map, c_map, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
    c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def matmul_persistent(
    a_map,
    b_map,
    c_map,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    STAGES: tl.constexpr,
    ROLES: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=not ROLES, warp_specialize=ROLES
    ):
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in tl.range(0, K, BK, num_stages=STAGES):
            acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
        c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def matmul_own_maps(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr
):
    a_map = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c_map = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        acc = tl.dot(a_map.load([row, k]), b_map.load([column, k]).T, acc)
    c_map.store([row, column], acc.to(tl.float16))


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    STAGES: tl.constexpr,
):
    rows, dims = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, DIM)
    q = tl.load(q_ptr + rows[:, None] * DIM + dims[None, :])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DIM), tl.float32)
    for start in tl.range(0, length, KEYS, num_stages=STAGES):
        keys = start + tl.arange(0, KEYS)
        k = tl.load(k_ptr + keys[None, :] * DIM + dims[:, None])
        score = tl.dot(q, k) * scale
        score = tl.where(rows[:, None] >= keys[None, :], score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2(score - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, axis=1)
        v = tl.load(v_ptr + keys[:, None] * DIM + dims[None, :])
        acc = tl.dot(weight.to(tl.float16), v, acc * shrink[:, None])
        top = new_top
    tl.store(out_ptr + rows[:, None] * DIM + dims[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def small_tile(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * tl.sum(x, axis=1)[:, None] + tl.max(x, axis=0)[None, :])


@triton.jit
def largest(x_ptr, out_ptr, BLOCK: tl.constexpr, COUNT: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, COUNT), tl.topk(tl.load(x_ptr + tl.arange(0, BLOCK)), COUNT))


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.gather(tl.load(x_ptr + at), tl.load(index_ptr + at), axis=0))


@triton.jit
def add_to_tile(x_ptr, out_ptr, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each program adds its tile, by TMA, to the same place."""
    target = tl.make_tensor_descriptor(out_ptr, [SIZE, SIZE], [SIZE, 1], [ROWS, COLUMNS])
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * ROWS * COLUMNS + at)
    target.atomic_add([SIZE - ROWS, SIZE - COLUMNS], x)
