"""What a wrong product looks like: D compared with what common mistakes in D = A @ B.T would have computed.

`reasons` takes the wrong rows and columns of each 128x128 tile and tries the PATTERNS on them, in order: K
tiles left out or added twice, another tile's values, this tile's values in another place, and so on. It
reports which of them fits, or that none does. This is not a guess: a pattern fits if at least 98 % of the
elements agree within the tolerance of the comparison. Some patterns can arise at several places of a kernel
(MANY_WAYS); their advice is replaced by what a run shows, if it does (origins/).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tirxlab.explain.blocks import (
    K_TILE,
    SHARE,
    TILE,
    Block,
    Found,
    products_of,
    share,
    times_of,
    wrong_tiles,
)
from tirxlab.explain.chains import find_chain
from tirxlab.explain.coarse import coarse
from tirxlab.explain.half_lanes import half_lanes
from tirxlab.explain.k_parts import k_parts, mixed_parts
from tirxlab.explain.moved import moved_columns, moved_rows
from tirxlab.explain.one_lane import one_lane
from tirxlab.explain.other_rows import other_rows
from tirxlab.explain.pieces import pieces
from tirxlab.explain.row_groups import row_groups
from tirxlab.explain.swizzles import exchanges
from tirxlab.explain.turned_loads import turned_tile

_TILES = 6  # wrong tiles that are looked at
_FEW = 16  # with fewer wrong elements than this, no pattern can be recognised
_MOST_K, _MOST_PAIRS = 64, 17  # most K tiles that are told apart; that are paired with each other
_CUTS = ((0, 2), (1, 2), (0, 4), (1, 4))  # (axis, parts) into which a tile is cut if no pattern fits it whole
_PROBES = 12  # elements by which places are compared first


class Reason(NamedTuple):
    """What some of the wrong tiles hold, and what to look at."""

    text: str
    advice: str
    guesses: bool  # the mistake may be in another place than the advice names

    def lines(self, way: bool = False) -> list[str]:
        """The lines to show. `way`: an element's way through the run is shown, which replaces a guess."""
        return [self.text, *([f"  {self.advice}"] if self.advice and not (way and self.guesses) else [])]


NO_PATTERN = Reason(
    "what they hold fits no known pattern as a whole (tiles, K tiles, rows, columns, swizzles)", "", True
)


def reasons(actual, expected, A, B, wrong, rtol: float = 1e-3, atol: float = 1e-2) -> list[Reason]:
    """What the wrong elements hold, NO_PATTERN if no pattern fits; of only a few elements, at most that they
    are rounded.

    actual, expected (M, N), A (M, K), B (N, K): numpy arrays of any float dtype. wrong (M, N): which
    elements of actual to look at.
    """
    if not wrong.any():
        return []
    blocks = list(_blocks(actual, expected, A, B, wrong, (rtol, atol)))
    patterns: tuple = (coarse,)
    if wrong.sum() >= _FEW:
        chain = find_chain(blocks, actual)
        patterns += (*([chain.says] if chain else []), *PATTERNS)
    said: dict[str, list[Reason]] = {}
    for block in blocks:
        found = _first(patterns, block) or _in_parts(block)
        if found is not None:
            said.setdefault(found.advice, []).append(found)
    if not said:
        return [] if wrong.sum() < _FEW else [NO_PATTERN]
    if len(said.get(_EXCHANGED, blocks)) < len(blocks):  # an exchange affects all tiles off the diagonal
        said = {_SAME_TILE: said.pop(_EXCHANGED) + said.pop(_SAME_TILE, []), **said}
    made = []
    for advice, alike in said.items():
        more = f" (in {len(alike)} of the {len(blocks)} wrong tiles examined)" if len(blocks) > 1 else ""
        made.append(Reason(f"{alike[0].text}{more}", advice, any(one.guesses for one in alike)))
    return made


def _first(patterns: tuple, block: Block) -> Reason | None:
    """The reason by the first pattern that fits."""
    for pattern in patterns:
        found = pattern(block)
        if found is not None:
            advice, text = found
            return Reason(text, advice, pattern in MANY_WAYS)
    return None


def _in_parts(block: Block) -> Reason | None:
    """The reasons for the block's parts, if some cut gives parts that all fit patterns; else that of one part
    that does.
    """
    half: Reason | None = None
    for axis, count in _CUTS:
        parts = block.cut(axis, count)
        if len(parts) < 2 or any(part.D.size < _FEW for part in parts):
            continue
        each = [_first(_OF_PARTS, part) for part in parts]
        found = [one for one in each if one is not None]
        if len(found) == len(parts):
            return found[0]._replace(text="; ".join(dict.fromkeys(one.text for one in found[:2])))
        if found and half is None:
            half = found[0]._replace(text=f"{found[0].text}; the rest of the tile fits no known pattern")
    return half


def _blocks(actual, expected, A, B, wrong, tolerance):
    """Up to _TILES wrong tiles, spread evenly, as blocks."""
    tiles = wrong_tiles(wrong)
    chosen = tiles[np.unique(np.linspace(0, len(tiles) - 1, _TILES).astype(int))]
    A, B, R = (x.astype(np.float32) for x in (A, B, expected))
    for r, c in chosen.tolist():
        part = wrong[r * TILE : (r + 1) * TILE, c * TILE : (c + 1) * TILE]
        mine = np.flatnonzero(part.any(1)) + r * TILE, np.flatnonzero(part.any(0)) + c * TILE
        yield Block((r, c), *mine, actual[np.ix_(*mine)].astype(np.float32), R, A, B, tolerance)


_TURNED = "are A and B exchanged in the MMA, or rows and columns where D is stored?"

# ---- patterns: (advice, sentence), or None; in the order in which they are tried ----


def _constant(block: Block) -> Found:
    if np.isnan(block.D).mean() >= SHARE:
        advice = "memory that was never written entered the product, or was stored instead of it"
        return advice, f"{block.place} is NaN"
    if (block.D == 0).mean() >= SHARE:
        advice = (
            "was anything multiplied, and stored from the buffer that holds it? Or does a load lie outside "
            "of A or B, which gives zeros: does each coordinate count along its own axis, once?"
        )
        return advice, f"{block.place} is 0"
    return None


def _k_tiles(block: Block) -> Found:
    """A sum of products of single K tiles, each of them any number of times."""
    count = block.A.shape[1] // K_TILE
    if block.A.shape[1] % K_TILE or not 1 <= count <= _MOST_K or block.D.size < 4 * count:
        return None
    products = products_of(block, [(k, k) for k in range(count)])
    times = times_of(block, products)
    if times is None or (times == 1).all():
        return None
    return _k_sentence(block, times.tolist())


def _k_sentence(block: Block, times: list[int]) -> Found:
    count, place = len(times), block.place
    used = [k for k, n in enumerate(times) if n]
    if len(set(times)) == 1:
        return "each product was added more than once", f"{place} is {times[0]} times the product"
    if len(used) == 1 and times[used[0]] == 1:
        advice = "does every MMA but the first accumulate (accum), and does the loop run over all K tiles?"
        return advice, f"{place} is the product of K tile {used[0]} alone, of {count}"
    if len(used) == 1:
        return (
            "does each round load its own K tile (k_st), into the stage that the MMA reads?",
            f"{place} is {times[used[0]]} times the product of K tile {used[0]}, of {count}",
        )
    missing = [k for k, n in enumerate(times) if n == 0]
    often = [k for k, n in enumerate(times) if n > 1]
    parts = [f"lacks {_listed('K tile', missing)}"] if missing else []
    parts += [f"has {_listed('K tile', often)} more than once"] if often else []
    if not parts:
        return None
    advice = "does the loop over K load, wait for and multiply each K tile once?"
    if missing == [0] and not often:
        advice = "does the loop begin with it? Is accum false in the first MMA, and true in all others?"
    elif missing == [count - 1] and not often:
        advice = "the last K tile: look at the loop's bounds"
    elif missing and not often and missing == list(range(len(missing))):
        advice = f"is the product overwritten at K tile {len(missing)} (accum), or does the loop begin there?"
    return advice, f"{place} {' and '.join(parts)}, of {count}"


def _sliding_k_tiles(block: Block) -> Found:
    """K tiles that begin one column apart instead of K_TILE columns."""
    count = block.A.shape[1] // K_TILE
    if block.A.shape[1] % K_TILE or not 2 <= count <= _MOST_K:
        return None
    a, b = block.A[block.rows], block.B[block.columns]
    slid = [np.hstack([m[:, k : k + K_TILE] for k in range(count)]) for m in (a, b)]
    for names, left, right in (("A and B", slid[0], slid[1]), ("A", slid[0], b), ("B", a, slid[1])):
        if block.agrees(left @ right.T):
            advice = "the first column of K tile k is k * BLK_K: is k_st scaled?"
            return (
                advice,
                f"{block.place} is the product of K tiles of {names} that begin at columns 0, 1, ..",
            )
    return None


def _mixed_k_tiles(block: Block) -> Found:
    """K tiles of A multiplied with other K tiles of B."""
    count = block.A.shape[1] // K_TILE
    if block.A.shape[1] % K_TILE or not 2 <= count <= _MOST_PAIRS or block.D.size < 8 * count**2:
        return None
    pairs = [(i, j) for i in range(count) for j in range(count)]
    times = times_of(block, products_of(block, pairs))
    if times is None:
        return None
    odd = [pair for pair, n in zip(pairs, times.tolist(), strict=True) if n and pair[0] != pair[1]]
    if not odd:
        return None
    shown = ", ".join(f"K tile {i} of A times K tile {j} of B" for i, j in odd[:3])
    advice = "A and B of one product must be of the same K tile: same k_st, same stage, not refilled before"
    return advice, f"{block.place} holds {shown}"


def _swizzled(block: Block) -> Found:
    """One operand's K tiles were written to shared memory in one layout and read in another."""
    K = block.A.shape[1]
    operands = (("A", block.A, block.tile[0], block.rows), ("B", block.B, block.tile[1], block.columns))
    if K % K_TILE or any(len(matrix) < (n + 1) * TILE for _, matrix, n, _ in operands):
        return None
    for name, matrix, number, lines in operands:
        other = block.B[block.columns] if name == "A" else block.A[block.rows]
        tiles = matrix[number * TILE : (number + 1) * TILE].reshape(TILE, -1, K_TILE).swapaxes(0, 1)
        for written, read, source in exchanges(TILE, K_TILE):
            turned = tiles.reshape(len(tiles), -1)[:, source].reshape(tiles.shape)
            mine = turned.swapaxes(0, 1).reshape(TILE, K)[lines - number * TILE]
            if block.agrees(mine @ other.T if name == "A" else other @ mine.T):
                text = f"{block.place} has {name} written as {written} and read as {read}"
                return f"use one layout for {name}smem, its copy and its MMA (tma_shared_layout)", text
    return None


def _turned_load(block: Block) -> Found:
    """One operand's loads have row and column exchanged."""
    a, b = block.A[block.rows], block.B[block.columns]
    for name, matrix, number, lines in (("A", block.A, 0, block.rows), ("B", block.B, 1, block.columns)):
        first = block.tile[number]
        mine = turned_tile(matrix, first, TILE, K_TILE)[lines - first * TILE]
        if mine.any() and block.agrees(a @ mine.T if number else mine @ b.T):
            text = f"{block.place} has {name} loaded with row and column exchanged"
            return f"{name}'s slice must be [rows, k_st : ..]: look at the copy into {name}smem", text
    return None


def _transposed(block: Block) -> Found:
    """A tile of the transposed D, or this tile transposed in place."""
    R, (r, c) = block.R, (block.tile[0] * TILE, block.tile[1] * TILE)
    places = (
        (r + block.columns - c, c + block.rows - r, "is transposed"),
        (block.columns, block.rows, "is that of the transposed D"),
    )
    for rows, columns, text in places:
        if rows[-1] < R.shape[0] and columns[-1] < R.shape[1] and block.agrees(R[np.ix_(rows, columns)].T):
            return _TURNED, f"{block.place} {text}"
    return None


def _same_operand(block: Block) -> Found:
    """A tile of B @ B.T or A @ A.T: the same operand twice."""
    (row, column), place = block.tile, block.place
    down, across = block.rows - row * TILE, block.columns - column * TILE
    for name, other, matrix, smem in (("B", "A", block.B, "Asmem"), ("A", "B", block.A, "Bsmem")):
        own, lines = (block.columns, down) if name == "B" else (block.rows, across)
        for first in dict.fromkeys((row * TILE, column * TILE)):
            taken = first + lines
            if taken[-1] >= len(matrix) or own[-1] >= len(matrix):
                continue
            pair = (matrix[taken], matrix[own]) if name == "B" else (matrix[own], matrix[taken])
            if block.agrees(pair[0] @ pair[1].T):
                text = f"{place} is {name} @ {name}.T: {name} is used in place of {other}"
                return f"look at what is loaded into {smem}, and at the operands of the MMA", text
    return None


def _other_tile(block: Block) -> Found:
    """The same rows and columns of another tile."""
    for other in _same_place(block, block.D):
        return _tile_sentence(block, other)
    return None


_EXCHANGED = "m_st and n_st, or bx and by, are exchanged"
_SAME_TILE = (
    "do the loads of a tile, its columns of tensor memory (where they are written and where they are read) "
    "and its store all use the same tile?"
)


def _tile_sentence(block: Block, other: tuple[int, int]) -> Found:
    (r, c), (s, d) = block.tile, other
    text = f"tile ({r}, {c}) holds the values of tile ({s}, {d})"
    if (s, d) == (c, r) and r != c:
        return _EXCHANGED, text
    if d == c:
        advice = (
            "its rows of A are those of another tile: look at the row at which each load of A begins (m_st, "
            "and what is added to it), at the part of Asmem that the MMA takes, at the columns of tensor "
            "memory that are written and read, and at where D is stored"
        )
        return advice, text
    if s == r:
        advice = (
            "its rows of B are those of another tile: look at n_st, at the part of Bsmem that the MMA takes, "
            "at the columns of tensor memory and the registers that are written and read, and at where D is "
            "stored"
        )
        return advice, text
    return _SAME_TILE, text


def _added(block: Block) -> Found:
    """The right product plus that of another tile: the accumulator was not overwritten first."""
    rest = block.D - block.of(block.R)
    for other in _same_place(block, rest):
        advice = "the first MMA of each tile must overwrite tensor memory (accum=False), not add to it"
        text = f"tile {block.tile} holds its product plus that of tile {other}"
        return advice, text
    return None


def _same_place(block: Block, values: np.ndarray):
    """Yields the other tiles (row, column) of R that hold `values` at the block's place in the tile."""
    height, width = (min(TILE, n) for n in block.R.shape)
    down, across = (n // TILE for n in block.R.shape)
    rows, columns = block.rows % height, block.columns % width
    picked = np.linspace(0, values.size - 1, _PROBES).astype(int)
    i, j = np.unravel_index(picked, values.shape)
    for s in range(max(down, 1)):
        for d in range(max(across, 1)):
            if (s, d) == block.tile:
                continue
            probe = block.R[s * TILE + rows[i], d * TILE + columns[j]]
            if share(values[i, j], probe, block.tolerance) < 0.7:
                continue
            whole = block.R[np.ix_(s * TILE + rows, d * TILE + columns)]
            if block.agrees(whole, values):
                yield s, d


PATTERNS: tuple[Callable[[Block], Found], ...] = (
    one_lane,
    _constant,
    half_lanes,
    _k_tiles,
    k_parts,
    mixed_parts,
    _transposed,
    _same_operand,
    _other_tile,
    _added,
    moved_rows,
    row_groups,
    moved_columns,
    _sliding_k_tiles,
    _mixed_k_tiles,
    other_rows,
    _turned_load,
    _swizzled,
    pieces,
)


# Patterns that a mistake in the loads, the product, its read or the store can cause.
MANY_WAYS = {
    _constant,
    half_lanes,
    _transposed,
    _same_operand,
    _other_tile,
    moved_rows,
    row_groups,
    moved_columns,
    other_rows,
    pieces,
}

_OF_PARTS = (_constant, _k_tiles, _other_tile, _added, moved_rows, moved_columns)  # the quick ones


def _listed(noun: str, numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6])) + (", ..." if len(numbers) > 6 else "")
    return f"{noun}{'s' * (len(numbers) > 1)} {shown}"
