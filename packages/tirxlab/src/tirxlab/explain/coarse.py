"""The right product with more rounding than one cast to float16: sums that were not kept in float32."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import SHARE, Block, Found

_FARTHEST = 0.03  # of the root mean square; a missing term of the sum gives a larger error somewhere
_LOW_BITS = 0xFFFF  # of a float32, which a bfloat16 lacks


def coarse(block: Block) -> Found:
    """Every element is close to the right one. Tried first: other patterns would fit it by chance."""
    right = block.of(block.R)
    off = np.abs(block.D - right).max()
    if not off <= _FARTHEST * np.sqrt(np.mean(right**2)):
        return None
    if ((np.ascontiguousarray(block.D).view(np.uint32) & _LOW_BITS) == 0).mean() >= SHARE:
        return (
            "cast the float32 sums to float16 at once, not by way of bfloat16",
            f"{block.place} is nearly right: its numbers have 8 significant bits, those of bfloat16",
        )
    return (
        "are sums of K tiles, or parts of them, rounded on the way? Keep them in float32 up to the one cast",
        f"{block.place} is nearly right, off by at most {off:.3g}: rounded too often",
    )
