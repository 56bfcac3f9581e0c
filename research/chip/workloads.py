"""The workloads that harvest.py compiles with `torch.compile`: small enough to simulate, of many kinds."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32
WORKLOADS = {}


def workload(function):
    WORKLOADS[function.__name__] = function
    return function


def random(*shape, dtype=SINGLE):
    return torch.randn(*shape, device="cuda", dtype=SINGLE).to(dtype)


def whole(low, high, *shape, dtype=torch.int64):
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def compiled(function, *args, backward=False, **options):
    """Compiles and runs the function; with `backward`, the gradient too."""
    made = torch.compile(function, dynamic=False, options=options or None)
    if not backward:
        with torch.no_grad():
            return made(*args)
    args = [a.detach().requires_grad_() if a.is_floating_point() else a for a in args]
    out = made(*args)
    out = out[0] if isinstance(out, tuple) else out
    out.backward(torch.ones_like(out))
    return out


TRITON_ONLY = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}


@workload
def pointwise():
    functions = {
        "transcendental": lambda x: (
            torch.sin(x) + torch.cos(x) * torch.tanh(x) + torch.erf(x) + torch.exp(-x * x)
        ),
        "powers": lambda x: torch.pow(x.abs(), 1.7) + torch.rsqrt(x.abs() + 1) + torch.log1p(x.abs()),
        "rounding": lambda x: torch.floor(x) + torch.ceil(x) * 2 + torch.round(x) * 3 + torch.trunc(x) * 5,
        "special": lambda x: (
            torch.lgamma(x.abs() + 1) + torch.special.i0(x) + torch.asinh(x) + torch.atan2(x, x + 1)
        ),
        "select": lambda x: torch.where(x > 0, x, x * 0.1).clamp(-1, 2) + torch.sign(x),
        "modulo": lambda x: torch.fmod(x, 0.7) + torch.remainder(x, 0.3),
        "gelu": lambda x: F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x) + F.mish(x),
    }
    for function in functions.values():
        for dtype in (SINGLE, HALF, BRAIN):
            compiled(function, random(37, 129, dtype=dtype))


@workload
def integers():
    a, b = whole(-1000, 1000, 999, dtype=torch.int32), whole(1, 50, 999, dtype=torch.int32)
    compiled(
        lambda a, b: (a // b, a % b, a & b, a | b, a ^ b, ~a, a << 3, a >> 2, torch.bitwise_not(b)), a, b
    )
    compiled(
        lambda a, b: (a * b, a.float() / b, a.to(torch.int8), a.to(torch.int16) * 7, a.to(torch.uint8)), a, b
    )
    c, d = whole(-(2**40), 2**40, 777), whole(1, 2**20, 777)
    compiled(lambda c, d: (c // d, c % d, c * d, c.double() / d, torch.gcd(c, d)), c, d)


@workload
def small_floats():
    x = random(64, 65, dtype=SINGLE) * 10
    for kind in (torch.float8_e4m3fn, torch.float8_e5m2):
        y = compiled(lambda x: x.to(kind), x)  # noqa: B023
        compiled(lambda y: y.to(SINGLE) * 2 + y.to(HALF), y)
        compiled(lambda y: y.to(BRAIN) * 2, y)


@workload
def doubles():
    x = torch.randn(300, device="cuda", dtype=torch.float64)
    compiled(lambda x: torch.exp(x) + torch.sin(x) * torch.sqrt(x.abs()) / (1 + x * x), x)
    compiled(lambda x: (x.sum(), x.prod(), x.var(), x.cumsum(0)), x)


@workload
def reductions():
    for rows, columns in ((33, 257), (5, 5000), (1, 40000), (700, 7)):
        for dtype in (SINGLE, HALF):
            x = random(rows, columns, dtype=dtype)
            compiled(lambda x: (x.sum(-1), x.mean(), x.amax(0), x.var(-1), x.prod(-1)), x)
            compiled(lambda x: (x.argmax(-1), x.argmin(0), (x > 1).any(-1), (x > 0).all(), x.norm()), x)
    compiled(lambda x: torch.softmax(x, -1), random(65, 1000), backward=True)
    compiled(lambda x: torch.log_softmax(x, -1), random(65, 3000), backward=True)
    compiled(lambda x: torch.logsumexp(x, 0), random(1000, 33))


@workload
def norms():
    w, b = random(384), random(384)
    compiled(lambda x, w, b: F.layer_norm(x, (384,), w, b), random(70, 384), w, b, backward=True)
    compiled(lambda x, w: F.rms_norm(x, (384,), w), random(70, 384, dtype=HALF), w.half(), backward=True)
    compiled(lambda x: F.group_norm(x, 4), random(3, 16, 9, 9), backward=True)
    compiled(lambda x: F.batch_norm(x, None, None, training=True), random(8, 12, 7, 7), backward=True)


@workload
def scans():
    x = random(17, 1500)
    compiled(lambda x: torch.cumsum(x, -1), x)
    compiled(lambda x: torch.cumprod(x * 0.1 + 1, -1), x)
    compiled(lambda x: torch.logcumsumexp(x, -1), x)
    compiled(lambda x: torch.cummax(x, -1), x)
    compiled(lambda x: torch.cumsum(x, 0), random(3000, 5))


@workload
def sorting():
    compiled(lambda x: torch.sort(x, -1), random(9, 128))
    compiled(lambda x: torch.sort(x, dim=-1, descending=True, stable=True), whole(0, 50, 7, 200))
    compiled(lambda x, q: torch.bucketize(q, x), torch.sort(random(500)).values, random(2000))
    compiled(lambda x, q: torch.searchsorted(x, q), torch.sort(random(500)).values, random(2000))


@workload
def indexing():
    x, rows = random(100, 64), whole(0, 100, 300)
    compiled(lambda x, i: x[i] * 2, x, rows)
    compiled(lambda x, i, y: x.index_add(0, i, y), x, rows, random(300, 64))
    compiled(lambda x, i, y: x.index_put((i,), y, accumulate=True), x, rows, random(300, 64))
    compiled(lambda x, i: torch.gather(x, 1, i), x, whole(0, 64, 100, 5))
    compiled(lambda x, i, y: x.scatter_reduce(1, i, y, "amax"), x, whole(0, 64, 100, 5), random(100, 5))
    compiled(
        lambda x, i, y: x.scatter_add(1, i, y), x.half(), whole(0, 64, 100, 5), random(100, 5, dtype=HALF)
    )
    compiled(lambda i, w: F.embedding(i, w).sum(), rows, x, backward=True)
    compiled(lambda x: torch.cat([x.flip(0), x.roll(3, 1), F.pad(x, (0, 0, 1, 2))]), x)
    compiled(lambda x: (x.triu(), x.t().contiguous(), x.unfold(1, 5, 3).sum(-1)), x)
    compiled(lambda x: F.one_hot(x, 101).float() @ torch.ones(101, 3, device="cuda"), rows)


@workload
def images():
    x = random(2, 3, 33, 31)
    compiled(lambda x: F.max_pool2d(x, 3, 2, 1), x, backward=True)
    compiled(lambda x: F.avg_pool2d(x, 3, 2), x, backward=True)
    compiled(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x, backward=True)
    compiled(lambda x: F.interpolate(x, size=(20, 50), mode="bicubic"), x)
    compiled(lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), x)
    compiled(
        lambda x, w: F.conv2d(x, w, padding=1),
        x,
        random(8, 3, 3, 3),
        max_autotune=True,
        max_autotune_conv_backends="TRITON",
    )


@workload
def randomness():
    compiled(lambda x: F.dropout(x, 0.3), random(100, 100), backward=True)
    compiled(lambda x: torch.rand_like(x) + torch.randn_like(x), random(3000))
    compiled(lambda x: torch.randint_like(x, 0, 100), random(3000))
    compiled(lambda x: torch.bernoulli(x.sigmoid()), random(3000))


@workload
def losses():
    x, y = random(64, 1000), whole(0, 1000, 64)
    compiled(lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), x, y, backward=True)
    compiled(lambda x: F.smooth_l1_loss(x, x.flip(0)), x, backward=True)
    compiled(lambda x: F.kl_div(F.log_softmax(x, -1), F.softmax(x.flip(0), -1)), x, backward=True)


@workload
def optimizer():
    parameters = [random(n, 33).requires_grad_() for n in (5, 17, 40)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    for kind in (
        torch.optim.AdamW,
        functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        torch.optim.RMSprop,
    ):
        made = kind(parameters)
        torch.compile(lambda made=made: made.step())()


@workload
def products():
    for dtype in (HALF, BRAIN, SINGLE):
        for m, n, k in ((128, 256, 256), (130, 200, 72)):
            compiled(torch.mm, random(m, k, dtype=dtype), random(k, n, dtype=dtype), **TRITON_ONLY)
    bias = random(200, dtype=HALF)
    compiled(
        lambda b, x, w: F.gelu(torch.addmm(b, x, w)),
        bias,
        random(128, 96, dtype=HALF),
        random(96, 200, dtype=HALF),
        **TRITON_ONLY,
    )
    compiled(torch.bmm, random(5, 70, 64, dtype=HALF), random(5, 64, 90, dtype=HALF), **TRITON_ONLY)
    compiled(
        lambda x, w: x @ w.t(), random(100, 128, dtype=BRAIN), random(90, 128, dtype=BRAIN), **TRITON_ONLY
    )
    a = whole(-100, 100, 128, 256, dtype=torch.int8)
    compiled(torch._int_mm, a, whole(-100, 100, 256, 128, dtype=torch.int8), **TRITON_ONLY)
    compiled(
        lambda x, w: x @ w.to(HALF),
        random(128, 256, dtype=HALF),
        whole(-9, 9, 256, 128, dtype=torch.int8),
        **TRITON_ONLY,
    )


@workload
def scaled_products():
    eight = torch.float8_e4m3fn
    a, b = random(128, 256).to(eight), random(128, 256).to(eight).t()
    one = torch.ones((), device="cuda")
    compiled(lambda a, b: torch._scaled_mm(a, b, one, one, out_dtype=BRAIN), a, b, **TRITON_ONLY)
    rows, columns = torch.rand(128, 1, device="cuda"), torch.rand(1, 128, device="cuda")
    compiled(lambda a, b: torch._scaled_mm(a, b, rows, columns, out_dtype=BRAIN), a, b, **TRITON_ONLY)


@workload
def persistent_products():
    import torch._inductor.config as config

    config.triton.enable_persistent_tma_matmul = True
    try:
        for dtype in (HALF, BRAIN):
            compiled(torch.mm, random(256, 256, dtype=dtype), random(256, 512, dtype=dtype), **TRITON_ONLY)
            compiled(torch.mm, random(192, 320, dtype=dtype), random(320, 256, dtype=dtype), **TRITON_ONLY)
    finally:
        config.triton.enable_persistent_tma_matmul = False


@workload
def attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = (random(1, 2, 256, 64, dtype=HALF) for _ in range(3))
    compiled(flex_attention, q, k, v, backward=True)

    def alibi(score, b, h, i, j):
        return score + (h + 1) * 0.01 * (i - j)

    compiled(lambda q, k, v: flex_attention(q, k, v, score_mod=alibi), q, k, v, backward=True)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256)
    compiled(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), q, k, v, backward=True)
