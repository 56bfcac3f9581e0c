"""A store returns what was put into it, and PTX is packed by register."""

import io
import json
import random
import re
import tarfile
import zipfile

import numpy as np
import pytest

from research import registers, store


def lines(seed: int, count: int = 300) -> str:
    """PTX-like text with registers named as compilers do: mostly new or recent, sometimes far away."""
    draw = random.Random(seed)
    made, top = [], {"%r": 0, "%rd": 900, "%p": 1}
    for _ in range(count):
        kind = draw.choice(list(top))
        top[kind] += draw.random() < 0.6
        near = max(0, top[kind] - draw.choice((0, 0, 1, 5, 40)))
        far = draw.randrange(top[kind] + 1) if draw.random() < 0.1 else 400 * draw.randrange(2)
        made.append(f"add.s64 \t{kind}{top[kind]}, {kind}{near}, {draw.randrange(99)}; // %tid.x [%rd+8")
        made.append(f"mov.b64 \t{kind}{near}, {kind}{far};")
    return "\n".join(made)


@pytest.mark.parametrize("seed", range(20))
def test_registers_come_back(seed):
    text, near, far = registers.coded(lines(seed))
    assert not re.search(r"%(r|rd|p)\d", text) and len(set(near)) > registers.RECENT and len(far) > 20
    assert registers.plain(text, near, far) == lines(seed)


def test_numbers_of_kernels_behind_each_other_are_read_one_by_one():
    found = [registers.coded(lines(seed)) for seed in range(3)]
    far = np.array([number for _, _, some in found for number in some], np.int32)
    numbers = registers.Numbers(b"".join(near for _, near, _ in found), far)
    assert [(text, *numbers.of(text)) for text, _, _ in found] == found


def test_the_same_code_with_other_registers_is_the_same_text():
    """Except for the first of each kind, the numbers are the same, too."""
    one, other = (
        registers.coded("".join(f"mov %r{n + start}, %r{n + start - 1};\n" for n in range(9)))
        for start in (40, 4711)
    )
    assert one[0] == other[0] and one[1][1:] == other[1][1:] and (one[2], other[2]) == ([], [4711])


@pytest.mark.parametrize("text", ["mov %r01, 0;", "mov %r1a, 0;", "mov \x01r, 0;"])
def test_text_that_would_not_come_back_is_refused(text):
    with pytest.raises(ValueError, match="cannot be packed"):
        registers.coded(text)


def plain_zip(file: io.BytesIO) -> bytes:
    """The same files as a zip without dates, which is how a store writes zips."""
    with zipfile.ZipFile(file) as archive:
        return store._zipped({name: archive.read(name) for name in archive.namelist()})


def test_a_store_gives_back_what_it_was_given(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("kernel.ptx"), lines(1))
        archive.writestr(zipfile.ZipInfo("other.ptx"), lines(2) + "mov %r01, 0;")
    arrays = io.BytesIO()
    numbers = np.random.default_rng(3).normal(size=301)
    np.savez(
        arrays, *map(numbers.astype, ("f2", "f4", "f8")), numbers.view("u1")[:1003], numbers[:0], numbers[:1]
    )
    ptx = {"a/k.ptx": b"mov %r7, %r6;", "a/as-is.ptx": b"ld.u32 %r1, [%p1a+6];"}
    files = {"a/k.lab": packed.getvalue(), "a/k.npz": plain_zip(arrays), **ptx, "b/x.json": b"{}"}
    files |= {"b/k.ptx": lines(3).encode(), "b/none.ptx": b".version 9.0", "b/z.ptx": lines(4).encode()}
    store.save(tmp_path / "s.tar.xz", files)
    with tarfile.open(tmp_path / "s.tar.xz") as tar:
        assert tar.getnames() == [store.NAMES, store.DATA]
        arrays = json.load(tar.extractfile(store.NAMES))["a/k.npz!/"]
    assert {store.PLANES in name for name in arrays} == {True, False}
    assert store.load(tmp_path / "s.tar.xz") == files
    assert store.load(tmp_path / "s.tar.xz" / "b") == {
        name.removeprefix("b/"): data for name, data in files.items() if name.startswith("b/")
    }
