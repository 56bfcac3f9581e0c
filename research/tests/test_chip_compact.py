"""Arrays that are drawn from a seed, and arrays that are kept as checksums."""

import numpy as np
import pytest

from research.chip.compact import BLOCK, KINDS, blocks_that_differ, checksums, drawn


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_name_and_a_number_give_the_same_bytes_always(kind, dtype):
    one = drawn("kernel-1", 0, dtype, 512, kind)
    assert one.shape == (512,) and one.dtype == np.uint8
    assert (one == drawn("kernel-1", 0, dtype, 512, kind)).all()
    assert (one != drawn("kernel-1", 1, dtype, 512, kind)).any()


def test_the_numbers_are_those_that_the_chip_was_given():
    numbers = drawn("kernel-1", 0, "float32", 16, "bell").view(np.float32)
    assert numbers.tolist() == [
        0.42006155848503113,
        -1.1697726249694824,
        1.0810660123825073,
        1.2018613815307617,
    ]


def test_equal_arrays_have_equal_checksums():
    data = np.arange(800, dtype=np.float32)
    assert checksums(data).shape == (4,)  # of 3,200 bytes
    assert blocks_that_differ(checksums(data), data.copy()) == ""


def test_one_bit_is_seen_in_its_block():
    chip = np.arange(800, dtype=np.int32)
    ours = chip.copy()
    ours[BLOCK // 4 + 1] ^= 1
    text = blocks_that_differ(checksums(chip), ours)
    assert text.startswith(
        "1 of 4 blocks of 1024 bytes differ in int32, the first at 256, which ptxsim leaves as [256 256"
    )
