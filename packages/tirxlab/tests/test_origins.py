"""Chunks of A and B are recognised by their bytes, and the trace of an element is put into words."""

import numpy as np
import pytest

from tirxlab.explain.origins.chunks import Chunks, place
from tirxlab.explain.origins.record import Cell, Followed, Load, Made, Product, Read, Stored, Sum
from tirxlab.explain.origins.words import told

ELEMENT = (3, 129)


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((256, 64)).astype(np.float16) for _ in "AB"]


def test_chunks_are_found_wherever_they_lie(matrices):
    A, B = matrices
    mixed = np.hstack([A[7, 8:16], B[200, 56:64], np.zeros(8)]).astype(np.float32)[None]
    found = [place(code) for code in Chunks(A, B).of(mixed)[0].tolist()]
    assert found == [(0, 7, 1), (1, 200, 7), None]


class Seen:
    """The record of ELEMENT: its thread read it from a cell of a product of these rows."""

    names, odd = ("A", "B", "D"), False

    def __init__(self, matrices, rows=(0, 128), columns=(128, 256), cell=Cell(0, 3, 1), loads=()):
        chunks = Chunks(*matrices)
        a, b = (chunks.of(m[slice(*n)].astype(np.float32)) for m, n in zip(matrices, (rows, columns)))  # noqa: B905
        self.sum = Sum((Product(1, 20, 0, a, b),), 0, 0)
        read = Read(
            30, np.zeros((1, 32)), np.zeros((1, 32)), np.zeros((1, 32)), {c: self.sum for c in range(128)}
        )
        stored = Stored(50, True, 1.5, None, 0, 3, 40, read, cell, self.sum, 1)
        self.followed, self.loads = {ELEMENT: Followed(stored)}, [*loads]

    @property
    def here(self) -> Followed:
        return self.followed[ELEMENT]

    def made(self, cell: Cell, cluster: int = 0) -> None:
        self.here.made.append(Made(1, cluster, 20, cell, (cell.lane, cell.column)))

    def told(self) -> str:
        return "\n".join(told(self, ELEMENT))


def test_the_right_product_in_the_right_place_says_nothing(matrices):
    seen = Seen(matrices)
    seen.made(Cell(0, 3, 1))
    assert seen.told() == ""


def test_a_product_in_another_column_is_named(matrices):
    seen = Seen(matrices, cell=Cell(0, 3, 5))
    seen.made(Cell(0, 3, 1))
    assert "that product is in column 1 of tensor memory (line 20), and nothing reads it" in seen.told()
    assert "line 30 reads column 5 of tensor memory for it" in seen.told()


def test_registers_are_named_where_the_thread_has_read_the_right_one(matrices):
    seen = Seen(matrices, cell=Cell(0, 3, 5))
    seen.made(Cell(0, 3, 1))
    seen.here.stored.offered.append((seen.here.stored.read, Cell(0, 3, 1)))
    assert "what happens to these registers from line 30 to line 40" in seen.told()


@pytest.mark.parametrize(
    ("rows", "loads", "says"),
    [
        ((0, 128), [Load(10, 0, (0, 128), 0)], "row 3 of A is loaded as well (line 10)"),
        (
            (128, 256),
            [Load(10, 0, (128, 256), 0)],
            "no load of this cluster takes row 3 of A, but A[128:256]",
        ),
        ((128, 256), [], "look at the rows of A that are copied into A's buffer in shared memory"),
    ],
)
def test_another_row_is_told_with_its_loads(matrices, rows, loads, says):
    seen = Seen(matrices, (128, 256), loads=loads)
    assert "line 20 multiplies row 131 of A times row 129 of B for it" in seen.told()
    assert says in seen.told()


def test_another_cta_or_cluster_is_told(matrices):
    for made, says in (
        (Cell(1, 3, 1), "in another CTA of its cluster"),
        (Cell(0, 3, 1), "in another cluster"),
    ):
        seen = Seen(matrices, cell=Cell(0, 3, 5))
        seen.made(made, cluster=int(not made.rank))
        assert says in seen.told()


def test_nothing_is_said_of_what_is_not_followed(matrices):
    seen = Seen(matrices, (128, 256))
    seen.odd = True
    assert seen.told() == ""


def test_a_product_of_another_round_is_told(matrices):
    seen = Seen(matrices, (128, 256))
    seen.made(Cell(0, 3, 1))
    seen.here.made[0] = seen.here.made[0]._replace(product=2)
    seen.here.stored.cell = Cell(0, 3, 1)
    assert "in another round of the tiles, where row 131 of A times row 129 of B is" in seen.told()
