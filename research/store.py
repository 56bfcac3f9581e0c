"""Saved kernels, arrays and results of a study in one file: a tar of plain files, compressed as a whole by
xz, or by bzip2 if its name says so, which suits prose better.

Kernels resemble one another, so compressing them together takes a third of the space of compressing each.
Artifacts (`*.lab`) and arrays (`*.npz`) are zips: their parts are stored separately, and joined on reading.
PTX is stored without its register numbers, which registers.py stores separately, for all kernels together; it
is stored as it is if that would lose something. An array may be stored with the first bytes of all numbers
together, then the second ones: exponents are similar. A path may lead into a store:
`kernels.tar.xz/ladders-3` means the files below that prefix.
"""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from research.registers import Numbers, coded, plain

SUFFIX = ".tar.xz", ".tar.bz2"
NESTED = (".lab", ".npz")  # zips whose parts are stored separately
PTX, AS_IS = ".ptx", "!as-is"  # the second: suffix of the name of PTX that registers.py cannot code
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
    with tarfile.open(file) as tar:
        for member in tar:
            name, planes, width = member.name.partition(PLANES)
            ours = name.startswith(inside)
            if not ours and not name.endswith((PTX, NEAR, DISTANT)):
                continue
            data = tar.extractfile(member).read()
            if planes:
                data = _array(data, int(width), _transposed_back)
            if name == NEAR:
                near = data
            elif name == DISTANT:
                numbers = Numbers(near, np.load(io.BytesIO(data)))
            else:
                if name.endswith(PTX):
                    text = data.decode()
                    codes = numbers.of(text)
                    data = plain(text, *codes).encode() if ours else b""
                if ours:
                    yield name.removesuffix(AS_IS), data


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
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, data in _packed(flat).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    data, prose = plain.getvalue(), path.suffix == ".bz2"
    path.write_bytes(bz2.compress(data) if prose else packed.compress(data) + packed.flush())


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
