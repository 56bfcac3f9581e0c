"""Finds PTX inside fat binaries, object files and programs, and chooses the text for a chip.

A fat binary is a header followed by entries, each a PTX text or a cubin, compressed with LZ4 or zstd or not
at all. None of this is documented; the layout is the one that nvcc 11 to 13 write.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of the entries
HEAD = _HEADER.size
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
PTX, CUBIN = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000  # flags of an entry
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_MOST = 1 << 30  # bytes of a text


EM_CUDA = 190  # ELF machine of code for a GPU


class ImageError(ValueError):
    """An image gives no PTX; the message is one line that says why."""


@dataclass(frozen=True)
class Image:
    kind: int  # PTX or CUBIN
    arch: int  # 90 for sm_90a
    text: str = ""  # of PTX

    @property
    def target(self) -> tuple[int, str]:
        """The target of the PTX as number and suffix: (90, "a") for sm_90a."""
        found = _TARGET.search(self.text)
        return (int(found[1]), found[2]) if found else (self.arch, "")


def size(data: bytes, start: int = 0) -> int:
    """Bytes of the fat binary at `start`, from its header; 0 if none starts there."""
    magic, _, header, entries = _HEADER.unpack_from(data, start)
    return header + entries if magic == MAGIC else 0


def images(data: bytes, start: int = 0) -> list[Image]:
    """All images of the fat binary at `start`. Raises ImageError if it cannot be read."""
    if len(data) < start + _HEADER.size:
        raise ImageError("the fat binary is truncated")
    magic, _, header, size = _HEADER.unpack_from(data, start)
    if magic != MAGIC:
        raise ImageError("this is not a fat binary")
    at, end, found = start + header, min(start + header + size, len(data)), []
    while at + _ENTRY.size <= end:
        kind, _, inner, padded, packed, _, _, _, arch, _, _, flags, _, unpacked = _ENTRY.unpack_from(data, at)
        body = data[at + inner : at + inner + padded]
        if kind == PTX:
            found.append(Image(PTX, arch, _text(body, flags, packed, unpacked)))
        elif kind == CUBIN:
            found.append(Image(CUBIN, arch))
        if inner + padded == 0:
            break
        at += inner + padded
    return found


def _text(body: bytes, flags: int, packed: int, unpacked: int) -> str:
    if unpacked > _MOST:
        raise ImageError(f"a PTX text of {unpacked} B is too long")
    if flags & _LZ4:
        body = unpack_lz4(body[:packed], unpacked)
    elif flags & _ZSTD or body[:4] == b"\x28\xb5\x2f\xfd":
        body = unpack_zstd(body[:packed], unpacked)
    return body.partition(b"\0")[0].decode("utf-8", "replace")


def unpack_lz4(data: bytes, size: int) -> bytes:
    """Decompresses one LZ4 block (the format's specification is public)."""
    out, at, end = bytearray(), 0, len(data)
    while at < end:
        token = data[at]
        at += 1
        count, at = _length(data, at, token >> 4)
        out += data[at : at + count]
        at += count
        if at >= end or len(out) >= size:
            break
        distance = data[at] | data[at + 1] << 8
        count, at = _length(data, at + 2, token & 15)
        count, first = count + 4, len(out) - distance
        if not 0 <= first < len(out):
            raise ImageError("the compressed PTX is damaged")
        while count > 0:  # a match may overlap the bytes that it produces
            piece = out[first : first + count]
            out += piece
            count -= len(piece)
    return bytes(out[:size])


def _length(data: bytes, at: int, nibble: int) -> tuple[int, int]:
    if nibble == 15:
        while True:
            nibble += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return nibble, at


def unpack_zstd(data: bytes, size: int) -> bytes:
    """Decompresses with libzstd, which nearly every Linux has. Raises ImageError if it is missing."""
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        raise ImageError(
            "the PTX is compressed with zstd: install libzstd, or build with -Xfatbinary=--no-compress"
        ) from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(size)
    if library.ZSTD_decompress(out, size, data, len(data)) != size:
        raise ImageError("the compressed PTX is damaged")
    return out.raw


def choose(images: list[Image], capability: int) -> Image:
    """The newest PTX that a chip (`capability`: 90, 100) can run. If there is none, raises an ImageError that
    lists what the images are for.
    """
    texts = [i for i in images if i.kind == PTX]
    usable = [i for i in texts if runs_on(i.target, capability)]
    if usable:
        return max(usable, key=lambda i: (i.target[0], "fa".find(i.target[1])))
    if texts:
        names = ", ".join(sorted({f"sm_{arch}{more}" for arch, more in (i.target for i in texts)}))
        raise ImageError(f"its PTX is for {names}, which sm_{capability} cannot run (choose another --chip)")
    if not images:
        raise ImageError("it holds no PTX: relocatable device code (-rdc=true) is linked into machine code")
    names = ", ".join(sorted({f"sm_{i.arch}" for i in images}))
    raise ImageError(
        f"it holds machine code only ({names}): build it with PTX, as `ptxsim nvcc` or "
        f"-gencode arch=compute_{capability}a,code=compute_{capability}a does"
    )


def runs_on(target: tuple[int, str], capability: int) -> bool:
    """Whether a chip runs PTX for a target: `a` on that chip only, `f` within its family (PTX ISA 11.1.2)."""
    arch, feature = target
    if feature == "a":
        return arch == capability
    if feature == "f":
        return arch // 10 == capability // 10 and arch <= capability
    return arch <= capability


def ptx_of(data: bytes, capability: int) -> str:
    """The PTX in an image that cuModuleLoadData accepts: PTX, a fat binary, or an ELF file that holds one.

    Raises ImageError if there is none for this chip.
    """
    if data[:4] == struct.pack("<I", MAGIC):
        return choose(images(data), capability).text
    if data[:4] == b"\x7fELF":
        found = inside(data)
        if not found:
            machine = struct.unpack_from("<H", data, 18)[0] if len(data) >= 20 else 0
            cubin = "it is a cubin: machine code only, no PTX"
            raise ImageError(cubin if machine == EM_CUDA else "it is a program or library without PTX in it")
        return choose(found, capability).text
    text = data.partition(b"\0")[0].decode("utf-8", "replace")
    if ".version" not in text:
        raise ImageError("it is neither PTX, a fat binary nor a program that contains a fat binary")
    return choose([Image(PTX, 0, text)], capability).text


def starts(data: bytes) -> Iterator[int]:
    """Offsets in a file at which a fat binary seems to start."""
    magic, at = struct.pack("<IH", MAGIC, 1), -1
    while (at := data.find(magic, at + 1)) >= 0:
        yield at


def inside(data: bytes) -> list[Image]:
    """All images of all fat binaries in a file of any kind: a program, a library, an object file."""
    found = []
    for at in starts(data):
        try:
            found += images(data, at)
        except (ImageError, IndexError, struct.error):
            continue  # bytes that happen to look like a header, or a damaged fat binary
    return found
