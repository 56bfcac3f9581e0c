"""Rows or columns of a tile that are in the wrong place: shifted, exchanged, repeated or reordered."""

from __future__ import annotations

import numpy as np

from tirxlab.explain.blocks import SHARE, Block, Found, share
from tirxlab.explain.ranges import mapping

_PROBES = 12  # elements by which lines are compared first


def moved_rows(block: Block) -> Found:
    return _moved(block, block.D, block.R[:, block.columns], block.rows, "row")


def moved_columns(block: Block) -> Found:
    return _moved(block, block.D.T, block.R[block.rows].T, block.columns, "column")


def _moved(block: Block, given: np.ndarray, right: np.ndarray, numbers: np.ndarray, unit: str) -> Found:
    """Every line (row or column) of the block is another line of the product, at the same columns (rows)."""
    source = _sources(block, given, right)
    if source is None or (source == numbers).all():
        return None
    what, advice = _movement(numbers, source, unit)
    return advice, f"{block.place}: {what}"


def _sources(block: Block, given: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """For each line of `given` the line of `right` that it equals; None unless nearly all equal one."""
    if given.shape[1] < 4:
        return None
    picked = np.linspace(0, given.shape[1] - 1, _PROBES).astype(int)
    with np.errstate(invalid="ignore"):
        distance = np.abs(given[:, None, picked] - right[None][:, :, picked]).sum(2)
    nearest = np.where(np.isnan(distance), np.inf, distance).argmin(1)
    good = [share(a, right[n], block.tolerance) >= SHARE for a, n in zip(given, nearest, strict=True)]
    return nearest if np.mean(good) >= SHARE else None


_FILLED_AGAIN = "is a buffer filled again before its contents were stored"
_FILLED_LATE = "are old contents of a buffer or register stored, because a read, cast or copy comes too late"


def _movement(numbers: np.ndarray, source: np.ndarray, unit: str) -> tuple[str, str]:
    """(which lines moved where, advice)."""
    pairs = dict(zip(numbers.tolist(), source.tolist(), strict=True))
    shift = set((source - numbers).tolist())
    if len(shift) == 1:
        by = shift.pop()
        where = f"{abs(by)} {'further on' if by > 0 else 'before'}"
        when = _FILLED_AGAIN if by > 0 else _FILLED_LATE
        return f"{unit}s {mapping(numbers, source)}, those {where}", (
            f"look at the {unit} offset of the tensor memory read or the store, and at the first row of "
            f"{'A' if unit == 'row' else 'B'} that the load brings and the MMA takes; or {when}?"
        )
    if all(pairs.get(s) == n for n, s in pairs.items()):
        ranges = mapping(numbers, source)
        half = (numbers[-1] - numbers[0] + 1) // 2
        name = f"{unit} halves" if set(abs(source - numbers).tolist()) == {half} else f"{unit}s"
        return f"its {name} are swapped: {ranges}", f"look at which {unit}s each part of the code works on"
    kept = len(set(source.tolist()))
    if kept < len(source):
        return f"{unit}s are repeated: {mapping(numbers, source)}", (
            f"does each part write its own {unit}s, and read its own part of the buffer?"
        )
    return f"{unit}s are in another order: {mapping(numbers, source)}", (
        f"look at how threads, registers or addresses map to {unit}s, "
        f"and at what copies {'A' if unit == 'row' else 'B'}: a {unit} of D is a row of it"
    )
