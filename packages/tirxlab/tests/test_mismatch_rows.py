"""K tiles of one product that take other rows of an operand: a load whose rows follow the K tile."""

import numpy as np
import pytest

from tirxlab.explain.mismatch import reasons

K_TILE, TILE = 64, 128


def told(D, expected, A, B) -> list[str]:
    wrong = np.abs(D - expected) > 0.01
    return [line for reason in reasons(D, expected, A, B, wrong) for line in reason.lines()]


def product(size, operand: str, row_of) -> tuple:
    """(D, expected, A, B): the load of K tile k of a tile takes the rows of tile row_of(tile, k)."""
    M, N, K = size
    rng = np.random.default_rng(sum(size))
    A, B = (rng.standard_normal((rows, K)).astype(np.float16).astype(np.float32) for rows in (M, N))
    D = np.zeros((M, N), np.float32)
    for k in range(K // K_TILE):
        columns = slice(k * K_TILE, k * K_TILE + K_TILE)
        a, b = A[:, columns], B[:, columns]
        turned = b if operand == "B" else a
        tiles = [row_of(tile, k) for tile in range(len(turned) // TILE)]
        moved = np.concatenate([turned[tile * TILE : tile * TILE + TILE] for tile in tiles])
        D += a @ moved.T if operand == "B" else moved @ b.T
    return D, A @ B.T, A, B


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("size", [(256, 256, 128), (256, 256, 192)])
@pytest.mark.parametrize("every", [1, 2])
def test_rows_that_follow_the_k_tile_are_named(operand, size, every):
    D, expected, A, B = product(size, operand, lambda tile, k: tile ^ (k // every % 2))
    lines = told(D, expected, A, B)
    if every * K_TILE >= size[2]:  # all K tiles take their own rows
        assert lines == []
        return
    odd = [k for k in range(size[2] // K_TILE) if k // every % 2]
    shown = ", ".join(map(str, odd[:4])) + (", .." if len(odd) > 4 else "")
    said = f"tile (0, 0) has K tile{'s' * (len(odd) > 1)} {shown} (of {size[2] // K_TILE}) multiplied with"
    assert lines[0].startswith(f"{said} rows 128-255 of {operand}")


@pytest.mark.parametrize("operand", ["A", "B"])
def test_a_whole_tile_of_other_rows_is_another_tile(operand):
    D, expected, A, B = product((256, 256, 256), operand, lambda tile, k: tile ^ 1)
    lines = told(D, expected, A, B)
    assert "multiplied with rows" not in " ".join(lines)
