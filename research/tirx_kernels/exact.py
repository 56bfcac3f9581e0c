"""What a kernel's rounding leaves open, in numpy: an exact result, and how far from it an output may lie.

Two right kernels that round in another order differ where the exact value lies near the middle of two 16-bit
numbers. So an output is held beside the exact value: half a step of its format, and what the approximations
of float32 may be wrong by before it is rounded to that format.
"""

from __future__ import annotations

import numpy as np

FORMATS = {"bfloat16": (7, -126), "float16": (10, -14)}  # bits behind the point, least exponent
APPROXIMATED = 2.0**-20  # errors of ex2.approx, div.approx, lg2.approx (PTX ISA 9.7.3) and sums, added up


def steps(values: np.ndarray, form: str) -> np.ndarray:
    """The distance from each value to the next number of a 16-bit format."""
    bits, least = FORMATS[form]
    return np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(values), 2.0**-200))), least) - bits)


def merged_states(v_a, s_a, v_b, s_b) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two partial outputs of attention (.., dim) with the base-2 logarithms of their sums (..) -> one of
    both, its logarithms, and the sum of the magnitudes of what is added up; float64.
    """
    v_a, s_a, v_b, s_b = (np.asarray(x, np.float64) for x in (v_a, s_a, v_b, s_b))
    total = np.logaddexp2(s_a, s_b)
    parts = [v * np.exp2(s - total)[..., None] for v, s in ((v_a, s_a), (v_b, s_b))]
    return parts[0] + parts[1], total, np.abs(parts[0]) + np.abs(parts[1])


def wrong_merged(states, v, s, form: str) -> tuple[int, int]:
    """How many outputs and how many logarithms no order of rounding explains."""
    exact, total, size = merged_states(*states)
    v_off = np.abs(np.asarray(v, np.float64) - exact) > steps(exact, form) / 2 + APPROXIMATED * size
    s_off = np.abs(np.asarray(s, np.float64) - total) > APPROXIMATED * (1 + np.abs(total))
    return int(v_off.sum()), int(s_off.sum())


def wrong_products(a, b, out, form: str) -> int:
    """How many elements of A B^T no order of float32 sums explains."""
    a, b = (np.asarray(x, np.float64) for x in (a, b))
    exact, size = a @ b.T, np.abs(a) @ np.abs(b).T
    off = np.abs(np.asarray(out, np.float64) - exact) > steps(exact, form) / 2 + APPROXIMATED * size
    return int(off.sum())
