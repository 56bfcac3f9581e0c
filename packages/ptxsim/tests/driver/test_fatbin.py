"""Fat binaries: which PTX runs on which chip, packed texts, and the message if there is none."""

import contextlib
import ctypes
import random
import struct

import pytest

from ptxsim.driver import fatbin
from ptxsim.driver.chips import CHIPS, LAYOUTS, attributes, properties


def text(target: str) -> str:
    return f".version 9.0\n.target {target}\n.address_size 64\n// {target}\n"


def entry(kind: int, arch: int, body: bytes, flags: int = 0, unpacked: int = 0) -> bytes:
    padded = body + b"\0" * (-len(body) % 8)
    head = fatbin._ENTRY.pack(kind, 257, 64, len(padded), len(body), 0, 0, 0, arch, 0, 0, flags, 0, unpacked)
    return head.ljust(64, b"\0") + padded


def binary(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(body)) + body


def ptx(target: str) -> bytes:
    return entry(fatbin.PTX, int("".join(c for c in target if c.isdigit())), text(target).encode() + b"\0")


CHOICES = [  # targets in the binary, capability of the chip, the target that runs (None: none)
    (["sm_80", "sm_90a"], 90, "sm_90a"),
    (["sm_80", "sm_90a"], 100, "sm_80"),
    (["sm_90", "sm_90a"], 90, "sm_90a"),
    (["sm_100a", "sm_100f", "sm_90"], 100, "sm_100a"),
    (["sm_100f", "sm_90"], 103, "sm_100f"),
    (["sm_103f", "sm_90"], 100, "sm_90"),
    (["sm_90a"], 100, None),
    (["sm_100"], 90, None),
]


@pytest.mark.parametrize("targets, capability, chosen", CHOICES)
def test_the_newest_text_that_the_chip_can_run(targets, capability, chosen):
    data = binary(entry(fatbin.CUBIN, 90, b"\x7fELF"), *map(ptx, targets))
    if chosen:
        assert fatbin.ptx_of(data, capability) == text(chosen)
        assert fatbin.ptx_of(b"\x7fELF" + b"rest of a program" + data + b"end", capability) == text(chosen)
    else:
        with pytest.raises(fatbin.ImageError, match=f"{targets[0]}.*which sm_{capability} cannot run"):
            fatbin.ptx_of(data, capability)


def test_machine_code_alone_says_how_to_build():
    with pytest.raises(fatbin.ImageError, match=r"machine code only \(sm_90\).*ptxsim nvcc"):
        fatbin.ptx_of(binary(entry(fatbin.CUBIN, 90, b"\x7fELF")), 90)
    with pytest.raises(fatbin.ImageError, match="a cubin: machine code only"):
        fatbin.ptx_of(b"\x7fELF".ljust(18) + b"\xbe\0" + b"code" * 50, 90)
    with pytest.raises(fatbin.ImageError, match="a program or library without PTX"):
        fatbin.ptx_of(b"\x7fELF".ljust(18) + b"\x3e\0" + b"code" * 50, 90)
    with pytest.raises(fatbin.ImageError, match="neither PTX"):
        fatbin.ptx_of(b"hello\0", 90)


def packed_lz4(data: bytes, rng: random.Random) -> bytes:
    """A valid LZ4 block: literals, and matches at random distances that overlap their own output."""
    out, at, literals = bytearray(), 0, bytearray()

    def sequence(match: int, distance: int) -> None:
        high, low = min(len(literals), 15), min(match - 4, 15) if match else 0
        out.append(high << 4 | low)
        out.extend(_rest(len(literals)) if high == 15 else b"")
        out.extend(literals)
        literals.clear()
        if match:
            out.extend(struct.pack("<H", distance))
            out.extend(_rest(match - 4) if low == 15 else b"")

    while at < len(data) - 5:
        distance = rng.randint(1, max(1, min(at, 60)))
        match = 0
        while at and at + match < len(data) - 5 and data[at + match] == data[at + match - distance]:
            match += 1
        if match >= 4:
            sequence(match, distance)
            at += match
        else:
            literals.append(data[at])
            at += 1
    literals.extend(data[at:])
    sequence(0, 0)
    return bytes(out)


def _rest(length: int) -> bytes:
    length -= 15
    return b"\xff" * (length // 255) + bytes([length % 255])


@pytest.mark.parametrize("seed", range(20))
def test_lz4(seed):
    rng = random.Random(seed)
    words = [bytes(rng.randrange(97, 100) for _ in range(rng.randint(1, 9))) for _ in range(6)]
    data = b"".join(rng.choice(words) * rng.randint(1, 40) for _ in range(rng.randint(1, 60)))
    assert fatbin.unpack_lz4(packed_lz4(data, rng), len(data)) == data
    body = packed_lz4(text("sm_90a").encode(), rng)
    made = binary(entry(fatbin.PTX, 90, body, flags=0x2000, unpacked=len(text("sm_90a"))))
    assert fatbin.ptx_of(made, 90) == text("sm_90a")


def test_zstd():
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        pytest.skip("no libzstd")
    data = text("sm_90a").encode() * 20
    out = ctypes.create_string_buffer(len(data) + 1000)
    library.ZSTD_compress.restype = ctypes.c_size_t
    size = library.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    assert fatbin.unpack_zstd(out.raw[:size], len(data)) == data
    with pytest.raises(fatbin.ImageError, match="damaged"):
        fatbin.unpack_zstd(out.raw[: size // 2], len(data))


def test_rubbish_never_escapes():
    rng, whole = random.Random(1), binary(ptx("sm_90a"), ptx("sm_80"))
    for _ in range(300):
        data = bytearray(whole[: rng.randint(4, len(whole))])
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(4, len(data)) if len(data) > 4 else 0] = rng.randrange(256)
        with contextlib.suppress(fatbin.ImageError, IndexError, struct.error):  # as Device.add_module does
            fatbin.ptx_of(bytes(data), 90)


@pytest.mark.parametrize("major, sms, optin", [(12, 388, 696), (13, 384, 672)])
def test_properties_lie_where_programs_look(major, sms, optin):
    """Offsets of multiProcessorCount and sharedMemPerBlockOptin, as a C compiler lays out CUDA's struct."""
    made = properties(CHIPS["h200"], major)
    assert made.startswith(b"NVIDIA H200") and set(LAYOUTS) == {12, 13}
    assert struct.unpack_from("<i", made, sms)[0] == 132
    assert struct.unpack_from("<Q", made, optin)[0] == 227 * 1024


def test_chips_of_the_rtx_series():
    """`--chip auto`: PTX for sm_120a cannot run on a B200."""
    chip = CHIPS["rtx5090"]
    assert attributes(chip)[39] == 1536 and attributes(chip)[97] == 99 * 1024
    assert fatbin.runs_on((120, "a"), chip.capability) and not fatbin.runs_on((100, "a"), chip.capability)
