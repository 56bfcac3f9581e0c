"""Which loads of shared memory the model joins: those whose addresses differ by a known constant."""

import numpy as np
import pytest

import ptxsim
from ptxsim.frontend.ast import Instr, Mem, Reg
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import Execution, MemoryAccess, Run
from ptxsim.timing.neighbours import variable_parts
from ptxsim.timing.steps import Shared

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
    .reg .pred %p<4>;
    .reg .b32 %r<32>;
    .reg .f32 %f<8>;
    .shared .align 16 .b8 words[4096];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, words;
    mov.u32 %r3, 0;
$loop:
"""
TAIL = """
    add.s32 %r3, %r3, 4;
    setp.lt.s32 %p1, %r3, %r0;
    @%p1 bra $loop;
    ret;
}
"""


def parts(body: str) -> list:
    program = ptxsim.load(HEAD + body + TAIL).programs["k"]
    return list(variable_parts(program).values())


def test_sums_with_constants_have_the_same_part_however_they_are_written():
    first, second, third = parts("""
        add.s32 %r4, %r3, %r1;
        shl.b32 %r5, %r4, 2;
        add.s32 %r6, %r2, %r5;
        ld.shared.f32 %f1, [%r6];
        ld.shared.f32 %f2, [%r6+4];
        add.s32 %r7, %r4, 2;
        mad.lo.s32 %r8, %r7, 4, %r2;
        ld.shared.f32 %f3, [%r8];
    """)
    assert first == second == third and not first[1]  # and it does not change in an unknown way


@pytest.mark.parametrize("step", ["and.b32 %r5, %r4, 255;", "shr.u32 %r5, %r4, 1;", "rem.u32 %r5, %r4, %r0;"])
def test_what_a_bitwise_step_makes_is_no_neighbour(step):
    """As in p[(i + k) & 2047]: neighbours in memory, but the assembler does not know."""
    after = step.replace("%r4", "%r7").replace("%r5", "%r8")
    first, second = parts(f"""
        add.s32 %r4, %r3, %r1;
        {step}
        mad.lo.s32 %r6, %r5, 4, %r2;
        ld.shared.f32 %f1, [%r6];
        add.s32 %r7, %r4, 1;
        {after}
        mad.lo.s32 %r9, %r8, 4, %r2;
        ld.shared.f32 %f2, [%r9];
    """)
    assert first != second and first[1] and second[1]


def test_an_opaque_part_that_the_loop_does_not_change_divides_no_turns():
    (part,) = parts("""
        and.b32 %r4, %r1, 31;
        add.s32 %r5, %r4, %r3;
        mad.lo.s32 %r6, %r5, 4, %r2;
        ld.shared.f32 %f1, [%r6];
    """)
    assert len(part[0]) == 2 and not part[1]  # the address of the array, and the rest of %tid.x


def test_an_address_that_is_loaded_changes_with_each_turn():
    (part,) = parts("""
        ld.shared.b32 %r1, [%r1];
    """)
    assert part[1]


LANES = np.arange(32) * 32


def joined(width: int, kinds=None, branch: bool = False) -> int:
    """The number of loads left of two neighbours, in two rows of a program or in two iterations of one."""
    load = Instr(None, "ld", ("shared", "b32"), (Reg("%x"), Mem(Reg("%r"), 0, ())), 1, "")
    jump = Instr(None, "bra", (), (), 1, "")
    execution = Execution([load, load, jump], 1, 1, [[]], sass_counts=[1, 1, 1], parts=kinds or {})
    for number, at in enumerate((0, width)):
        row, lanes = 0 if branch else number, LANES.tobytes()
        execution.warps[0].append(
            MemoryAccess(row, True, False, 32 * width, 1, at=at, lanes=lanes, width=width)
        )
        if branch:
            execution.warps[0].append(Run(2, 2))
    return sum(type(step.does) is Shared for step in with_costs(execution, chip("h200")).warps[0])


@pytest.mark.parametrize("width", [2, 4, 8])
def test_loads_with_the_same_part_become_one(width):
    same = {0: (((7, 4),), False), 1: (((7, 4),), False)}
    assert joined(width, same) == joined(width) == 1
    assert joined(width, same | {1: (((8, 4),), False)}) == 2


def test_turns_of_a_loop_are_divided_only_by_what_changes_in_them():
    assert joined(4, {0: (((7, 4),), False)}, branch=True) == 1
    assert joined(4, {0: (((7, 4),), True)}, branch=True) == 2
    assert joined(4, {0: (((7, 4),), True), 1: (((7, 4),), True)}) == 1
