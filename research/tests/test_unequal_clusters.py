"""Grids with clusters of different length: as one ends, the next in grid order starts."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ptxsim.timing import spread as spreading
from ptxsim.timing.chip import chip
from ptxsim.timing.predict import predict, sample
from ptxsim.timing.scheduling import makespan, stretch
from research.time import right
from tirxlab.forecast import launch_of

SMALL = right.small(4)
LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=120)


@given(LENGTHS, st.integers(1, 20), st.integers(1, 4))
def test_clusters_that_do_not_hinder_each_other_go_to_whoever_is_free(lengths, groups, slots):
    """Compared with a simple list of the slots and the times at which they become free."""
    free = [0] * (groups * slots)
    for length in lengths:
        place = free.index(min(free))
        free[place] += length
    assert makespan(lengths, groups, slots, [1.0] * (slots + 1)) == pytest.approx(max(free))


@given(LENGTHS, st.integers(1, 20), st.integers(1, 4))
@example([2, 23, 23, 24, 24, 24], 2, 2)  # takes longer than six of 24: the last one meets another SM
def test_no_grid_is_faster_than_its_work_or_slower_than_that_and_one_turn(lengths, groups, slots):
    """All SMs work until the last cluster starts."""
    paces = [float(max(1, n)) for n in range(slots + 1)]  # the clusters of an SM share one pipe
    found, longest = makespan(lengths, groups, slots, paces), max(lengths)
    least, most = max(sum(lengths) / groups, longest), sum(lengths) / groups + slots * longest
    assert least - 1e-9 <= found <= most + 1e-9
    shares, equal = [length / longest for length in lengths], max(len(lengths) / groups, 1)
    assert stretch(shares, groups, slots, lambda n: paces[n]) <= most / longest / equal + 1e-9


@given(st.integers(1, 500), st.integers(1, 150), st.integers(1, 8))
def test_equal_clusters_take_as_many_turns_as_an_sm_gets_clusters(count, groups, slots):
    each = math.ceil(count / groups)
    paces = [float(n) for n in range(slots + 1)]
    assert makespan([1.0] * count, groups, slots, paces) == pytest.approx(each)
    assert stretch((), groups, slots, lambda n: pytest.fail("nothing has to be played")) == 1.0


def test_a_triangle_that_starts_with_its_longest_rows_ends_earlier():
    rising = [share / 25 for share in range(1, 26) for _ in range(12)]
    late, early = (3 * stretch(order, 132, 1, lambda n: 1.0) for order in (rising, rising[::-1]))
    assert sum(rising) / 132 <= early < 1.1 * sum(rising) / 132
    assert 1.3 * early < late < 2.0


def test_causal_attention_of_many_heads_shares_sms_among_long_and_short_clusters():
    """All 600 are on the chip from the start, four or five per SM."""
    shares = [row / 30 for row in range(1, 31)] * 20
    assert stretch(shares, 132, 5, float) == pytest.approx(sum(shares) / 600, rel=0.3)  # one pipe for all
    assert stretch(shares, 132, 5, lambda n: 1.0) == 1.0  # no cluster slows another: the longest decides


@pytest.mark.parametrize("name", [name for name in SMALL if name.startswith(("triangular", "causal"))])
def test_a_recorded_grid_of_unequal_clusters_takes_less_than_the_longest_in_every_turn(name):
    saved = SMALL[name]
    taken = sample(launch_of(saved.artifact), sms=132)
    few = replace(chip("h200"), sms=taken.clusters - 1)  # one SM gets two
    assert len(taken.shares) == taken.clusters and max(taken.shares) == 1.0
    assert taken.mean == pytest.approx(sum(taken.shares) / taken.clusters)
    assert predict(taken, few).cycles < predict(replace(taken, shares=()), few).cycles


@given(st.integers(2, 60), st.integers(2, 12), st.integers(1, 20), st.booleans())
@settings(max_examples=200)
def test_work_that_repeats_itself_is_known_for_every_cluster(rows, heads, start, falling):
    """Causal attention: the row blocks of one head after those of another."""
    one = [100 * (start + row) for row in range(rows)]
    work = (one[::-1] if falling else one) * heads
    found = spreading._spread(work.__getitem__, len(work), (len(work), 1, 1))
    assert found.shares == pytest.approx([w / max(work) for w in work], abs=0.02)
    assert work[found.largest] == max(work)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12).map(sorted), st.integers(2, 6))
def test_work_that_differs_along_an_axis_of_the_grid_only_is_known(row, heads):
    work = [1000 * w for w in row] * heads
    found = spreading._spread(work.__getitem__, len(work), (len(row), heads, 1))
    assert found.mean == pytest.approx(sum(work) / len(work) / max(work), rel=0.011)
    assert found.shares[: len(row)] == found.shares[-len(row) :]
