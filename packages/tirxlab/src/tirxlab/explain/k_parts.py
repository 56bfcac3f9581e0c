"""Parts of K tiles that a product lacks, or has more than once: several MMAs may multiply one K tile."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import Block, Found, products_of, times_of

PART = 16  # columns of K that one MMA of 16-bit operands takes (PTX ISA 9.7.16.2.1)
_MOST = 32  # parts that are told apart


def k_parts(block: Block) -> Found:
    """A sum of products of 16 columns of K, each some number of times."""
    K = block.A.shape[1]
    count = K // PART
    if K % PART or not 2 <= count <= _MOST or block.D.size < 4 * count:
        return None
    times = times_of(block, products_of(block, [(k, k) for k in range(count)], PART))
    if times is None or len(set(times.tolist())) == 1:
        return None
    lacks = f"lacks columns {_columns(times == 0)} of K" if (times == 0).any() else ""
    often = f"has columns {_columns(times > 1)} of K more than once" if (times > 1).any() else ""
    advice = "does each MMA multiply the columns of its own part, and accumulate but for the very first?"
    return advice, f"{block.place} {' and '.join(filter(None, (lacks, often)))}, of {K}"


def _columns(parts: np.ndarray) -> str:
    """`0-31, 64-95`: the columns of these parts."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], parts, [False])).astype(np.int8)))
    runs = [f"{a * PART}-{b * PART - 1}" for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return ", ".join(runs[:4]) + (", .." if len(runs) > 4 else "")
