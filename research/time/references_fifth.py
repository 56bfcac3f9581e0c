"""References, as in references.py, of kernels that are new in the fifth round or in no earlier set."""

from __future__ import annotations

import numpy as np

from research.time.references import normal, plain, plain_transposed, product

# ---- products by Triton ----


def experts(v):
    a, n = v["a"].astype(np.float64), v["N"]
    b = v["b"].astype(np.float64).reshape(4, n, -1)
    parts = np.split(a, [v["first"], v["second"], v["third"]])
    return {"c": np.concatenate([part @ side.T for part, side in zip(parts, b, strict=True)])}


def weight_gradient(v):
    return {"c": v["a"].astype(np.float64).T @ v["b"].astype(np.float64)}


def routed(v):
    grown = np.exp(product(v)["c"] * v["scale"])
    return {"c": grown / grown.sum(axis=1, keepdims=True)}


def chained(v):
    a, b, c = (v[n].astype(np.float64) for n in "abc")
    return {"d": np.maximum(a @ b.T, 0) @ c}


# ---- attention: weights are powers of two ----


def _weighted(score, values):
    weight = np.exp2(score - score.max(axis=1, keepdims=True))
    return weight @ values / weight.sum(axis=1, keepdims=True)


def windowed(v):
    length, dim = v["length"], v["q"].shape[1]
    q, k, values = (v[n].astype(np.float64).reshape(-1, length, dim) for n in "qkv")
    apart = np.subtract.outer(np.arange(length), np.arange(length))
    seen = (apart >= 0) & (apart < v["window"])
    heads = zip(q, k, values, strict=True)
    return {"out": [_weighted(np.where(seen, a @ b.T * v["scale"], -np.inf), c) for a, b, c in heads]}


def shared_keys(v):
    length, dim = v["length"], v["q"].shape[1]
    k, values = (v[n].astype(np.float64).reshape(-1, length, dim) for n in "kv")
    q = v["q"].astype(np.float64).reshape(len(k), -1, dim)
    heads = zip(q, k, values, strict=True)
    return {"out": [_weighted(a @ b.T * v["scale"], c) for a, b, c in heads]}


# ---- streams by Triton ----


def softmax(v):
    grown = np.exp(v["x"].astype(np.float64))
    return {"out": grown / grown.sum(axis=1, keepdims=True)}


def rms_norm(v):
    return {"out": normal({"b0": v["x"]}, v["eps"], 0) * v["weight"]}


def residual_norm(v):
    both = v["x"].astype(np.float64) + v["other"]
    return {"sum": both, "out": normal({"b0": both}, v["eps"], 0) * v["weight"]}


def quantised(v):
    x = v["x"].astype(np.float64)
    scale = np.abs(x).max(axis=1) / 127
    return {"out": np.floor(x / scale[:, None] + 0.5), "scale": scale}


def embedding(v):
    index = v["index"].astype(np.int64)
    source = ((index & 7) + np.arange(len(index)) * 7919) % v["vocabulary"]
    return {"out": v["table"].astype(np.float64)[source] * v["scale"]}


def group_norm(v):
    channel = np.arange(len(v["x"]))[:, None] % v["groups"] * v["channels"]
    channel = channel + np.arange(v["columns"]) // v["pixels"]
    return {"out": normal({"b0": v["x"]}, v["eps"], 1) * v["weight"][channel] + v["bias"][channel]}


def batch_stats(v):
    x = v["x"].astype(np.float64).reshape(v["slabs"], -1, v["columns"])
    return {"sum": x.sum(axis=1), "square": (x**2).sum(axis=1)}


def top_one(v):
    return {"most": v["x"].max(axis=1), "place": v["x"].argmax(axis=1)}


# ---- plain CUDA ----


def plain_turned(v):
    return {"y": v["x"].T}


def plain_blur(v):
    x, weight = np.pad(v["x"].astype(np.float64), 2, mode="edge"), np.array([1, 4, 6, 4, 1]) / 16
    high, wide = v["H"], v["W"]
    spans = [(dy, dx) for dy in range(5) for dx in range(5)]
    return {"y": sum(weight[dy] * weight[dx] * x[dy : dy + high, dx : dx + wide] for dy, dx in spans)}


def plain_prefix(v):
    return {"y": np.cumsum(v["x"].astype(np.float64), axis=1)}


def plain_escape(v):
    """Escape times in float32, as the kernel counts."""
    rows, columns = np.mgrid[: v["H"], : v["W"]].astype(np.float32)
    cx, cy = np.float32(2.5) * columns / v["W"] - 2, np.float32(2.5) * rows / v["H"] - np.float32(1.25)
    c = (cx + 1j * cy).astype(np.complex64)
    z, turns = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(v["L"]):
        inside = z.real**2 + z.imag**2 < 4
        z, turns = np.where(inside, z * z + c, z), turns + inside
    return {"y": turns}


REFERENCES = {
    "experts": experts, "weight_gradient": weight_gradient, "routed": routed, "stream_k": product,
    "thin": product, "chained": chained, "windowed": windowed, "shared_keys": shared_keys,
    "softmax": softmax, "add": lambda v: {"out": v["x"] + v["y"]}, "rms_norm": rms_norm,
    "residual_norm": residual_norm, "quantised": quantised, "embedding": embedding,
    "group_norm": group_norm, "batch_stats": batch_stats, "top_one": top_one,
    "plain_turned": plain_turned, "plain_blur": plain_blur, "plain_tiles": plain,
    "plain_halves": plain_transposed, "plain_prefix": plain_prefix, "plain_escape": plain_escape,
}  # fmt: skip
