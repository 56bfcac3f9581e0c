"""Bounds on a kernel's rounding, in numpy: an exact result, and how far from it an output may be.

Two correct kernels that round in a different order differ where the exact value is near the middle of two
16-bit numbers. So an output is compared with the exact value: within half a step of its format, plus the
possible error of the float32 approximations before rounding to that format.
"""

from __future__ import annotations

import numpy as np

FORMATS = {"bfloat16": (7, -126), "float16": (10, -14)}  # bits after the point, smallest exponent
APPROXIMATED = 2.0**-20  # errors of ex2.approx, div.approx, lg2.approx (PTX ISA 9.7.3) and sums, added up


def steps(values: np.ndarray, form: str) -> np.ndarray:
    """The distance from each value to the next number of a 16-bit format."""
    bits, least = FORMATS[form]
    return np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(values), 2.0**-200))), least) - bits)


def merged_states(v_a, s_a, v_b, s_b) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merges two partial outputs of attention (.., dim) with the base-2 logarithms of their sums (..);
    returns the output, its logarithms, and the sum of the magnitudes of the terms, in float64.
    """
    v_a, s_a, v_b, s_b = (np.asarray(x, np.float64) for x in (v_a, s_a, v_b, s_b))
    total = np.logaddexp2(s_a, s_b)
    parts = [v * np.exp2(s - total)[..., None] for v, s in ((v_a, s_a), (v_b, s_b))]
    return parts[0] + parts[1], total, np.abs(parts[0]) + np.abs(parts[1])


def wrong_merged(states, v, s, form: str) -> tuple[int, int]:
    """The numbers of outputs and of logarithms that no order of rounding explains."""
    exact, total, size = merged_states(*states)
    v_off = np.abs(np.asarray(v, np.float64) - exact) > steps(exact, form) / 2 + APPROXIMATED * size
    s_off = np.abs(np.asarray(s, np.float64) - total) > APPROXIMATED * (1 + np.abs(total))
    return int(v_off.sum()), int(s_off.sum())


def wrong_products(a, b, out, form: str) -> int:
    """The number of elements of A B^T that no order of float32 sums explains."""
    a, b = (np.asarray(x, np.float64) for x in (a, b))
    exact, size = a @ b.T, np.abs(a) @ np.abs(b).T
    off = np.abs(np.asarray(out, np.float64) - exact) > steps(exact, form) / 2 + APPROXIMATED * size
    return int(off.sum())
