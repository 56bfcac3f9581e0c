"""References for the kernels of other compilers, in numpy: inputs -> {output: (expected, rtol, atol)}."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

_SINGLE = (1e-5, 1e-6)  # float32 results of a few operations


def _f64(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def add(v):
    return {"out": (_f64(v["x"]) + v["y"], *_SINGLE)}


def softmax(v):
    grown = np.exp(_f64(v["x"]) - v["x"].max(axis=1, keepdims=True))
    return {"out": (grown / grown.sum(axis=1, keepdims=True), *_SINGLE)}


def layer_norm(v):
    x = _f64(v["x"])
    centred = x - x.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + float(v["eps"]))
    return {"out": (normal * v["weight"] + v["bias"], 1e-4, 1e-5)}


def histogram(v):
    return {"bins": (np.bincount(v["x"].ravel(), minlength=len(v["bins"])), 0, 0)}


def scan(v):
    return {"out": (np.cumsum(_f64(v["x"]), axis=1), 1e-5, 1e-5), "best": (v["x"].argmax(axis=1), 0, 0)}


def sort(v):
    return {"out": (np.sort(v["x"], axis=1), 0, 0)}


def fp8(v):
    small, wide = (_f64(v["x"].astype(t)) for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
    return {"e4m3": (small, 0, 0), "e5m2": (wide, 0, 0), "back": (small + wide, 0, 0)}


def _c_divide(a: np.ndarray, b: int) -> tuple[np.ndarray, np.ndarray]:
    """Quotient and remainder as in C: rounded towards zero."""
    quotient = np.sign(a) * (np.abs(a) // b)
    return quotient, a - quotient * b


def special(v):
    x = _f64(v["x"])
    erf = np.array([math.erf(value) for value in x])
    out = np.sin(x) + np.log(x + 5) + np.sqrt(x + 5) + np.exp2(x) + erf + np.floor(x)
    number = (v["x"] * np.float32(1000)).astype(np.int32).astype(np.int64)
    at = np.arange(len(x), dtype=np.int64)
    high = (at * (number & 0xFFFFFFFF)) >> 32  # high half of an unsigned product
    whole = _c_divide(number, 7)[0] + _c_divide(number, 13)[1] + high
    return {"out": (out, 1e-4, 1e-5), "whole": (whole, 0, 0)}


def philox(v):
    """Philox 4x32, ten rounds (Salmon et al., 2011), first word; counter (i, 0, 0, 0), key (seed, 0)."""
    count = len(v["out"])
    c = [np.arange(count, dtype=np.uint64), *(np.zeros(count, np.uint64) for _ in range(3))]
    k = [int(v["seed"]), 0]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
        c = [
            (second >> high) ^ c[1] ^ np.uint64(k[0]),
            second & low,
            (first >> high) ^ c[3] ^ np.uint64(k[1]),
            first & low,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return {"out": (c[0].astype(np.uint32).view(np.int32), 0, 0)}


def matmul(v):
    exact = np.issubdtype(v["a"].dtype, np.integer)
    tolerance = (0, 0) if exact else (1e-2, 3e-2) if v["a"].dtype == np.float32 else (1e-3, 1e-3)
    return {"c": (_f64(v["a"]) @ _f64(v["b"]), *tolerance)}


def matmul_nt(v):
    return {"c": (_f64(v["a"]) @ _f64(v["b"]).T, 2e-3, 1e-2)}


def scaled_matmul(v):
    product = _f64(v["a"]) @ _f64(v["b"])
    return {"d": (float(v["alpha"]) * product + float(v["beta"]) * v["c"], 1e-4, 1e-4)}


def biased_matmul(v):
    """A product plus a row of biases, with negative numbers set to zero."""
    return {"c": (np.maximum(_f64(v["a"]) @ _f64(v["b"]) + _f64(v["bias"]), 0), 5e-3, 5e-2)}


def common_bits(v):
    a, b = (np.unpackbits(v[name].view(np.uint8), axis=1).astype(int) for name in ("a", "b"))
    return {"c": (a @ b.T, 0, 0)}


def matmul_of_nibbles(v):
    """A product of signed 4-bit numbers, the lowest first in each word; B by its columns."""
    a, b = ((v[name].view(np.uint8)[..., None] >> np.array([0, 4], np.uint8)) & 15 for name in ("a", "b"))
    a, b = (((one.reshape(len(one), -1).astype(int) + 8) % 16) - 8 for one in (a, b))
    return {"c": (a @ b.T, 0, 0)}


def attention(v):
    """Causal attention, with the scale in units of log2."""
    score = _f64(v["q"]) @ _f64(v["k"]).T * float(v["scale"])
    score[np.triu_indices_from(score, 1)] = -np.inf
    weight = np.exp2(score - score.max(axis=1, keepdims=True))
    return {"out": (weight @ _f64(v["v"]) / weight.sum(axis=1, keepdims=True), 1e-2, 1e-2)}


def total(v):
    return {"out": (_f64(v["x"]).sum(), 1e-4, 1e-3)}


def divisors(v):
    quotient = v["a"] // np.maximum(v["b"], 1) + v["a"] % 1000003
    return {"out": (np.gcd(v["a"], v["b"]), 0, 0), "quotient": (quotient, 0, 0)}


def escape(v):
    width, height, limit = (int(v[name]) for name in ("width", "height", "limit"))
    c = 3.0 * np.arange(width)[None, :] / width - 2 + 1j * (2.0 * np.arange(height)[:, None] / height - 1)
    z, out = np.zeros_like(c), np.full(c.shape, limit)
    for i in range(limit):
        z = np.where(out == limit, z * z + c, z)
        out[(out == limit) & (z.real**2 + z.imag**2 >= 4)] = i
    return {"out": (out, 0, 0)}


def median(v):
    n = len(v["x"])
    window = np.clip(np.arange(n)[:, None] + np.arange(-3, 4)[None, :], 0, n - 1)
    return {"out": (np.median(v["x"][window], axis=1), 0, 0)}


def double_math(v):
    x = v["x"]
    y = np.exp(-x * x) * np.cos(x) + np.log(x * x + 1.5) + np.arctan2(x, 2.0) + 1.5**x
    return {"out": (y, 1e-13, 1e-13)}


def interpreter(v):
    value, number = v["x"].astype(np.int64), np.arange(len(v["x"]))
    for k, op in enumerate(v["code"]):
        bits = np.array([bin(int(x) & 0xFFFFFFFF).count("1") for x in value])
        steps = (value + number, value * 3, value ^ (value >> 3), -value, value - k, bits + (value << 2))
        value = steps[op].astype(np.int32).astype(np.int64)
    return {"out": (value, 0, 0)}


def tickets(v):
    return {"best": (v["x"].max(), 0, 0), "taken": (np.bincount(v["x"] & 3, minlength=4), 0, 0)}


def tile_sums(v):
    x = _f64(v["x"])
    return {"out": (x * x.sum(axis=1, keepdims=True) + x.max(axis=0), *_SINGLE)}


def largest(v):
    return {"out": (np.sort(v["x"])[::-1][: len(v["out"])], 0, 0)}


def gathered(v):
    return {"out": (v["x"][v["index"]], 0, 0)}


def tile_total(v):
    out = np.zeros(v["out"].shape)
    total_of_tiles = _f64(v["x"]).sum(axis=0)
    out[-total_of_tiles.shape[0] :, -total_of_tiles.shape[1] :] = total_of_tiles
    return {"out": (out, *_SINGLE)}


_ALL = (
    add, softmax, layer_norm, histogram, scan, sort, fp8, special, philox, matmul, matmul_nt, attention,
    scaled_matmul, biased_matmul, common_bits, matmul_of_nibbles,
    total, divisors, escape, median, double_math, interpreter, tickets,
    tile_sums, largest, gathered, tile_total,
)  # fmt: skip
REFERENCES = {function.__name__: function for function in _ALL}
