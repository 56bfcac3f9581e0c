"""Which pipe an instruction uses, and how long a run of instructions takes a sub-partition."""

import pytest

from ptxsim.frontend.ast import Instr, Reg
from ptxsim.timing.instructions import Rows
from ptxsim.timing.pipes import CYCLES, passes, pipe


def slots(*rows: str, sass_counts: int = 1) -> float:
    """Cycles that a run of these instructions holds the issue slots of its sub-partition."""
    instrs = []
    for number, row in enumerate(rows):
        op, *mods = row.split(".")
        instrs.append(Instr(None, op, tuple(mods), (Reg(f"%r{number}"), Reg("%p"), Reg("%p")), 1, ""))
    return Rows(instrs, [sass_counts] * len(instrs), 4.2).run(0, len(instrs) - 1)[0]


@pytest.mark.parametrize(
    "row, lanes",  # per SM and cycle: CUDA C++ guide, compute capability 9.0
    [
        ("fma.rn.f32", 128), ("fma.rn.f16x2", 128), ("fma.rn.f64", 64), ("mad.lo.s32", 64), ("min.s32", 64),
        ("min.f32", 64), ("setp.lt.f32", 64), ("setp.lt.s32", 64), ("shr.u32", 64), ("xor.b32", 64),
        ("lop3.b32", 64), ("prmt.b32", 64), ("bfe.u32", 64), ("cvt.rn.f32.s32", 64), ("dp4a.s32.s32", 64),
        ("popc.b32", 16), ("clz.b32", 16), ("brev.b32", 16), ("bfind.u32", 16), ("ex2.approx.ftz.f32", 16),
        ("rsqrt.approx.ftz.f32", 16), ("mul.hi.u32", 32),
    ],
)  # fmt: skip
def test_a_pipe_takes_a_warp_for_as_long_as_its_lanes_say(row, lanes):
    assert slots(*[row] * 8) == 8 * 128 / lanes


def test_pipes_work_side_by_side():
    """As in a random number by xorshift: left shifts next to operations that only the ALU does."""
    assert slots(*["shl.b32", "xor.b32"] * 4) == 8
    assert slots(*["mad.lo.s32", "xor.b32"] * 4) == 8
    assert slots(*["popc.b32", *["fma.rn.f32"] * 8]) == 9


def test_sums_of_whole_numbers_go_to_two_pipes():
    assert slots(*["add.s32"] * 8) == 8
    assert slots(*["add.s32"] * 4, *["xor.b32"] * 4) == 12
    assert slots(*["add.s64"] * 4, *["xor.b32"] * 4) == 14  # the low half gives a carry: IADD3


def test_a_division_holds_no_pipe_for_as_long_as_its_instructions_would():
    assert slots("div.s32", sass_counts=20) == 28
    assert slots("div.rn.f32", sass_counts=13) == 13 and slots("div.approx.ftz.f32", sass_counts=3) == 8


def test_every_pipe_is_known():
    for op in ("add", "and", "mul", "mad", "div", "ex2", "popc", "cvt", "mov", "bra", "selp"):
        for kind in ("s32", "u64", "f32", "f64", "f16x2", "b32", "pred"):
            assert set(passes(pipe(op, (kind,)), 2)) <= set(CYCLES)
