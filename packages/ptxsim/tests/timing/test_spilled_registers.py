"""Spills by ptxas are read off the machine code and have their cost: issue slots, and waiting for L1."""

import struct

import pytest

from ptxsim.frontend.ast import Instr, Reg
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess, Run
from ptxsim.timing.machine_code import NOTHING, REFILL, SPILL, refills
from ptxsim.timing.steps import Move, Shared, Slots

H200 = chip("h200")
FFMA = 0x223


def elf(*opcodes: int) -> bytes:
    """A file with one section of these instructions, and one with the names of sections."""
    code = b"".join(struct.pack("<H14x", 0x7000 | opcode) for opcode in opcodes)
    names = b"\0.text.kernel\0.names\0"
    head = b"\x7fELF\2\1\1" + bytes(9)  # 64 bits, little-endian
    sizes = 64, 0, 0, 64, 2, 1  # of headers; there are two sections, the second has the names
    head += struct.pack("<HHIQQQI6H", 2, 190, 1, 0, 0, 64 + len(code) + len(names), 0, *sizes)
    places = [(1, 1, 64, len(code)), (14, 3, 64 + len(code), len(names))]
    sections = [struct.pack("<IIQQQQIIQQ", *p[:2], 0, 0, *p[2:], 0, 0, 1, 0) for p in places]
    return head + code + names + b"".join(sections)


@pytest.mark.parametrize(
    ("cubin", "share"),
    [
        (b"", 0.0),
        (b"\x7fELF and no more", 0.0),
        (elf(FFMA, REFILL, FFMA)[:-30], 0.0),
        (elf(FFMA, FFMA), 0.0),
        (elf(FFMA, REFILL, FFMA, SPILL, FFMA, FFMA, NOTHING, NOTHING), 0.25),
        (elf(REFILL, SPILL), 0.0),
    ],
)
def test_refills_are_a_share_of_all_other_instructions(cubin, share):
    assert refills(cubin) == share


def loading(share: float) -> list[Move]:
    add = Instr(None, "add", ("s32",), (Reg("%r1"), Reg("%r2"), Reg("%r3")), 1, "")
    load = Instr(None, "ld", ("shared", "f32"), (Reg("%f1"), Reg("%r9")), 2, "")
    execution = Execution(
        [add] * 40 + [load], 1, 1, [[Run(0, 39), MemoryAccess(40, True, False, 128, 1)]], refills=share
    )
    return with_costs(execution, H200).warps[0]


def test_a_refill_takes_two_slots_and_is_waited_for():
    plain, spilled = loading(0.0)[1].does, loading(0.1)[0].does
    assert spilled.slots == pytest.approx(1.2 * plain.slots)
    assert spilled.refills == pytest.approx(0.1 * plain.slots * H200.l1_latency)


def test_without_registers_no_load_moves_ahead():
    assert [type(step.does) for step in loading(0.0)] == [Shared, Slots]
    assert [type(step.does) for step in loading(0.1)] == [Slots, Shared]
