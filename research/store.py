"""Saved kernels, arrays and results of a study in one file: a tar of plain files, packed as a whole by xz.

Kernels resemble one another, so packing them together takes a third of what packing each takes. Artifacts
(`*.lab`) and arrays (`*.npz`) are zips themselves: their parts are packed, and joined when they are read.
PTX is packed with its registers as registers.py writes them, or as it is where that would lose something.
Of an array the first bytes of all numbers may stand together, then the second ones: exponents are alike.
A path may lead into a store, `kernels.tar.xz/ladders-3`: then it means the files below there.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np

from research.registers import coded, plain

SUFFIX = ".tar.xz"
NESTED = (".lab", ".npz")  # zips whose parts are packed
PTX, AS_IS = ".ptx", "!as-is"  # the second: behind the name of PTX that registers.py cannot write
ARRAY, PLANES, HEAD = ".npy", "!planes-", 128  # of an array: its file, bytes wide, bytes before its numbers
_TEXT = {"lc": 4, "pb": 0}  # what suits text, not words of four bytes
_SETTINGS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 26, **_TEXT}]
_PART = "!/"  # between the name of a nested zip and that of its part


def load(path: Path) -> dict[str, bytes]:
    """The files of a store, or of a folder in one, by name."""
    file, inside = _split(path)
    found: dict[str, bytes] = {}
    parts: dict[str, dict[str, bytes]] = {}
    with tarfile.open(file, "r:xz") as tar:
        for member in tar:
            if not member.name.startswith(inside):
                continue
            name, _, part = member.name[len(inside) :].partition(_PART)
            data = tar.extractfile(member).read()
            if member.name.endswith(PTX):
                data = plain(data.decode()).encode()
            if PLANES in member.name:
                data = _array(data, int(member.name.partition(PLANES)[2]), _transposed_back)
            name, part = (one.removesuffix(AS_IS).partition(PLANES)[0] for one in (name, part))
            if part:
                parts.setdefault(name, {})[part] = data
            else:
                found[name] = data
    return found | {name: _zipped(files) for name, files in parts.items()}


def save(path: Path, files: dict[str, bytes]) -> None:
    """Writes a store; the same files give the same bytes."""
    flat: dict[str, bytes] = {}
    for name, data in files.items():
        if name.endswith(NESTED):
            with zipfile.ZipFile(io.BytesIO(data)) as nested:
                flat |= {f"{name}{_PART}{part}": nested.read(part) for part in nested.namelist()}
        else:
            flat[name] = data
    flat = dict(_packed(name, data) for name, data in flat.items())
    packed = lzma.LZMACompressor(filters=_SETTINGS)
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name in sorted(flat, key=_alike):
            info = tarfile.TarInfo(name)
            info.size = len(flat[name])
            tar.addfile(info, io.BytesIO(flat[name]))
    path.write_bytes(packed.compress(plain.getvalue()) + packed.flush())


def _packed(name: str, data: bytes) -> tuple[str, bytes]:
    """A file as it stands in the tar."""
    if name.endswith(ARRAY):
        sizes = {width: len(lzma.compress(_array(data, width), preset=1)) for width in (1, 2, 4, 8)}
        width = min(sizes, key=lambda one: (sizes[one], one))
        return (name, data) if width == 1 else (f"{name}{PLANES}{width}", _array(data, width))
    if not name.endswith(PTX):
        return name, data
    try:
        return name, coded(data.decode()).encode()
    except ValueError:
        return name + AS_IS, data


def _transposed(numbers: np.ndarray) -> np.ndarray:
    return numbers.T


def _transposed_back(numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(numbers.shape[::-1]).T


def _array(data: bytes, width: int, turn: Callable = _transposed) -> bytes:
    """A file of NumPy's whose numbers are so many bytes wide, turned into planes, or back."""
    head = len(data) % width if len(data) < HEAD else HEAD
    whole = head + (len(data) - head) // width * width
    numbers = np.frombuffer(data[head:whole], np.uint8).reshape(-1, width)
    return data[:head] + turn(numbers).tobytes() + data[whole:]


def _alike(name: str) -> tuple[str, str, str]:
    """Files of one kind stand together, and kernels of one name, whatever set they are of."""
    path = PurePosixPath(name.partition(PLANES)[0])
    kernel = path.parent.name if path.parent.name.endswith("!") else path.name
    return path.suffix or path.name, kernel, name


def _split(path: Path) -> tuple[Path, str]:
    """(the file, the prefix of names in it)."""
    for file in (path, *path.parents):
        if file.name.endswith(SUFFIX):
            inside = path.relative_to(file).as_posix()
            return file, "" if inside == "." else inside + "/"
    raise ValueError(f"{path}: not a store, whose name ends in {SUFFIX}")


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()
