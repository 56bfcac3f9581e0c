"""What ptxas spilled, read off the machine code: Triton says nothing of it, and PTX cannot.

Instructions of sm_70 and later have 16 bytes; the low 12 bits of the first are the opcode (nvdisasm).
"""

from __future__ import annotations

import struct

REFILL, SPILL, NOTHING = 0x983, 0x387, 0x918  # LDL, STL, NOP
_HEADER = struct.Struct("<IIQQQQIIQQ")  # of a section, ELF64


def refills(cubin: bytes) -> float:
    """Loads from local memory, as a share of all other instructions; 0.0 if there is no code to read.

    Each comes with a store, mostly in the same loop.
    """
    counts = dict.fromkeys((REFILL, SPILL, NOTHING), 0)
    total = 0
    try:
        texts = list(_texts(cubin)) if cubin[:4] == b"\x7fELF" else []
    except (struct.error, IndexError):
        return 0.0
    for text in texts:
        for (word,) in struct.iter_unpack("<H14x", text[: len(text) // 16 * 16]):
            total += 1
            if word & 0xFFF in counts:
                counts[word & 0xFFF] += 1
    rest = total - sum(counts.values())
    return counts[REFILL] / rest if rest else 0.0


def _texts(cubin: bytes):
    """The sections of code."""
    start, *_ = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    sections = [_HEADER.unpack_from(cubin, start + 64 * i) for i in range(count)]
    at = sections[names][4]
    for name, _, _, _, place, size, *_ in sections:
        if cubin[at + name : at + name + 6] == b".text.":
            yield cubin[place : place + size]
