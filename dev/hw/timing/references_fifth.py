"""What the kernels compute that are new in the fifth round, or that no earlier set had: as references.py."""

from __future__ import annotations

import numpy as np

from dev.hw.timing.references import plain, plain_transposed

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
    """In float32, as the kernel counts."""
    rows, columns = np.mgrid[: v["H"], : v["W"]].astype(np.float32)
    cx, cy = np.float32(2.5) * columns / v["W"] - 2, np.float32(2.5) * rows / v["H"] - np.float32(1.25)
    c = (cx + 1j * cy).astype(np.complex64)
    z, turns = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(v["L"]):
        inside = z.real**2 + z.imag**2 < 4
        z, turns = np.where(inside, z * z + c, z), turns + inside
    return {"y": turns}


REFERENCES = {
    "plain_turned": plain_turned, "plain_blur": plain_blur, "plain_tiles": plain,
    "plain_halves": plain_transposed, "plain_prefix": plain_prefix, "plain_escape": plain_escape,
}  # fmt: skip
