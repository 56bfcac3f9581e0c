"""The constants: each one of each chip has a value, a unit and a source; the laws derived from them."""

from dataclasses import MISSING, fields, replace

import pytest

from ptxsim.timing.accesses import parted_rows
from ptxsim.timing.chip import CHIPS, Chip, chip, table
from ptxsim.timing.locality import Locality, held, locality, survives
from ptxsim.timing.occupancy import resident
from ptxsim.timing.power import PowerUse, settled_clock, watts

NAMES = [f.name for f in fields(Chip) if f.default is MISSING][2:]
H200 = chip("h200")


@pytest.mark.parametrize("name", CHIPS)
def test_a_table_has_every_constant_with_its_unit_and_source(name):
    found = table(name)
    assert {*found} - {"chip", "arch", "harness"} == {*NAMES}
    for constant in NAMES:
        assert {"value", "unit", "source"} <= {*found[constant]}, constant
        assert found[constant]["source"], constant
        value = found[constant]["value"]
        numbers = [n for _, *costs in value for n in costs] if isinstance(value, list) else [value]
        assert min(numbers) >= 0, constant


def test_a_way_to_time_launches_has_constants_of_its_own():
    for name, constants in table("b200")["harness"].items():
        assert all({"value", "unit", "source"} <= {*found} for found in constants.values())
        timed, usual = chip("b200", name), chip("b200")
        differ = {f.name for f in fields(Chip) if getattr(timed, f.name) != getattr(usual, f.name)}
        assert differ == {*constants}


def test_what_a_harness_writes_between_launches_is_all_that_l2_holds():
    b200 = chip("b200")
    cold = locality(replace(b200, flushed=2.0**28), 148, {0: 4096}, {0: 4096 * 148}, {0: 1.0}, 148, 148)
    warm = locality(b200, 148, {0: 4096}, {0: 4096 * 148}, {0: 1.0}, 148, 148)
    assert (cold.miss[0], warm.miss[0]) == (1.0, 0.0)


def test_few_constants_of_the_b200_are_fitted():
    fitted = [n for n in NAMES if "fitted" in table("b200")[n]]
    assert 1 <= len(fitted) <= 6


@pytest.mark.parametrize(("write", "kilobytes", "cycles"), [(False, 32, 179), (True, 32, 64), (True, 64, 96)])
def test_tensor_memory_takes_four_warps_as_long_as_the_sources_say(write, kilobytes, cycles):
    port, late = chip("b200").tmem_costs(write)
    assert kilobytes * 1024 / 4 / port + late == pytest.approx(cycles, abs=1)


WORK = PowerUse(2e12, 0.0, 1e9, 1e8, 0.0, 0.0)


def test_the_clock_falls_until_the_power_is_that_of_the_cap():
    quick = 2e12 / 900e12
    ghz = settled_clock(WORK, quick, 1.755, H200)
    assert ghz < 1.755
    cores, memory = watts(WORK, quick * 1.755 / ghz, ghz, H200)
    assert H200.idle_power + cores + memory == pytest.approx(H200.power_cap, rel=0.01)


def test_a_harness_that_writes_memory_between_launches_leaves_them_more_power():
    """Averaged over both, the power equals the cap."""
    quick = 2e12 / 900e12
    flushing = replace(H200, flushed=2e9)
    ghz = settled_clock(WORK, quick, 1.755, flushing)
    assert settled_clock(WORK, quick, 1.755, H200) < ghz < 1.755
    seconds, pause = quick * 1.755 / ghz, flushing.flushed / H200.hbm_write_rate
    joules = sum(watts(WORK, seconds, ghz, H200)) * seconds + flushing.flushed * H200.hbm_energy
    mean = H200.idle_power + joules / (seconds + pause)
    assert mean == pytest.approx(H200.power_cap, rel=0.01)


def test_light_work_keeps_its_clock():
    assert settled_clock(WORK, 1.0, 1.755, H200) == 1.755


def test_what_fits_into_l2_is_kept_and_what_does_not_in_part():
    assert held(H200, H200.l2_bytes / 2) == 1.0
    assert held(H200, 4 * H200.l2_bytes) == 0.25


def test_what_is_copied_from_the_shared_memory_of_another_cta_misses_no_cache():
    reads, size = {-1: 1 << 16, 1: 1 << 16}, {1: 1 << 24}
    found = locality(H200, 132, reads, size, {1: 1.0}, 132, 132)
    assert found.miss == locality(H200, 132, {1: 1 << 16}, size, {1: 1.0}, 132, 132).miss


def test_arrays_that_stay_from_launch_to_launch_hit_and_rotated_ones_miss():
    size = int(H200.l2_bytes // 8)
    same, other = replace(H200, rotated=0), replace(H200, rotated=1 << 27)
    arguments = 132, {1: size // 132}, {1: size, 2: size}, {1: 1.0}, 132, 132
    assert locality(same, *arguments).miss[1] == 0.0
    assert locality(other, *arguments).miss[1] > 0.3


def test_a_panel_that_each_wave_reads_again_misses_in_the_first_alone():
    size = int(H200.l2_bytes // 2)
    found = locality(H200, 132, {1: size}, {1: size, 2: 8 * size}, {1: 132.0}, 132 * 10, 132)
    assert found.miss[1] == pytest.approx(0.1, abs=0.02)


def test_a_last_wave_that_is_not_full_reads_less_again():
    """1.1 waves of clusters that share nothing: each reads its part of the array for the first time."""
    size, each = int(H200.l2_bytes), int(H200.l2_bytes / 145.2)
    found = locality(H200, 132, {1: each}, {1: size, 2: 8 * size}, {1: 1.0}, 145, 132)
    assert found.miss[1] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("share, left", [(0.5, 1.0), (0.96, 0.37), (1.6, 0.0), (10, 0.0)])
def test_a_stream_finds_itself_in_a_cache_if_it_fits_and_not_at_all_if_it_is_much_larger(share, left):
    """memory.cu: all of 32 MiB, a quarter of 48, nothing of 79, with an L2 of 50 MiB."""
    assert survives(share * H200.l2_whole, H200.l2_whole) == pytest.approx(left, abs=0.02)


def test_what_a_cta_reads_again_is_in_l1_in_l2_or_gone_by_what_all_have_read_since():
    near = Locality(H200, 132, slots=8, l1_bytes=H200.l1_whole)
    assert (near.in_l1(0), near.in_l1(16_384), near.in_l1(65_536)) == (1.0, 1.0, 0.0)
    assert (near.in_l2(16_384), near.in_l2(100_608)) == (
        1.0,
        0.0,
    )  # rows of cross_entropy


def test_parted_sectors_of_a_copy_take_l2_as_long_as_if_nobody_shared_them():
    near = Locality(H200, 132, sharers={1: 12.0})
    assert near.copy_seconds(1, 1024, 0) == pytest.approx(1024 * near.l2_seconds(1))
    assert near.copy_seconds(1, 1024, 1024) == pytest.approx(1024 / H200.l2_rate)


@pytest.mark.parametrize("pitch, bytes_", [(3328, 0), (3360, 0), (3344, 128 * 128)])
def test_half_of_the_rows_of_a_box_are_parted_where_the_pitch_is_an_odd_multiple_of_16(pitch, bytes_):
    assert parted_rows(0, (128, 128), (pitch,)) == bytes_


@pytest.mark.parametrize(
    "threads, shared, registers, columns, ctas",
    [
        (128, 0, 32, 0, 16),  # threads: 2048 / 128
        (128, 100_000, 32, 0, 2),  # shared memory
        (256, 0, 128, 0, 2),  # registers: 65536 / (256 * 128)
        (128, 0, 32, 256, 2),  # columns of tensor memory
        (1024, 227 * 1024, 64, 512, 1),
    ],
)
def test_what_limits_the_ctas_of_an_sm(threads, shared, registers, columns, ctas):
    assert resident(H200, threads, shared, registers, columns) == ctas
