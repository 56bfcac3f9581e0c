"""Chains of tiles that each hold the product of the tile that their CTA computes before or after them.

The loads, or the store, use the coordinates of the wrong tile; loads issued too early do so for the first K
tiles only. Tiles are compared at a few elements; `Chain.says` compares all elements of a block.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from tirxlab.explain.blocks import K_TILE, TILE, Block, Found, near

_PROBES = 12  # elements by which tiles are compared
_AGREE = 0.7  # share of them that must agree
_SHOWN = 3  # links that are shown

Tile = tuple[int, int]


@dataclass(frozen=True)
class Chain:
    """Which tile holds the product of which other, in its first `depth` of `count` K tiles."""

    source: dict[Tile, Tile]  # holder -> held
    depth: int
    count: int

    def says(self, block: Block) -> Found:
        """The pattern that the block is a link of the chain."""
        other = self.source.get(block.tile)
        if other is None or not block.agrees(self._product(block, other)):
            return None
        advice = (
            "do the loads and the store of a tile use the coordinates of the same tile? Where is next_tile() "
            "called, and are m_st and n_st read before or after it?"
        )
        return advice, self._text()

    def _product(self, block: Block, other: Tile) -> np.ndarray:
        edge = block.A.shape[1] // self.count * self.depth
        rows, columns = (
            lines + (there - here) * TILE
            for lines, there, here in zip((block.rows, block.columns), other, block.tile, strict=True)
        )
        own = block.A[block.rows, edge:] @ block.B[block.columns, edge:].T
        return own + block.A[rows, :edge] @ block.B[columns, :edge].T

    def _text(self) -> str:
        chain = max(_chains(self.source), key=lambda chain: ((0, 0) in chain, len(chain)))
        links = list(itertools.pairwise(chain))
        when = {chain[0]: "after", chain[-1]: "before"}.get((0, 0), "before or after")
        if when != "after":  # tile (0, 0) is the first that is done
            links.reverse()
        whole = self.depth == self.count
        what = "each tile holds the product of another one"
        if not whole:
            what = f"each tile has {_first(self.depth)} of {self.count} from another one"
        verb = " that of" if whole else " has those of"
        shown = [f"{holder}{verb} {source}" for holder, source in links[:_SHOWN]]
        shown += [".."] if len(self.source) > len(shown) else []
        return f"{what}, in a chain: {', '.join(shown)}: the one that its CTA computes {when} it"


def find_chain(blocks: list[Block], actual: np.ndarray) -> Chain | None:
    """The chain in which tiles of `actual` (M, N) hold each other's products; None if there is none, or if a
    simpler pattern explains it.
    """
    if not blocks or min(actual.shape) < TILE:
        return None
    sums = _sums(blocks[0].A, blocks[0].B)
    grid, tolerance = sums.shape[2:], blocks[0].tolerance
    seen = _at_probes(actual, grid)
    chosen = [block.tile for block in blocks if block.tile[0] < grid[0] and block.tile[1] < grid[1]]
    depths = (_held(sums, slice(None), seen, tile, tolerance)[:, 0] + 1 for tile in chosen)
    depth = next((int(found[0]) for found in depths if len(found)), None)
    if depth is None:
        return None
    source: dict[Tile, Tile] = {}
    for tile in itertools.product(range(grid[0]), range(grid[1])):
        held = _held(sums, slice(depth - 1, depth), seen, tile, tolerance)
        if len(held) == 1:
            row, column = held[0, 1:].tolist()
            source[tile] = row, column
    chain = Chain(source, depth, sums.shape[1])
    return chain if _is_chain(source) and (depth < chain.count or not _one_rule(source)) else None


def _places() -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns, within a tile, of the elements that are compared."""
    rows = np.arange(_PROBES) * 11
    return rows, rows * 5 % TILE


def _sums(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(probes, K tiles, tiles down, across): sums of the products of the first 1, 2, .. K tiles."""
    width = A.shape[1] if A.shape[1] % K_TILE else K_TILE
    a, b = (
        X[: len(X) // TILE * TILE].reshape(-1, TILE, X.shape[1] // width, width)[:, places]
        for X, places in zip((A, B), _places(), strict=True)
    )
    return (a.transpose(1, 2, 0, 3) @ b.transpose(1, 2, 3, 0)).cumsum(1)


def _at_probes(D: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """(probes, tiles down, across): the elements of D that are compared."""
    rows, columns = _places()
    tiles = D[: grid[0] * TILE, : grid[1] * TILE].reshape(grid[0], TILE, grid[1], TILE)
    return tiles[:, rows, :, columns].astype(np.float32)


def _held(sums, depths: slice, seen, tile: Tile, tolerance) -> np.ndarray:
    """(index in `depths`, tile down, across) of each other tile whose first K tiles `tile` holds."""
    early, (r, c) = sums[:, depths], tile
    rest = sums[:, -1:, r, c] - early[:, :, r, c]
    found = near(seen[:, None, r, c, None, None], early + rest[..., None, None], tolerance)
    alike = found.mean(0) >= _AGREE
    alike[:, r, c] = False
    return np.argwhere(alike)


def _is_chain(source: dict[Tile, Tile]) -> bool:
    """Whether no tile is held by two others, and none leads back to itself."""
    if len(set(source.values())) < len(source):
        return False
    return sum(len(chain) - 1 for chain in _chains(source)) == len(source)


def _chains(source: dict[Tile, Tile]) -> list[list[Tile]]:
    """The tiles of each chain, in which each holds the next; for sources where no tile is held by two."""
    chains = [[tile] for tile in sorted(source.keys() - set(source.values()))]
    for chain in chains:
        while chain[-1] in source:
            chain.append(source[chain[-1]])
    return chains


def _one_rule(source: dict[Tile, Tile]) -> bool:
    """Whether rows of tiles follow from rows and columns from columns (a shift), or each from the other."""

    def follows(there: int, here: int) -> bool:
        return len({(t[here], s[there]) for t, s in source.items()}) == len({t[here] for t in source})

    return (follows(0, 0) and follows(1, 1)) or (follows(0, 1) and follows(1, 0))


def _first(depth: int) -> str:
    return f"its first {depth} K tiles" if depth > 1 else "its first K tile"
