"""Saved kernels, arrays and results of a study in one file: a tar, compressed as a whole by xz, or by bzip2
if its name says so, which suits prose better.

The tar has two members: `names.json`, the names with their sizes, folder by folder, and `data`, the files one
after the other, those of one kind together. Kernels resemble one another, so compressing them together takes
a third of the space of compressing each; a header for each file would take as much as a small kernel.
Artifacts (`*.lab`) and arrays (`*.npz`) are zips: their parts are stored separately, and joined on reading.
PTX is stored without its register numbers, which registers.py stores separately, for all kernels together; it
is stored as it is if that would lose something. An array may be stored with the first bytes of all numbers
together, then the second ones: exponents are similar. A path may lead into a store:
`kernels.tar.xz/ladders-3` means the files below that prefix.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from research.registers import Numbers, coded, plain

SUFFIX = ".tar.xz", ".tar.bz2"
NESTED = (".lab", ".npz")  # zips whose parts are stored separately
PTX, AS_IS = ".ptx", "!as-is"  # the second: suffix of the name of PTX that registers.py cannot code
NAMES, DATA = "names.json", "data"  # the members of the tar
NEAR, DISTANT = "!registers", "!distant.npy"  # register numbers of all PTX, in file order, before the PTX
ARRAY, PLANES, HEAD = ".npy", "!planes-", 128  # of an array: suffix, mark of planes, header bytes
_TEXT = {"lc": 4, "pb": 0}  # filter options that suit text rather than four-byte words
_SETTINGS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 26, **_TEXT}]
_PART = "!/"  # separates the name of a nested zip from that of its part


def load(path: Path) -> dict[str, bytes]:
    """The files of a store, or of a folder in one, by name."""
    file, inside = _split(path)
    found: dict[str, bytes] = {}
    parts: dict[str, dict[str, bytes]] = {}
    for whole, data in _unpacked(file, inside):
        name, _, part = whole[len(inside) :].partition(_PART)
        if part:
            parts.setdefault(name, {})[part] = data
        else:
            found[name] = data
    return found | {name: _zipped(files) for name, files in parts.items()}


def _unpacked(file: Path, inside: str) -> Iterator[tuple[str, bytes]]:
    """(name, data) of the files of a store whose names start with `inside`,
    including parts of nested zips.
    """
    near, numbers = b"", Numbers()
    for stored, data in _members(file):
        name, planes, width = stored.partition(PLANES)
        ours = name.startswith(inside)
        if planes and (ours or name == DISTANT):
            data = _array(data, int(width), _transposed_back)
        if name == NEAR:
            near = data
        elif name == DISTANT:
            numbers = Numbers(near, np.load(io.BytesIO(data)))
        elif name.endswith(PTX):
            text = data.decode()
            codes = numbers.of(text)
            if ours:
                yield name, plain(text, *codes).encode()
        elif ours:
            yield name.removesuffix(AS_IS), data


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """(name, data) of everything in a store, as it is stored."""
    with tarfile.open(file) as tar:
        folders = json.load(tar.extractfile(NAMES))
        sizes = {folder + name: size for folder, sized in folders.items() for name, size in sized.items()}
        data = tar.extractfile(DATA)
        for name in _in_order(sizes):
            yield name, data.read(sizes[name])


def save(path: Path, files: dict[str, bytes]) -> None:
    """Writes a store; the same files give the same bytes."""
    flat: dict[str, bytes] = {}
    for name, data in files.items():
        if name.endswith(NESTED):
            with zipfile.ZipFile(io.BytesIO(data)) as nested:
                flat |= {f"{name}{_PART}{part}": nested.read(part) for part in nested.namelist()}
        else:
            flat[name] = data
    packed = lzma.LZMACompressor(filters=_SETTINGS)
    plain = io.BytesIO()
    stored = _packed(flat)
    folders: dict[str, dict[str, int]] = {}
    for name in sorted(stored):
        end = name.rfind("/") + 1
        folders.setdefault(name[:end], {})[name[end:]] = len(stored[name])
    names, data = json.dumps(folders).encode(), b"".join(stored[name] for name in _in_order(stored))
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for member, content in ((NAMES, names), (DATA, data)):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    data, prose = plain.getvalue(), path.suffix == ".bz2"
    path.write_bytes(bz2.compress(data) if prose else packed.compress(data) + packed.flush())


def _in_order(names: Iterable[str]) -> list[str]:
    """The names in the order of the data: register numbers are needed before the PTX."""
    return sorted(names, key=lambda name: (not name.startswith((NEAR, DISTANT)), name != NEAR, *_alike(name)))


def _packed(flat: dict[str, bytes]) -> dict[str, bytes]:
    """The files as they are stored in the tar."""
    near, far = bytearray(), []
    found: dict[str, bytes] = {}
    for name in sorted(flat, key=_alike):
        data = flat[name]
        if name.endswith(ARRAY):
            name, data = _in_planes(name, data)
        elif name.endswith(PTX):
            try:
                text, codes, distances = coded(data.decode())
            except ValueError:
                name += AS_IS
            else:
                data = text.encode()
                near += codes
                far += distances
        found[name] = data
    return _numbers(bytes(near), far) | found if near else found


def _numbers(near: bytes, far: list[int]) -> dict[str, bytes]:
    distant = io.BytesIO()
    np.save(distant, np.array(far, np.int32))
    return {NEAR: near} | dict([_in_planes(DISTANT, distant.getvalue())])


def _in_planes(name: str, data: bytes) -> tuple[str, bytes]:
    """(name, data) of an array in the layout that compresses best."""
    sizes = {width: len(lzma.compress(_array(data, width), preset=1)) for width in (1, 2, 4, 8)}
    width = min(sizes, key=lambda one: (sizes[one], one))
    return (name, data) if width == 1 else (f"{name}{PLANES}{width}", _array(data, width))


def _transposed(numbers: np.ndarray) -> np.ndarray:
    return numbers.T


def _transposed_back(numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(numbers.shape[::-1]).T


def _array(data: bytes, width: int, turn: Callable = _transposed) -> bytes:
    """A NumPy file with numbers of `width` bytes, rearranged into planes, or back."""
    head = len(data) % width if len(data) < HEAD else HEAD
    whole = head + (len(data) - head) // width * width
    numbers = np.frombuffer(data[head:whole], np.uint8).reshape(-1, width)
    return data[:head] + turn(numbers).tobytes() + data[whole:]


def _alike(name: str) -> tuple[str, str, str]:
    """A sort key that puts files of one kind together, and kernels of one name,
    whichever set they belong to.
    """
    path = PurePosixPath(name.partition(PLANES)[0])
    kernel = path.parent.name if path.parent.name.endswith("!") else path.name
    return path.suffix or path.name, kernel, name


def wrong_name(path: Path) -> str:
    """Why no store can have this name, in one line; "" if one can."""
    fits = path.name.endswith(SUFFIX)
    return "" if fits else f"{path}: the name of a store ends in {' or '.join(SUFFIX)}"


def _split(path: Path) -> tuple[Path, str]:
    """(the file, the prefix of names in it)."""
    for file in (path, *path.parents):
        if file.name.endswith(SUFFIX):
            inside = path.relative_to(file).as_posix()
            return file, "" if inside == "." else inside + "/"
    raise ValueError(wrong_name(path))


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()
