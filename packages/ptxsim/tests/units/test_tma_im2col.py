"""TMA in im2col modes against a walk over pixels in numpy (PTX ISA 5.5.4, 5.5.5): loads, stores, sums."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tma_kernels import IN, OUT, coordinates, entry

import ptxsim
from ptxsim import Im2colMap, TensorMap
from ptxsim.units.tensormap import encoded

MEMORY = 0x7200_0000_0000
CHANNELS = 8  # per copy: 16 bytes of float16


@functools.cache
def load_module(rank: int, mode: str, offsets: tuple[int, ...]):
    """Kernel: pixels from the coordinates pco[] on -> dynamic shared memory -> its first pn bytes -> pp."""
    names = [f"%h{i}" for i in range(len(offsets))]
    moves = "".join(f"mov.u16 {n}, {value};" for n, value in zip(names, offsets, strict=True))
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return ptxsim.load(entry(f"""
    .reg .b16 %h<4>; {moves}
    ld.param.u32 %r10, [pbytes]; @!%q bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r10;
    {copy} [%r3], [%m, {coordinates(rank)}], [%r2], {{{", ".join(names)}}};
    WAIT: mbarrier.try_wait.parity.shared.b64 %k, [%r2], 0; @!%k bra WAIT;
    {OUT}"""))  # fmt: skip


@functools.cache
def store_module(rank: int, form: str):
    """Kernel: pn bytes from pp -> dynamic shared memory -> the pixels from the coordinates pco[] on."""
    return ptxsim.load(entry(f"""
    {IN} fence.proxy.async.shared::cta; bar.sync 0; @!%q bra END;
    {form.format(rank=rank)}.im2col_no_offs.bulk_group [%m, {coordinates(rank)}], [%r3];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:"""))  # fmt: skip


def run(module, tmap, start, data: np.ndarray, size: int):
    """size: bytes of the copy; data: what is moved from or to shared memory."""
    args = [tmap, np.array([*start, 0, 0, 0, 0], np.int32)[:5], data, data.nbytes, size]
    return module.launch("k", args=args, block=32, shared_bytes=data.nbytes + 2048)


def pixels_in(data: np.ndarray, count: int, swizzle: int) -> np.ndarray:
    """The pixels of a copy, of 16 bytes each; a swizzle of 32 bytes has that much room for each."""
    place = np.arange(count) * max(2 * CHANNELS, swizzle)
    return data.view(np.float16).reshape(-1, CHANNELS)[(place ^ (place >> 7 & bool(swizzle)) << 4) >> 4]


def pixels_of(array, start, count, lower, upper, steps, offsets) -> list[tuple]:
    """Positions (n, .., w) of a copy's pixels, in order: the ISA's walk, one pixel after the other."""
    spatial = array.shape[1:-1][::-1]  # W, H, D
    at, image, found = list(start[1:-1]), start[-1], []
    for _ in range(count):
        found.append((image, *[a + o for a, o in zip(at, offsets, strict=True)][::-1]))
        axis = 0
        while axis < len(at):
            at[axis] += steps[axis]
            if at[axis] <= spatial[axis] - 1 + upper[axis]:
                break
            at[axis] = lower[axis]
            axis += 1
        image += axis == len(at)
    return found


def value(array, position, channel: int) -> np.ndarray:
    """The channels of a pixel; zeros outside of the tensor."""
    out = np.zeros(CHANNELS, array.dtype)
    if all(0 <= p < size for p, size in zip(position, array.shape[:-1], strict=True)):
        have = array[position][channel : channel + CHANNELS]
        out[: len(have)] = have
    return out


CASES = [  # shape, corners, traversal strides, offsets, first pixel (W, H, D), pixels
    ((2, 9, 16), (-1,), (-1,), (1,), (0,), (3,), 20),
    ((3, 5, 7, 8), (0, 0), (0, 0), (1, 1), (0, 0), (0, 0), 60),
    ((3, 5, 7, 16), (-1, -1), (-1, -1), (1, 1), (2, 0), (3, 2), 64),
    ((3, 5, 7, 16), (-1, -1), (-1, -1), (2, 2), (1, 1), (-1, 1), 33),
    ((2, 14, 9, 16), (0, 0), (-2, -2), (1, 1), (2, 2), (5, 4), 64),
    ((2, 14, 9, 16), (0, 0), (-2, -2), (2, 3), (0, 1), (6, 11), 96),
    ((2, 3, 4, 5, 8), (-1, 0, -1), (0, -1, 0), (1, 2, 1), (1, 1, 0), (2, 1, 0), 100),
    ((1, 400, 8), (0,), (0,), (1,), (0,), (0,), 512),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("swizzle", [0, 32])
def test_loads(case, swizzle):
    shape, lower, upper, steps, offsets, first, count = case
    array = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    rank, start = len(shape), (0, *first, 0)
    tmap = Im2colMap(
        array, (CHANNELS, count), swizzle, lower=lower, upper=upper, element_strides=(1, *steps, 1)
    )
    size = count * CHANNELS * 2
    out = np.zeros(max(size, count * swizzle), np.uint8)
    result = run(load_module(rank, "im2col", offsets), tmap, start, out, size)
    found = pixels_in(out, count, swizzle)
    positions = pixels_of(array, start, count, lower, upper, steps, offsets)
    np.testing.assert_array_equal(found, [value(array, p, 0) for p in positions])
    # the gaps between narrow rows are copied out, too, and nobody has written them
    assert [f.kind for f in result.findings] == ["uninitialized"] * (swizzle > 0), result.findings


def test_a_map_in_global_memory_is_that_of_its_bytes():
    """As from a program that encodes its own maps."""
    array = np.random.default_rng(4).normal(size=(3, 5, 7, 16)).astype(np.float16)
    tmap = Im2colMap(array, (CHANNELS, 20), lower=(-1, -1), upper=(-1, -1))
    module, size, found = load_module(4, "im2col", (1, 2)), 20 * CHANNELS * 2, []
    for given in (tmap, encoded(tmap, MEMORY)):
        out, at = np.zeros(size, np.uint8), np.array([8, 2, 0, 1, 0], np.int32)
        args, memory = [given, at, out, size, size], {MEMORY: array}
        result = module.launch("k", args=args, block=32, shared_bytes=size + 2048, memory=memory)
        assert result.verdict == "clean", result.findings
        found.append(out)
    assert found[0].any() and np.array_equal(*found)


@pytest.mark.parametrize("mode", ["im2col::w", "im2col::w::128"])
@pytest.mark.parametrize("moved", [0, 1])
def test_rows_of_all_images(mode, moved):
    """Only W is walked, then the same row of the next image; the offset moves the box too."""
    array = np.random.default_rng(1).normal(size=(20, 5, 9, 16)).astype(np.float16)
    lower, upper, count = (-1, 0), (0, 0), 128
    tmap = Im2colMap(array, (CHANNELS, 50), 32, lower=lower, upper=upper, element_strides=(1, 2, 1, 1))
    count = 50 if mode == "im2col::w" else 128
    size = count * CHANNELS * 2
    out = np.zeros(count * 32, np.uint8)
    result = run(load_module(4, mode, (0, moved)), tmap, (0, -1, 2, 3), out, size)
    found = pixels_in(out, count, 32)
    want, w, image = [], -1 + moved, 3
    for _ in range(count):
        want.append(value(array, (image, 2, w), 0))
        w += 2
        if w > 8 + moved:
            w, image = -1 + moved, image + 1
    np.testing.assert_array_equal(found, want)
    assert [f.kind for f in result.findings] == ["uninitialized"], result.findings


@pytest.mark.parametrize("form", ["cp.async.bulk.tensor.{rank}d.global.shared::cta",
                                  "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add"])  # fmt: skip
def test_stores(form):
    array = np.random.default_rng(2).integers(-8, 8, (3, 5, 7, 16)).astype(np.float16)
    count, lower, upper, start = 40, (0, 1), (0, -1), (8, 3, 2, 1)
    data = np.random.default_rng(3).integers(-8, 8, (count, CHANNELS)).astype(np.float16)
    want = array.copy()
    for position, row in zip(pixels_of(array, start, count, lower, upper, (1, 1), (0, 0)), data, strict=True):
        if all(0 <= p < size for p, size in zip(position, array.shape[:-1], strict=True)):
            want[position][8:] = want[position][8:] + row if "reduce" in form else row
    tmap = Im2colMap(array, (CHANNELS, count), lower=lower, upper=upper)
    result = run(store_module(4, form), tmap, start, data.view(np.uint8).reshape(-1), data.nbytes)
    np.testing.assert_array_equal(array, want)
    assert result.verdict == "clean", result.findings


def test_a_copy_that_begins_outside_of_the_tensor_may_store_inside():
    """Its first pixel is after the row, the next one in the next image: a copy is checked as a whole."""
    array = np.zeros((4, 3, 16), np.float16)
    tmap = Im2colMap(array, (CHANNELS, 3), lower=(0,), upper=(2,), element_strides=(1, 3, 1))
    data = np.full((3, CHANNELS), 7, np.float16)
    form = "cp.async.bulk.tensor.{rank}d.global.shared::cta"
    result = run(store_module(3, form), tmap, (0, 3, 0), data.view(np.uint8).reshape(-1), data.nbytes)
    assert (array[1, 0, :CHANNELS] == 7).all()
    assert not any("nothing is written" in f.message for f in result.findings), result.findings


@pytest.mark.parametrize("lower, upper, start, words", [
    (0, 0, (0, 1, 0), ""), (0, 0, (-8, 1, 0), "begins before the tensor"),
    (-1, 0, (0, 1, 0), "reaches outside"), (0, 1, (0, 1, 0), "reaches outside"),
])  # fmt: skip
def test_a_store_lies_inside_as_an_h200_wants_it(lower, upper, start, words):
    array = np.zeros((4, 6, 16), np.float16)
    tmap = Im2colMap(array, (CHANNELS, 3), lower=(lower,), upper=(upper,))
    data = np.full((3, CHANNELS), 7, np.float16)
    form = "cp.async.bulk.tensor.{rank}d.global.shared::cta"
    result = run(store_module(3, form), tmap, start, data.view(np.uint8).reshape(-1), data.nbytes)
    said = [f.message for f in result.findings if words and words in f.message]
    assert bool(said) == bool(words) == (result.verdict != "clean"), result.findings


def test_what_is_not_legal_is_said():
    array = np.zeros((2, 5, 9, 16), np.float16)
    tmap = Im2colMap(array, (CHANNELS, 8), 32, lower=(0, 0), upper=(0, 0))
    plain, tiled = Im2colMap(array, (CHANNELS, 8), lower=(0, 0), upper=(0, 0)), TensorMap(array, (8, 1, 1, 1))
    out = np.zeros(256, np.uint8)
    for used, mode, offsets, start, text in [
        (tmap, "im2col", (0, 0), (0, 9, 0, 0), "outside of the bounding box"),
        (tiled, "im2col", (0, 0), (0, 0, 0, 0), "a tiled tensor map in an im2col copy"),
        (plain, "im2col::w", (0, 0), (0, 0, 0, 0), "requires a swizzle"),
        (tmap, "im2col::w", (2, 0), (0, 0, 0, 0), "2 halo pixels is not modelled"),
    ]:
        said = [f.message for f in run(load_module(4, mode, offsets), used, start, out, 128).findings]
        assert any(text in message for message in said), (text, said)


@pytest.mark.parametrize("options, text", [
    ({"lower": (0,)}, "corners"), ({"lower": (-200, 0)}, "8 bits"), ({"box": (8, 1025)}, "1..1024"),
])  # fmt: skip
def test_maps_that_the_driver_refuses(options, text):
    usual = {"box": (8, 4), "lower": (0, 0), "upper": (0, 0)}
    with pytest.raises(ValueError, match=text):
        Im2colMap(np.zeros((2, 5, 9, 16), np.float16), **usual | options)
