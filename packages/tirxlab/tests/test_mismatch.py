"""`verify` explains wrong numbers: each pattern is made from random data and must be recognised."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import utils
from tirxlab.explain.mismatch import reasons
from tirxlab.explain.swizzles import NAMES, exchanges, places

SIZES = [(128, 128, 192), (256, 128, 320), (384, 384, 192)]
TILE, K_TILE = 128, 64


@pytest.mark.parametrize("first", [2, 3])
def test_a_product_that_begins_late_is_overwritten_or_the_loop_begins_there(first):
    problem = Problem((256, 128, 320), first)
    said = problem.said(sum(problem.k_tile(k) for k in range(first, problem.count)))
    assert f"is the product overwritten at K tile {first} (accum)" in said


@pytest.mark.parametrize("size", [(128, 128, 64), *SIZES])
def test_coarse_rounding_is_no_other_place(size):
    """With one K tile, a load whose row and column are exchanged brings the right tile, too."""
    problem = Problem(size, 5)
    said = problem.said(problem.R.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert "its numbers have 8 significant bits, those of bfloat16" in said
    assert "exchanged" not in said


def test_partial_sums_in_float16_are_rounded_too_often():
    problem = Problem((128, 128, 4096), 6)
    sums = np.zeros_like(problem.R, np.float16)
    for k in range(problem.count):
        sums = (sums + problem.k_tile(k)).astype(np.float16)
    assert "is nearly right, off by at most" in problem.said(sums)


class Problem:
    def __init__(self, size, seed):
        self.M, self.N, self.K = size
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.A, self.B = (rng.standard_normal((rows, self.K)).astype(np.float16) for rows in (self.M, self.N))
        self.R = self.A.astype(np.float32) @ self.B.astype(np.float32).T
        self.count = self.K // K_TILE

    def k_tile(self, i, j=None):
        """Product of A's K tile i and B's K tile j."""
        a, b = (x.astype(np.float32).reshape(len(x), self.count, K_TILE) for x in (self.A, self.B))
        return a[:, i] @ b[:, i if j is None else j].T

    def twice(self, X):
        return X.astype(np.float32) @ X.astype(np.float32).T

    def one_tile_of(self, X, Y):
        """D with only its first tile wrong: rows of X times rows of Y."""
        D = self.R.copy()
        D[:TILE, :TILE] = X[:TILE].astype(np.float32) @ Y[:TILE].astype(np.float32).T
        return D

    def said(self, D) -> str:
        """The message of verify about D, without the places of the wrong elements."""
        with pytest.raises(AssertionError) as failure:
            utils.verify(D.astype(np.float16), self.A, self.B)
        return "\n".join(str(failure.value).splitlines()[5:])


def _tiles(R):
    M, N = R.shape
    return R.reshape(M // TILE, TILE, N // TILE, TILE)


def turned(X, rows: int):
    """The tile that loads of X[k : k + 128, row : row + 64] bring for each tile of rows; zeros outside."""
    padded = np.zeros((X.shape[1] + TILE, max(X.shape[1], rows) + K_TILE), np.float32)
    padded[: min(len(X), len(padded)), : X.shape[1]] = X[: len(padded)]
    starts = range(0, X.shape[1], K_TILE)
    return np.vstack(
        [np.hstack([padded[k : k + TILE, r : r + K_TILE] for k in starts]) for r in range(0, rows, TILE)]
    )


# Name -> (the kernel's result, the required message).
WHOLE = {
    "one K tile alone": (lambda p: p.k_tile(1), "is the product of K tile 1 alone"),
    "first K tile missing": (lambda p: p.R - p.k_tile(0), "lacks K tile 0, of"),
    "last K tile missing": (lambda p: p.R - p.k_tile(p.count - 1), "the last K tile: look at"),
    "half of the first K tile missing": (
        lambda p: p.R - p.A[:, :32].astype(np.float32) @ p.B[:, :32].T, "lacks columns 0-31 of K",
    ),
    "an MMA twice": (
        lambda p: p.R + p.A[:, 48:64].astype(np.float32) @ p.B[:, 48:64].T, "has columns 48-63 of K more",
    ),
    "a K tile twice": (lambda p: p.R + p.k_tile(1), "has K tile 1 more than once"),
    "one for another": (lambda p: p.R + p.k_tile(0) - p.k_tile(1), "lacks K tile 1 and has K tile 0 more"),
    "the first each time": (lambda p: p.count * p.k_tile(0), "times the product of K tile 0"),
    "K tiles one column apart": (
        lambda p: sum(p.A[:, k : k + 64].astype(np.float32) @ p.B[:, k : k + 64].T for k in range(p.count)),
        "K tiles of A and B that begin at columns 0, 1, ..",
    ),
    "A's K tiles one column apart": (
        lambda p: np.hstack([p.A[:, k : k + 64].astype(np.float32) for k in range(p.count)]) @ p.B.T,
        "K tiles of A that begin at columns 0, 1, ..",
    ),
    "B loaded with row and column exchanged": (
        lambda p: p.A.astype(np.float32) @ turned(p.B, p.N).T,
        "has B loaded with row and column exchanged",
    ),
    "A loaded with row and column exchanged": (
        lambda p: turned(p.A, p.M) @ p.B.astype(np.float32).T,
        "has A loaded with row and column exchanged",
    ),
    "all twice": (lambda p: 2 * p.R, "is 2 times the product"),
    "mixed K tiles": (
        lambda p: p.R - p.k_tile(1) + p.k_tile(1, 0),
        "K tile 1 of A times K tile 0 of B",
    ),
    "half of B's K tile twice": (
        lambda p: sum(
            p.A[:, k : k + 32].astype(np.float32) @ p.B[:, k // 64 * 64 : k // 64 * 64 + 32].T
            for k in range(0, p.A.shape[1], 32)
        ),
        "columns 32-63 of each K tile of A are multiplied with columns 0-31 of B",
    ),
    "tiles turned": (lambda p: _tiles(p.R).transpose(0, 3, 2, 1).reshape(p.R.shape), "is transposed"),
    "halves swapped": (
        lambda p: p.R.reshape(p.M, -1, 2, 64)[:, :, ::-1].reshape(p.R.shape),
        "its column halves are swapped: 0-63 hold 64-127",
    ),
    "row halves swapped": (
        lambda p: p.R.reshape(-1, 2, 64, p.N)[:, ::-1].reshape(p.R.shape),
        "its row halves are swapped: 0-63 hold 64-127",
    ),
    "a chunk repeated": (
        lambda p: np.repeat(p.R.reshape(p.M, -1, 2, 64)[:, :, :1], 2, axis=2).reshape(p.R.shape),
        "columns 64-127 hold 0-63, those 64 before",
    ),
    "one row for all": (
        lambda p: np.repeat(p.R[::TILE], TILE, axis=0),
        "rows are repeated",
    ),
    "B in place of A": (lambda p: p.one_tile_of(p.B, p.B), "is B @ B.T"),
    "A in place of B": (lambda p: p.one_tile_of(p.A, p.A), "is A @ A.T"),
    "nothing": (lambda p: 0 * p.R, "is 0"),
    "NaN": (lambda p: np.nan * p.R, "is NaN"),
    "one half moved, the other noise": (
        lambda p: np.where(np.arange(p.N) % TILE < 64, p.rng.standard_normal(p.R.shape), np.roll(p.R, 64, 1)),
        "columns 64-127 hold 0-63, those 64 before; the rest of the tile fits no known pattern",
    ),
    "noise": (lambda p: p.R + p.rng.standard_normal(p.R.shape), "fits no known pattern"),
}  # fmt: skip
SEVERAL = {
    "D transposed": (lambda p: p.R.T, "transposed"),
    "the next rows": (lambda p: np.roll(p.R, -TILE, 0), "holds the values of tile (1, 0)"),
    "the next columns": (lambda p: np.roll(p.R, -TILE, 1), "its rows of B are those of another tile"),
    "m and n exchanged": (lambda p: _tiles(p.R).transpose(2, 1, 0, 3).reshape(p.R.shape), "are exchanged"),
    "B twice": (lambda p: p.twice(p.B), "is B @ B.T: B is used in place of A"),
    "A twice": (lambda p: p.twice(p.A), "is A @ A.T: A is used in place of B"),
    "not started anew": (lambda p: p.R + np.roll(p.R, TILE, 0), "holds its product plus that of tile (2, 0)"),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_pattern_is_named(name, size):
    problem = Problem(size, seed=len(name))
    computed, words = WHOLE[name]
    assert words in problem.said(computed(problem))


@pytest.mark.parametrize("name", SEVERAL)
def test_pattern_of_several_tiles_is_named(name):
    problem = Problem(SIZES[-1], seed=len(name))
    computed, words = SEVERAL[name]
    assert words in problem.said(computed(problem))


# The order in which one CTA processes the tiles of a 2x3 grid, and two CTAs those of a 3x3 grid.
BY_COLUMNS = [[(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]]
BY_ROWS = [[(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)], [(0, 1), (1, 0), (1, 2), (2, 1)]]
TWO_EACH = [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]


def _chained(problem, orders, step, depth=None):
    """D of CTAs whose tiles take the first `depth` K tiles (or all) from the tile `step` further on."""
    D, early = problem.R.copy(), sum(problem.k_tile(k) for k in range(depth or problem.count))
    at = [np.s_[r * TILE : (r + 1) * TILE, c * TILE : (c + 1) * TILE] for r, c in sum(orders, [])]
    at = dict(zip(sum(orders, []), at, strict=True))
    for order in orders:
        for holder, source in zip(order[-step:] if step < 0 else order, order[max(step, 0) :], strict=False):
            D[at[holder]] += early[at[source]] - early[at[holder]]
    return D


CHAINS = {
    "before": (
        BY_COLUMNS,
        -1,
        None,
        "(1, 0) that of (0, 0), (0, 1) that of (1, 0), (1, 1) that of (0, 1), ..",
    ),
    "after": (BY_COLUMNS, 1, None, "(0, 0) that of (1, 0), (1, 0) that of (0, 1), (0, 1) that of (1, 1), .."),
    "two CTAs": (
        BY_ROWS,
        -1,
        None,
        "(0, 2) that of (0, 0), (1, 1) that of (0, 2), (2, 0) that of (1, 1), ..",
    ),
    "first K tiles": (BY_COLUMNS, -1, 2, "(1, 0) has those of (0, 0), (0, 1) has those of (1, 0), "),
    "first K tile": (TWO_EACH, -1, 1, "(0, 1) has those of (0, 0), .."),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_of_tiles_is_one_pattern(name):
    orders, step, depth, links = CHAINS[name]
    down, across = (max(tile[n] for tile in sum(orders, [])) + 1 for n in (0, 1))
    problem = Problem((down * TILE, across * TILE, 192), seed=len(name))
    said = problem.said(_chained(problem, orders, step, depth))
    assert f"in a chain: {links}" in said and "where is next_tile() called" in said.lower()
    assert f"the one that its CTA computes {'before' if step < 0 else 'after'} it (in" in said
    assert said.count("tiles examined") == 1, said
    if depth:
        assert f"each tile has its first {'K tile' if depth == 1 else f'{depth} K tiles'} of 3 from" in said


def test_where_tile_0_0_is_in_no_chain_the_order_is_not_known():
    problem = Problem((256, 384, 128), 0)
    said = problem.said(_chained(problem, [[(1, 0), (0, 1), (1, 1), (0, 2)]], -1))
    assert "the one that its CTA computes before or after it" in said


def test_one_shift_or_scale_that_explains_all_tiles_is_no_chain():
    problem = Problem((384, 384, 192), 0)
    shifted, scaled = problem.R.copy(), problem.R.copy()
    shifted[:, TILE:] = problem.R[:, :-TILE]
    assert "its rows of B are those of another tile" in problem.said(shifted)
    scaled[TILE:256, TILE:256] = problem.R[256:, 256:]
    scaled[TILE:256, :TILE] = problem.R[256:, :TILE]
    said = problem.said(scaled)
    assert "tile (1, 1) holds the values of tile (2, 2)" in said and "chain" not in said


def test_tiles_held_by_two_or_in_a_circle_are_no_chain():
    problem = Problem((256, 384, 128), 0)
    circle = [BY_COLUMNS[0][-1:] + BY_COLUMNS[0]]
    assert "chain" not in problem.said(_chained(problem, circle, -1))
    D = _chained(problem, BY_COLUMNS, -1)
    D[TILE:, 256:] = problem.R[:TILE, :TILE]
    assert "chain" not in problem.said(D)


def _regrouped(problem, width, source):
    """D with its 16-byte groups exchanged: source(row, group) within each `width` groups."""
    groups = problem.R.reshape(problem.M, -1, width, 8)
    rows, places = np.indices((problem.M, width))
    return np.take_along_axis(groups, source(rows, places)[:, None, :, None], 2).reshape(problem.R.shape)


SHUFFLED = np.random.default_rng(1).permuted(np.tile(np.arange(8), (8, 1)), axis=1)
REGROUPED = {
    "xor": (8, lambda row, group: group ^ row % 8, "64", "mod 8): in row 1 columns 0-7 hold 8-15, "),
    "of 32 B": (8, lambda row, group: group ^ row // 4 % 2, "16", "mod 8): in row 4 columns 0-7 hold 8-15"),
    "of 32 B, alternating": (8, lambda row, group: group ^ row % 2, "16", "mod 2): in row 1 columns 0-7"),
    "rotation": (8, lambda row, group: (group - row) % 8, "64", "mod 8): in row 1 columns 0-7 hold 56-63"),
    "of all columns": (
        16,
        lambda row, group: (group - row) % 16,
        "128",
        "mod 16): in row 1 columns 0-7 hold 120",
    ),
    "shuffled": (8, lambda row, group: SHUFFLED[row % 8, group], "64", "mod 8): in row "),
}


@pytest.mark.parametrize("name", REGROUPED)
def test_groups_of_16_bytes_in_another_order_in_each_row_are_named(name):
    width, source, within, words = REGROUPED[name]
    problem = Problem((256, 256, 192), seed=len(name))
    said = problem.said(_regrouped(problem, width, source))
    assert f"groups of 8 columns (16 bytes) change places within {within} columns" in said and words in said
    assert "is Dsmem written and stored in the same layout?" in said
    assert "(in 4 of the 4 wrong tiles" in said


def test_an_order_that_no_row_modulo_explains_is_not_named():
    problem = Problem((128, 128, 192), 0)
    order = problem.rng.permuted(np.tile(np.arange(8), (128, 1)), axis=1)
    said = problem.said(_regrouped(problem, 8, lambda row, group: order[row, group]))
    assert "differently in each row" not in said and "pieces of 8 columns are in other places" in said


def test_an_order_that_is_not_seen_twice_is_not_named():
    problem = Problem((128, 128, 192), 0)
    D = _regrouped(problem, 8, lambda row, group: SHUFFLED[row % 8, group])
    D[8:] = problem.R[8:]
    said = problem.said(D)
    assert "differently in each row" not in said and "pieces of 8 columns are in other places" in said


def _turned(X, source):
    """Every 128x64 tile of X, with its elements exchanged."""
    tiles = X.reshape(len(X) // TILE, TILE, -1, K_TILE).swapaxes(1, 2)
    turned = tiles.reshape(*tiles.shape[:2], -1)[..., source].reshape(tiles.shape)
    return turned.swapaxes(1, 2).reshape(X.shape).astype(np.float32)


@pytest.mark.parametrize(("written", "read"), [(w, r) for w, r, _ in exchanges(TILE, K_TILE)])
def test_a_swizzle_of_one_operand_is_named(written, read):
    problem = Problem((256, 128, 192), seed=len(written))
    (source,) = (s for w, r, s in exchanges(TILE, K_TILE) if (w, r) == (written, read))
    said = problem.said(_turned(problem.A, source) @ problem.B.T)
    assert f"has A written as {written} and read as {read}" in said
    said = problem.said(problem.A @ _turned(problem.B, source).T)
    assert f"has B written as {written} and read as {read}" in said


def test_the_last_two_layouts_exchange_the_same_elements_either_way_round():
    assert len({(w, r) for w, r, _ in exchanges(TILE, K_TILE)}) == len(NAMES) * (len(NAMES) - 1) - 1 + 2
    ((*_, source),) = (found for found in exchanges(TILE, K_TILE) if found[:2] == (NAMES[3], NAMES[4]))
    assert (source[source] == np.arange(len(source))).all()


@pytest.mark.parametrize("layout", range(len(NAMES)))
def test_a_layout_gives_each_element_a_place(layout):
    assert sorted(places(layout, TILE, K_TILE).reshape(-1)) == list(range(TILE * K_TILE))


@pytest.mark.parametrize("mode", range(4))
def test_layouts_are_those_of_tma_shared_layout(mode):
    from tirxlab.dialect.memory import SwizzleMode, tma_shared_layout

    layout = tma_shared_layout("float16", list(SwizzleMode)[mode], (TILE, K_TILE))
    expected = places(mode, TILE, K_TILE)
    for row, column in ((0, 0), (1, 8), (5, 63), (17, 40), (127, 9), (90, 33)):
        assert int(layout.apply(row * K_TILE + column)["m"]) == expected[row, column]


@pytest.mark.parametrize("seed", range(20))
def test_random_sets_of_k_tiles_are_named(seed):
    """Any sum of K tiles, each 0 to 3 times, is recognised."""
    problem = Problem((128, 128, 384), seed)
    times = problem.rng.integers(0, 4, problem.count)
    times[seed % problem.count] = 0  # never all equal, unless nothing is left
    said = problem.said(sum(int(n) * problem.k_tile(k) for k, n in enumerate(times)))
    if not times.any():
        assert "is 0" in said
    elif (times > 0).sum() > 1:
        missing = ", ".join(str(k) for k in range(problem.count) if not times[k])
        assert f"{missing}" in said.split(" and has")[0]
        for k in np.flatnonzero(times > 1):
            assert str(k) in said.split("has K tile")[1]


@pytest.mark.parametrize("seed", range(5))
def test_only_the_wrong_part_is_looked_at(seed):
    """A mistake in some rows of one tile is named as if the rest did not exist."""
    problem = Problem((256, 256, 192), seed)
    D = problem.R.copy()
    D[32:64, 128:] = problem.k_tile(2)[32:64, 128:]
    said = problem.said(D)
    assert "tile (0, 1) is the product of K tile 2 alone, of 3" in said


def test_different_tiles_may_have_different_causes():
    problem = Problem((256, 128, 192), 0)
    D = problem.R.copy()
    D[:128] = 0
    D[128:] -= problem.k_tile(0)[128:]
    said = problem.said(D)
    assert "is 0 (in 1 of the 2" in said and "lacks K tile 0, of 3 (in 1 of the 2" in said


def test_what_was_never_written_is_not_explained():
    """Canary values already show that nobody wrote; no pattern is sought in them."""
    problem = Problem((128, 128, 192), 0)
    D = utils.canaries((128, 128), "float16")
    with pytest.raises(AssertionError) as failure:
        utils.verify(D, problem.A, problem.B)
    assert "pattern" not in str(failure.value) and "was never written" in str(failure.value)


def test_nothing_wrong_says_nothing():
    problem = Problem((128, 128, 192), 0)
    R = problem.R.astype(np.float16)
    assert reasons(R, R, problem.A, problem.B, np.zeros(R.shape, bool)) == []
