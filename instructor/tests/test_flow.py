"""How the work of the tensor core is measured: the weight of products, their time, the size of a tile."""

from types import SimpleNamespace

import numpy as np
import pytest

from instructor.autograder.behaviour import Evidence, balanced, persistent
from instructor.autograder.flow import NOBODY, Flow, Held, not_of_zeros, weigh, weights
from instructor.autograder.purpose import EXACT
from ptxsim.events.records import Rectangle
from ptxsim.tracing import Costs

WEIGHTS = weights(3)
ONES = np.ones((128, 16), np.float32)


def test_an_mma_takes_time_for_multiply_adds_that_are_not_of_zeros():
    assert not_of_zeros(ONES, ONES) == [1.0]
    above = np.where(np.arange(128)[:, None] < 64, ONES, 0)
    assert not_of_zeros(above, ONES) == [0.5]
    one, other = (np.where(np.arange(16) == k, ONES, 0) for k in (0, 1))
    one[0, 2] = other[0, 2] = 1.0  # no row of either is without a number, and one product is made
    assert not_of_zeros(one, other) == pytest.approx([1 / (128 * 128 * 16)])


def test_one_product_more_shows_in_the_largest_sum():
    """In four tiles of step 10 at the longest K, which weigh the same in whatever parts they are computed."""
    rng = np.random.default_rng(5)
    A, B = (rng.standard_normal((rows, 2176), np.float32).astype(np.float16) for rows in (2048, 256))
    (whole,) = weigh(A, B, WEIGHTS)
    parts = sum(
        sum(weigh(A[m : m + 128, k : k + 64], B[:, k : k + 64], WEIGHTS, parts=4))
        for m in range(0, len(A), 128)
        for k in range(0, A.shape[1], 64)
    )
    one = np.zeros((1, 16), np.float16)
    one[0, 3] = 1.5
    assert abs(parts / whole - 1) < EXACT / 100
    assert abs((parts + weigh(one, one, WEIGHTS)[0]) / whole - 1) > 10 * EXACT


def test_mmas_that_run_as_one_are_looked_at_one_by_one():
    left = np.where(np.arange(16) < 8, ONES, 0)
    assert not_of_zeros(left, ONES, parts=2) == [1.0, 0.0]
    both, halves = weigh(left, ONES, WEIGHTS), weigh(left, ONES, WEIGHTS, parts=2)
    assert halves == [both[0], 0.0]


@pytest.mark.parametrize("value", [2.0**-70, -(2.0**-26), 1e9])
def test_a_number_that_no_float16_is_weighs_something(value):
    assert weigh(np.full((4, 16), value, np.float32), ONES, WEIGHTS)[0] > 0
    assert weigh(np.zeros((4, 16), np.float32), ONES, WEIGHTS) == [0]


def test_a_sparse_operand_is_none_that_d_is_made_of():
    assert weigh(ONES[:, :8], ONES, WEIGHTS) == [np.inf]
    assert not_of_zeros(ONES[:, :8], ONES) == [1.0]


def test_no_sum_lies_where_something_is_copied_to():
    """Tensor memory may be cleared by a copy, and MMAs that add to zeros then begin a new tile."""
    seen = Flow.__new__(Flow)
    seen.owners = np.zeros((1, 128, 512), int)
    copy = SimpleNamespace(footprint=SimpleNamespace(cells_written=[Rectangle(0, 32, 64, 8, 4)]))
    seen._overwritten([copy])
    assert (seen.owners == NOBODY).sum() == 64 * 4 and (seen.owners[0, 32:96, 8:12] == NOBODY).all()


def held(*sums: Held, busiest: int = 5, rows: int = 30) -> Evidence:
    """Evidence of step 7 on 148 SMs: `rows` times 20 tiles of 128x128, of which one cluster has `busiest`."""
    seen = SimpleNamespace(held=list(sums), costs=Costs(), read_out=[], events=[], sums=[])
    size = (128 * rows, 128 * 20, 1024)
    counts = {"tensor_operations": 20 * rows, "busiest": busiest}
    return Evidence(seen, counts, (148, 1, 1), (1, 1, 1), size)


TILE, MACS = 128 * 128, 128 * 128 * 1024


def test_a_tile_is_as_large_as_what_is_held_at_once():
    one_by_one = held(Held(0, 9, TILE, MACS), Held(10, 19, TILE, MACS), busiest=5)
    assert one_by_one.tile == TILE
    assert held(Held(0, 9, TILE, MACS), Held(5, 19, TILE, MACS), busiest=5).tile == 2 * TILE
    assert held(Held(0, 9, TILE, 0.96 * MACS), busiest=5).tile == TILE  # some numbers of A and B are 0


@pytest.mark.parametrize("beside", [0.0, 0.01])
def test_sums_of_next_to_nothing_make_no_tile_larger(beside):
    more = [Held(0, 9, TILE, beside * MACS)] * 3
    assert balanced(held(Held(0, 9, TILE, MACS), *more, busiest=5)) == ""
    assert "a few CTAs" in balanced(held(Held(0, 9, TILE, MACS), *more, busiest=8))


def test_a_tile_at_the_edge_is_as_large_as_the_others():
    edge = held(Held(0, 9, 2 * TILE, MACS))
    edge.stats["held"] = 2 * TILE  # of another cluster
    assert edge.tile == 2 * TILE


@pytest.mark.parametrize("busiest", [2, 4])
def test_tiles_that_stand_out_over_the_edge_are_dealt_out_like_others(busiest):
    """384x1152 in tiles of 256x128: 18, not 13.5, on 16 SMs."""
    seen = held(Held(0, 9, 2 * TILE, 2 * MACS))
    seen.stats, seen.size, seen.sms = {"tensor_operations": 18, "busiest": busiest}, (384, 1152, 1024), 16
    assert bool(balanced(seen)) == (busiest > 3)


def test_no_second_tile_is_asked_for_where_there_is_none():
    """Tiles may be so large that there are too few for that many SMs."""
    few, many = held(Held(0, 9, 2 * TILE, 2 * MACS), rows=10), held(Held(0, 9, TILE, MACS), rows=10)
    assert persistent(few) == "" and "one tile only" in persistent(many)
    many.alone = True  # 1.4 tiles for each: one chosen by chance may have a single one
    assert persistent(many) == ""
