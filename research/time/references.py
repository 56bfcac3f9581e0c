"""References of the fourth round's kernels in numpy: arrays and scalars by name -> {output: expected}.

Keys of REFERENCES are the kinds of right.py; arrays are named as in the kernels.
"""

from __future__ import annotations

import numpy as np


def _f64(*arrays):
    return [a.astype(np.float64) for a in arrays]


def _silu(x):
    return x / (1 + np.exp(-x))


# ---- products by Triton ----


def product(v):
    a, b = _f64(v["a"], v["b"])
    return {"c": a @ b.T}


def batched(v):
    a, b = (x.reshape(-1, v[extent], v["K"]) for x, extent in zip(_f64(v["a"], v["b"]), "MN", strict=True))
    return {"c": a @ b.transpose(0, 2, 1)}


def fused(v):
    x = product(v)["c"] + v["bias"]
    return {"c": x / (1 + np.exp(-1.702 * x))}


def scaled(v):
    return {"c": product(v)["c"] * v["scale"]}


def dual(v):
    a, gate, up = _f64(v["a"], v["gate"], v["up"])
    return {"c": _silu(a @ gate.T) * (a @ up.T)}


def triangular(v):
    a, b = _f64(v["a"], v["b"])
    return {"c": np.tril(a) @ b.T}


def convolution(v):
    high, wide = v["high"], v["wide"]
    x = v["x"].astype(np.float64).reshape(-1, high, wide, v["channels"])
    weight = v["weight"].astype(np.float64).reshape(v["filters"], 9, v["channels"])
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    out = 0.0
    for tap in range(9):
        moved = padded[:, tap // 3 : tap // 3 + high, tap % 3 : tap % 3 + wide]
        out = out + moved @ weight[:, tap].T
    return {"out": out}


def causal(v):
    """Attention of several heads, or of one. Weights are powers of two."""
    q, k, v_ = _f64(v["q"], v["k"], v["v"])
    length, out = v["length"], []
    for start in range(0, len(q), length):
        part = slice(start, start + length)
        score = q[part] @ k[part].T * v["scale"]
        score = np.where(np.tril(np.ones_like(score)) > 0, score, -np.inf)
        weight = np.exp2(score - score.max(axis=1, keepdims=True))
        out.append(weight @ v_[part] / weight.sum(axis=1, keepdims=True))
    return {"out": np.concatenate(out)}


# ---- streams by Triton ----


def gated(v):
    gate, up = np.split(v["x"].astype(np.float64), 2, axis=1)
    return {"out": _silu(gate) * up}


def matvec(v):
    a, x = _f64(v["a"], v["x"])
    return {"out": a @ x}


def norm_backward(v):
    x, grad, mean, rate = _f64(v["x"], v["grad"], v["mean"], v["rate"])
    normed = (x - mean[:, None]) * rate[:, None]
    grad = grad * v["weight"]
    along = (normed * grad).mean(axis=1, keepdims=True)
    return {"out": (grad - normed * along - grad.mean(axis=1, keepdims=True)) * rate[:, None]}


def cross_entropy(v):
    x, label = v["x"].astype(np.float64), v["label"] & 63
    whole = np.log(np.exp(x).sum(axis=1))
    rows = np.arange(len(x))
    grad = np.exp(x - whole[:, None])
    grad[rows, label] -= 1
    return {"loss": whole - x[rows, label], "grad": grad}


def rotary(v):
    cos, sin = (a[:, None] for a in _f64(v["cos"], v["sin"]))
    tokens, half = len(v["x"]), v["cos"].shape[1]
    first, second = np.split(v["x"].astype(np.float64).reshape(tokens, -1, 2 * half), 2, axis=2)
    turned = np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=2)
    return {"out": turned.reshape(tokens, -1)}


def column_sums(v):
    x = v["x"].astype(np.float64)
    return {"out": x.reshape(v["slabs"], -1, v["columns"]).sum(axis=1)}


def adam(v):
    grad, weight, mean, square = _f64(v["grad"], v["weight"], v["mean"], v["square"])
    mean, square = 0.9 * mean + 0.1 * grad, 0.999 * square + 0.001 * grad**2
    return {"mean": mean, "square": square, "weight": weight - v["rate"] * mean / (np.sqrt(square) + 1e-8)}


def running_sum(v):
    return {"out": np.cumsum(v["x"].astype(np.float64), axis=1)}


def philox(seed: int, count: int) -> np.ndarray:
    """First words of Philox 4x32, ten rounds (Salmon et al., 2011); counter (i, 0, 0, 0), key (seed, 0)."""
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    key = [seed, 0]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> high) ^ c[1] ^ np.uint64(key[0]),
            second & low,
            (first >> high) ^ c[3] ^ np.uint64(key[1]),
            first & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


def dropout(v):
    x, other = _f64(v["x"], v["other"])
    words = philox(v["seed"], len(x)).astype(np.int32).astype(np.int64)
    uniform = np.where(words < 0, -words - 1, words) * 4.6566127342e-10
    return {"out": np.where(uniform > 0.1, x / 0.9, 0.0) + other}


def four_taps(v):
    x, weight = _f64(v["x"], v["weight"])
    padded = np.pad(x, ((3, 0), (0, 0)))
    return {"out": _silu(sum(padded[tap : tap + len(x)] * weight[tap] for tap in range(4)))}


# ---- plain CUDA, and pyptx: arrays b0, b1 .. in its order ----


def plain(v):
    """D = A B, B (K, N)."""
    a, b = _f64(v["A"], v["B"])
    return {"D": a @ b}


def plain_transposed(v):
    """D = A B^T, B (N, K)."""
    a, b = _f64(v["A"], v["B"])
    return {"D": a @ b.T}


def plain_matvec(v):
    a, x = _f64(v["A"], v["x"])
    return {"y": a @ x}


def plain_heat(v):
    x = v["x"].astype(np.float64).reshape(v["H"], v["W"])
    near = np.pad(x, 1)
    around = near[:-2, 1:-1] + near[2:, 1:-1] + near[1:-1, :-2] + near[1:-1, 2:]
    return {"y": x + 0.2 * (around - 4 * x)}


def plain_bodies(v):
    """Accelerations of softened bodies: x, y, z, mass of each."""
    at = v["x"].astype(np.float64)
    apart = at[None, :, :3] - at[:, None, :3]
    square = (apart**2).sum(axis=2) + 0.01
    return {"y": np.pad((apart * (at[:, 3] * square**-1.5)[:, :, None]).sum(axis=1), ((0, 0), (0, 1)))}


def plain_softmax(v):
    grown = np.exp(v["x"].astype(np.float64))
    return {"y": grown / grown.sum(axis=1, keepdims=True)}


def normal(v, eps, centre):
    x = v["b0"].astype(np.float64)
    x = x - x.mean(axis=1, keepdims=True) * centre
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)


def pyptx_product(v):
    """B is (K, N) or (N, K), distinguished by its shape, since N and K differ."""
    a, b = _f64(v["b0"], v["b1"])
    return {"b2": a @ (b if a.shape[1] == b.shape[0] else b.T)}


def pyptx_softmax(v):
    grown = np.exp(v["b0"].astype(np.float64))
    return {"b1": grown / grown.sum(axis=1, keepdims=True)}


def pyptx_swiglu(v):
    gate, up = _f64(v["b0"], v["b1"])
    return {"b2": _silu(gate) * up}


REFERENCES = {
    "grouped": product, "persistent": product, "described": product, "looping": product,
    "split_k": product, "batched": batched, "fused": fused, "scaled": scaled, "weights": scaled,
    "dual": dual, "triangular": triangular, "convolution": convolution, "attention": causal,
    "causal": causal, "gated": gated, "matvec": matvec, "norm_backward": norm_backward,
    "cross_entropy": cross_entropy, "rotary": rotary, "column_sums": column_sums, "adam": adam,
    "dropout": dropout, "running_sum": running_sum, "four_taps": four_taps,
    "plain_registers": plain,
    "plain_bytes": plain_transposed, "plain_matvec": plain_matvec, "plain_heat": plain_heat,
    "plain_bodies": plain_bodies, "plain_softmax": plain_softmax,
    "pyptx_gemm": pyptx_product, "pyptx_gemm_pipelined": pyptx_product,
    "pyptx_gemm_highperf_ampere": pyptx_product, "pyptx_softmax": pyptx_softmax,
    "pyptx_swiglu": pyptx_swiglu,
    "pyptx_rms_norm": lambda v: {"b2": normal(v, 1e-6, 0) * v["b1"]},
    "pyptx_layer_norm": lambda v: {"b3": normal(v, 1e-5, 1) * v["b1"] + v["b2"]},
}  # fmt: skip
