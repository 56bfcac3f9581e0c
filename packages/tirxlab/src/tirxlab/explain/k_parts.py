"""Parts of K tiles that a product lacks, has more than once, or has multiplied with other parts; a K tile may
be multiplied by several MMAs.
"""

from __future__ import annotations

import itertools

import numpy as np

from tirxlab.explain.blocks import K_TILE, Block, Found, products_of, times_of

PART = 16  # columns of K that one MMA of 16-bit operands takes (PTX ISA 9.7.16.2.1)
_MOST = 32  # parts that are told apart


def k_parts(block: Block) -> Found:
    """A sum of products of 16 columns of K, each of them any number of times."""
    K = block.A.shape[1]
    count = K // PART
    if K % PART or not 2 <= count <= _MOST or block.D.size < 4 * count:
        return None
    times = times_of(block, products_of(block, [(k, k) for k in range(count)], PART))
    if times is None or len(set(times.tolist())) == 1:
        return None
    lacks = f"lacks columns {_columns(times == 0)} of K" if (times == 0).any() else ""
    often = f"has columns {_columns(times > 1)} of K more than once" if (times > 1).any() else ""
    advice = (
        "does each load begin at the columns of its own K tile (k * BLK_K), and does each MMA multiply all "
        "columns of its part, once, and accumulate, except the very first?"
    )
    return advice, f"{block.place} {' and '.join(filter(None, (lacks, often)))}, of {K}"


def mixed_parts(block: Block) -> Found:
    """16 columns of A's K tile times other columns of B's, the same ones in all K tiles."""
    each = K_TILE // PART
    if block.A.shape[1] % K_TILE or block.D.size < 8 * each**2:
        return None
    a = block.A[block.rows].reshape(len(block.rows), -1, each, PART)
    b = block.B[block.columns].reshape(len(block.columns), -1, each, PART)
    pairs = list(itertools.product(range(each), repeat=2))
    products = [np.tensordot(a[:, :, i], b[:, :, j], ((1, 2), (1, 2))).reshape(-1) for i, j in pairs]
    times = times_of(block, np.stack(products))
    if times is None:
        return None
    others = times.reshape(each, each) > 0
    odd = [i for i in range(each) if others[i].any() and not others[i, i]]
    if not odd:
        return None
    (own, alien) = (_columns(np.isin(np.arange(each), odd)), _columns(np.asarray(others[odd].any(0))))
    advice = "A and B of one MMA must be the same columns of their K tiles: look at both slices"
    return (
        advice,
        f"{block.place}: columns {own} of each K tile of A are multiplied with columns {alien} of B",
    )


def _columns(parts: np.ndarray) -> str:
    """`0-31, 64-95`: the columns of these parts."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], parts, [False])).astype(np.int8)))
    runs = [f"{a * PART}-{b * PART - 1}" for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return ", ".join(runs[:4]) + (", .." if len(runs) > 4 else "")
