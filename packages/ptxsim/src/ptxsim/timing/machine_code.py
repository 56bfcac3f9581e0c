"""What the time model reads from a cubin: opcodes, control flow, stall counts, and the PTX line of each
instruction.

Instructions of sm_70 and later have 16 bytes; the low 12 bits of the first word are the opcode (nvdisasm).
The next four bits are the guard, 7 if there is none; the eight bits from bit 24 on are a branch's uniform
condition. A branch of sm_90 and later encodes its distance from the next instruction: bits 34 to 81, then 16
to 23. sm_100 has another opcode for branches with a uniform condition. The targets of a jump through a table
(numbered roles of warps) are in the kernel's .nv.info (EIATTR_INDIRECT_BRANCH_TARGETS). Bits 41 to 44 of the
second word are the cycles that a warp stalls after an instruction; they cover results with a fixed latency,
and pipes.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile

from ptxsim.lowering.cfg import build_blocks
from ptxsim.timing.flow import Flow, analysed

REFILL, SPILL, NOTHING = 0x983, 0x387, 0x918  # LDL, STL, NOP
BRANCH, UNIFORM, JUMP, TABLE, RETURN, EXIT = 0x947, 0x547, 0x94A, 0x949, 0x950, 0x94D
_SIZE, _ALWAYS = 16, 7
_SIZED, _TARGETS = 4, 0x34  # of a note in .nv.info: format with a size; kind: targets of jumps through tables
_STALL = 41  # first of the four bits of the second word that hold the stall cycles
_LEAST = 90  # sm_90; earlier architectures encode branches differently
_FAR, _SIGN = 0x3FFFF, 0x20000  # of the second word: the highest bits of a distance, and its sign


@dataclass(frozen=True)
class Code:
    """The machine code of a kernel, by instruction."""

    opcodes: list[int]
    lines: list[int]  # line of PTX; 0 if the instruction comes from none
    flow: Flow  # without functions that are called and not inlined
    stalls: list[int]  # cycles until the warp may issue its next instruction


def refills(cubin: bytes) -> float:
    """Loads of spilled registers, as a share of all other instructions; 0.0 if there is no code.

    Each load has a store, mostly in the same loop.
    """
    found = _elf(cubin)
    codes = np.concatenate([np.zeros(0, np.uint64), *(_opcodes(_words(s)) for s in _texts(found))])
    loads, others = np.sum(codes == REFILL), np.sum(~np.isin(codes, (REFILL, SPILL, NOTHING)))
    return float(loads / others) if others else 0.0


def code(cubin: bytes) -> Code | None:
    """The Code of the only kernel of a cubin. None if there is not exactly one kernel, no line table, or if
    the architecture is older than sm_90.
    """
    found = _elf(cubin)
    texts = _texts(found)
    if found is None or len(texts) != 1 or not found.get_section_by_name(".debug_line"):
        return None
    if found.header.e_flags >> 8 & 0xFF < _LEAST:
        return None
    words = _words(texts[0])
    tables = _tables(found.get_section_by_name(texts[0].name.replace(".text", ".nv.info", 1)))
    return Code(_opcodes(words).tolist(), _lines(found, len(words)), _flow(words, tables), _stalls(words))


def _elf(cubin: bytes) -> ELFFile | None:
    try:
        return ELFFile(io.BytesIO(cubin))
    except ELFError:
        return None


def _texts(elf: ELFFile | None) -> list:
    try:
        return [s for s in elf.iter_sections() if s.name.startswith(".text.")] if elf else []
    except (ELFError, UnicodeDecodeError):
        return []


def _words(section) -> np.ndarray:
    """The two 64-bit words of each instruction."""
    text = section.data()
    return np.frombuffer(text[: len(text) // _SIZE * _SIZE], "<u8").reshape(-1, 2)


def _opcodes(words: np.ndarray) -> np.ndarray:
    return words[:, 0] & np.uint64(0xFFF)


def _stalls(words: np.ndarray) -> list[int]:
    return (words[:, 1] >> np.uint64(_STALL) & np.uint64(15)).tolist()


def _lines(elf: ELFFile, count: int) -> list[int]:
    """The PTX line of each instruction. Addresses count from the start of the only code section."""
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    program = elf.get_dwarf_info(relocate_dwarf_sections=False)._parse_line_program_at_offset(0, structs)
    states = [entry.state for entry in program.get_entries() if entry.state is not None]
    marks = sorted((s.address // _SIZE, s.line) for s in states if not s.end_sequence)
    lines = [0] * count
    for (first, line), (end, _) in zip(marks, [*marks[1:], (count, 0)], strict=True):
        lines[first:end] = [line] * (end - first)
    return lines


def _tables(notes) -> dict[int, list[int]]:
    """Index of a jump through a table -> indices of its possible targets."""
    found: dict[int, list[int]] = {}
    data, place = notes.data() if notes else b"", 0
    while place + 4 <= len(data):
        form, kind, size = struct.unpack_from("<BBH", data, place)
        place, note = place + 4, b""
        if form == _SIZED:
            place, note = place + size, data[place : place + size]
        while kind == _TARGETS and note:
            jump, _, count = struct.unpack_from("<III", note)
            ends = struct.unpack_from(f"<{count}I", note, 12)
            found[jump // _SIZE] = [end // _SIZE for end in ends]
            note = note[12 + 4 * count :]
    return found


def _flow(words: np.ndarray, tables: dict[int, list[int]]) -> Flow:
    targets: dict[int, list[int]] = {}
    falls: dict[int, bool] = {}
    for place, (low, high) in enumerate(words.tolist()):
        opcode, guarded = low & 0xFFF, low >> 12 & 15 != _ALWAYS or low >> 24 & 0xFF != 0
        if opcode in (BRANCH, JUMP):
            targets[place], falls[place] = [_target(place, low, high)], guarded
        elif opcode == UNIFORM:
            targets[place], falls[place] = [_target(place, low, high)], low >> 24 & 15 != _ALWAYS
        elif opcode == TABLE:
            targets[place], falls[place] = tables.get(place, []), low >> 12 & 15 != _ALWAYS
        elif opcode in (EXIT, RETURN):
            targets[place], falls[place] = [], low >> 12 & 15 != _ALWAYS
    return analysed(build_blocks(len(words), targets, falls))


def _target(place: int, low: int, high: int) -> int:
    """The index of the instruction to which a branch jumps."""
    far = (high & _FAR) << 30 | low >> 34
    steps = far << 8 | low >> 16 & 0xFF
    return place + 1 + (steps - (1 << 56) * bool(high & _SIGN)) * 4 // _SIZE
