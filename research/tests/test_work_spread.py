"""The work of a grid, estimated from some of its clusters, against the work that the kernel has to do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxsim.timing import spread as spreading
from ptxsim.timing.chip import chip
from ptxsim.timing.predict import predict, sample
from ptxsim.timing.spread import Spread, spread
from tirxlab.builders import builder
from tirxlab.cli import tracks
from tirxlab.cli.common import REFERENCE
from tirxlab.forecast import launch_of
from tirxlab.toolchain.build import build

TILES = [1, 2, 65, 148, 149, 300]


def counted(work: list[int]) -> float:
    """The estimated work of all clusters, relative to the true sum."""
    found = spreading._counted(work.__getitem__, len(work))
    return spreading._total(found) / sum(work)


@given(st.integers(2, 400), st.integers(1, 9), st.data())
@settings(max_examples=200)
def test_tiles_that_go_round_the_clusters_are_counted_to_a_percent(clusters, tiles, data):
    border = data.draw(st.integers(1, clusters))
    work = [1000 * (tiles + (index < border)) for index in range(clusters)]
    assert counted(work) == pytest.approx(1.0, abs=0.011)


@given(st.integers(2, 400), st.integers(1, 50), st.booleans())
def test_a_triangle_of_tiles_is_counted(clusters, start, falling):
    work = [100 * (start + index) for index in range(clusters)]
    assert counted(work[::-1] if falling else work) == pytest.approx(1.0, abs=0.011)


def test_an_even_grid_costs_three_clusters():
    run = []
    assert len(spreading._counted(lambda index: run.append(index) or 500, 1000)) == len(run) == 3


@pytest.mark.parametrize("tiles", TILES)
def test_the_work_of_a_persistent_kernel_is_that_of_its_tiles(tiles):
    size = 128, 64 * tiles if tiles < 3 else 128 * tiles, 128
    launch = launch_of(rung(6, size))
    found = predict(sample(launch, sms=132), chip("h200"))
    whole = [-(-size[0] // 128) * 128, -(-size[1] // 256) * 256, size[2]]  # tiles are 128 x 256
    assert found.work.unit_flops == pytest.approx(2.0 * whole[0] * whole[1] * whole[2], rel=0.02)


def rung(number: int, size):
    (one,) = [r for r in tracks.track_of("hopper").rungs if r.number == number]
    return tracks.build(one, REFERENCE.parent / "hopper_kernels.py", size, dtype="bfloat16").artifact


def test_clusters_that_get_no_tile_do_nothing():
    """Step 10 starts as many clusters as the chip holds, here for two tiles."""
    launch = launch_of(build(builder(REFERENCE, 10)(512, 512, 256)))
    found = sample(launch, sms=148)
    assert found.mean * found.clusters == pytest.approx(2.0, abs=0.1)
    assert predict(found, chip("b200")).work.unit_flops == pytest.approx(2.0 * 512 * 512 * 256, rel=0.05)


def test_a_step_that_gives_each_cluster_one_tile_is_even():
    assert spread(launch_of(build(builder(REFERENCE, 4)(256, 256, 128)))) == Spread(0, 1.0)
