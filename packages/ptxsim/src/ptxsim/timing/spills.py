"""What ptxas spilled, read off the machine code: Triton says nothing of it, and PTX cannot.

Instructions of sm_70 and later have 16 bytes; the low 12 bits of the first are the opcode (nvdisasm).
"""

from __future__ import annotations

import io

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

REFILL, SPILL, NOTHING = 0x983, 0x387, 0x918  # LDL, STL, NOP


def refills(cubin: bytes) -> float:
    """Loads from local memory, as a share of all other instructions; 0.0 if there is no code to read.

    Each comes with a store, mostly in the same loop.
    """
    codes = opcodes(cubin)
    loads, others = np.sum(codes == REFILL), np.sum(~np.isin(codes, (REFILL, SPILL, NOTHING)))
    return float(loads / others) if others else 0.0


def opcodes(cubin: bytes) -> np.ndarray:
    """The opcodes of all instructions in a cubin, one section of code after the other."""
    try:
        texts = [s.data() for s in ELFFile(io.BytesIO(cubin)).iter_sections() if s.name.startswith(".text.")]
    except (ELFError, UnicodeDecodeError):
        return np.zeros(0, np.uint16)
    words = [np.frombuffer(text[: len(text) // 16 * 16], "<u2")[::8] for text in texts]
    return np.concatenate([np.zeros(0, np.uint16), *words]) & 0xFFF
