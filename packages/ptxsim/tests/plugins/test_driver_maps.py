"""Tensor maps as a driver makes them: words that cuTensorMapEncodeTiled wrote on an H100 (driver 13.0)."""

import struct

import numpy as np
import pytest

from ptxsim.plugins.driver_maps import made_again, tiled
from ptxsim.plugins.torch_on_cpu import Storages
from ptxsim.units.tensormap import MARK, RECORD

# Words 2 to 14 of the map; then the requested type, extents, strides, box, steps, swizzle, fill.
SEEN = [
    (
        "00006310 00000020 0 0 0 0 000000ff 000000ff 0 0 0 3f000000 0000007f",
        (6, (256, 256), (512,), (64, 128), (1, 1), 3, 0),
    ),
    (
        "00006340 00000020 00000800 00010000 00100000 0 ff 3f 1f f 7 3f0078d1 02010307",
        (6, (256, 64, 32, 16, 8), (512, 1 << 15, 1 << 20, 1 << 24), (64, 8, 4, 2, 3), (2, 3, 4, 5, 8), 3, 0),
    ),
    (
        "00006340 0 0 0 0 00008421 ff 0 0 0 0 3f000000 0",  # its extents were 4, which no storage here holds
        (6, (256, 1, 1, 1, 1), (1 << 36, 1 << 37, 1 << 38, 1 << 39), (64, 1, 1, 1, 1), (1,) * 5, 3, 0),
    ),
    (
        "0000e310 00000020 0 0 0 0 000000ff 000000ff 0 0 0 3f000000 0000007f",
        (6, (256, 256), (512,), (64, 128), (1, 1), 3, 1),
    ),
    (
        "00010390 00000100 0 0 0 0 000000ff 000000ff 0 0 0 0f000000 00000007",
        (11, (256, 256), (4096,), (16, 8), (1, 1), 0, 0),
    ),
    (
        "00000490 00000100 0 0 0 0 000000ff 000000ff 0 0 0 0f000000 00000007",
        (8, (256, 256), (4096,), (16, 8), (1, 1), 0, 0),
    ),
    (
        "00046310 00000020 0 0 0 0 000000ff 000000ff 0 0 0 3f000000 0000007f",
        (6, (256, 256), (512,), (64, 128), (1, 1), 3, 0),
    ),
]


@pytest.fixture
def storage():
    array, memory = np.zeros(1 << 28, np.uint8), Storages()
    memory.add_bytes(array.ctypes.data, array.nbytes, "array")
    return array.ctypes.data + 64 & -64, memory, array  # keeps the array alive


def map_of(address: int, words: str) -> bytes:
    values = [int(word, 16) for word in words.split()]
    return struct.pack("<Q13I", address, *values).ljust(128, b"\xa5")


@pytest.mark.parametrize(("words", "asked"), SEEN)
def test_a_map_says_what_was_asked_for(storage, words, asked):
    address, memory, _ = storage
    kind, dims, strides, box, steps, swizzle, fill = asked
    made = made_again(map_of(address, words), memory)
    assert made == tiled(memory, kind, address, dims, strides, box, steps, 0, swizzle, fill)
    record = np.frombuffer(made[: RECORD.itemsize], RECORD)[0]
    assert (record["mark"], record["global_address"]) == (MARK, address)


@pytest.mark.parametrize("words", ["00000b20", "80006310", "00006350"])
def test_what_is_no_map_stays_as_it_is(storage, words):
    address, memory, _ = storage
    rest = SEEN[0][0].partition(" ")[2]
    for data in (map_of(address, f"{words} {rest}"), map_of(8, SEEN[0][0]), b"x" * 64):
        assert made_again(data, memory) == data


def test_what_the_driver_refuses_is_refused(storage):
    address, memory, _ = storage
    usual = (256, 256), (512,), (64, 128), (1, 1)
    for kind, interleave, swizzle in ((15, 0, 3), (6, 1, 3), (6, 0, 5)):
        with pytest.raises(ValueError):
            tiled(memory, kind, address, *usual, interleave, swizzle, 0)
    with pytest.raises(KeyError):
        tiled(memory, 6, 16, *usual, 0, 3, 0)
