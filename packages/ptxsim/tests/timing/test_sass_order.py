"""The steps of a warp in the order of the machine code: small blocks whose order can be read off.

`assembled/loop.cubin.xz` is the output of ptxas of CUDA 13.0 for `loop.ptx`: it joins four iterations.
"""

import lzma
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ptxsim
from ptxsim.frontend.ast import Instr, Mem, Reg
from ptxsim.timing.chip import chip
from ptxsim.timing.costed_execution import with_costs
from ptxsim.timing.execution import MemoryAccess, Run, Unit
from ptxsim.timing.instructions import Rows
from ptxsim.timing.machine_code import code
from ptxsim.timing.predict import sample
from ptxsim.timing.sass_count import Counted, Place
from ptxsim.timing.sass_order import SassOrder
from ptxsim.timing.steps import Global, Other, Shared, Step, Stretch, Tmem, TmemWait

FOLDER = Path(__file__).parent / "assembled"
PROGRAM = ptxsim.load((FOLDER / "loop.ptx").read_text()).programs["sum"]
CUBIN = lzma.decompress((FOLDER / "loop.cubin.xz").read_bytes())


def instr(op: str, kind: str, *names: str) -> Instr:
    return Instr(None, op, (kind,), tuple(Reg(f"%{name}") for name in names), 1, "")


def load(to: str, row: int):
    step = Step(Global(16, 0, 0, False, 4), (), (f"%{to}",))
    return instr("ld", "global", to), MemoryAccess(row, False, False, 512, 16), step


def store(of: str, row: int):
    step = Step(Shared(4, 23.0, True), (f"%{of}",), ())
    return (
        Instr(None, "st", ("shared",), (Mem(Reg("%s"), 0), Reg(f"%{of}")), 1, ""),
        MemoryAccess(row, True, True, 512, 4),
        step,
    )


def shuffle(to: str, of: str, row: int, stays: bool = False):
    step = Step(Other(2, 24, stays), (f"%{of}",), (f"%{to}",))
    return instr("shfl", "sync", to, of), Unit(row), step


def from_tmem(to: str, row: int):
    step = Step(Tmem(0, 17.6, 109.0), (), (f"%{to}",))
    return instr("tcgen05", "ld", to), Unit(row, 0), step


def wait_for_tmem(row: int):
    return instr("tcgen05", "wait::ld"), Unit(row), Step(TmemWait())


def plain(row: int, *names: str):
    return instr("add", "f32", *names), Run(row, row), Step(Stretch(1, {}))


def told(parts, places, times=1, counts=()):
    """The steps of some rows, each with a position in the machine code: loads
    and shuffles by what they fill.
    """
    instrs, steps, out = ([*column] for column in zip(*parts, strict=True))
    rows = Rows(instrs, counts or [1.0] * len(instrs), 4.2)
    costs = partial(lambda rows, uses, branches: _stretch(*rows.in_order(uses), branches), rows)
    _, found = SassOrder(rows, places, costs).reordered(steps * times, out * times)
    return [one.writes[0] if one.writes and type(one.does) is not Stretch else one.does for one in found]


def _stretch(slots, waits, needed, ready, branches):
    return Stretch(slots, ready, branches, {}, waits, needed)


def names(found) -> list:
    return [one if type(one) is str else type(one).__name__ for one in found]


def at(*places: int | None, joined: int = 1) -> dict[int, Place]:
    return {row: Place(joined, [place]) for row, place in enumerate(places) if place is not None}


TWO = [load("a", 0), store("a", 1), load("b", 2), store("b", 3)]


def test_a_load_that_ptxas_moved_up_is_played_there():
    assert names(told(TWO, at(1, 3, 2, 4))) == ["%a", "%b", "Shared", "Shared"]
    assert names(told(TWO, at(1, 2, 3, 4))) == ["%a", "Shared", "%b", "Shared"]


def test_shuffles_of_two_sums_take_turns():
    chain = [
        shuffle("a", "x", 0), plain(1, "x", "x", "a"), shuffle("b", "y", 2), plain(3, "y", "y", "b"),
    ]  # fmt: skip
    assert names(told(chain, at(1, 3, 2, 4))) == ["%a", "%b", "Stretch"]


def test_loads_from_tensor_memory_are_under_way_together_where_ptxas_put_them_so():
    parts = [from_tmem("a", 0), store("a", 1), from_tmem("b", 2), store("b", 3)]
    assert names(told(parts, at(1, 3, 2, 4))) == ["%a", "%b", "Shared", "Shared"]


def test_what_ptxas_put_before_a_wait_for_tensor_memory_does_not_stand_behind_it():
    parts = [from_tmem("a", 0), from_tmem("b", 1), wait_for_tmem(2), store("a", 3), store("b", 4)]
    assert names(told(parts, at(1, 3, 4, 2, 5))) == ["%a", "Shared", "%b", "TmemWait", "Shared"]


def test_what_has_no_instruction_stands_before_its_first_reader():
    """A copy of a loaded value does not wait for it at the copy's place in PTX."""
    parts = [load("a", 0), plain(1, "c", "a", "a"), load("b", 2), plain(3, "d", "c", "b")]
    found = told(parts, at(1, None, 2, 3), counts=[1.0, 0.0, 1.0, 1.0])
    assert names(found) == ["%a", "%b", "Stretch"] and {*found[2].needed} == {"%a", "%b"}


def test_nothing_is_played_before_what_it_reads():
    """Even if the table of lines says otherwise."""
    assert names(told([load("a", 0), store("a", 1)], at(2, 1))) == ["%a", "Shared"]


def test_a_register_is_not_filled_again_before_it_has_been_read():
    parts = [load("a", 0), store("a", 1), load("a", 2), store("a", 3)]
    assert names(told(parts, at(1, 3, 2, 4))) == ["%a", "Shared", "%a", "Shared"]


def test_nothing_passes_a_barrier():
    parts = [load("a", 0), shuffle("w", "w", 1, stays=True), load("b", 2)]
    assert names(told(parts, at(3, 2, 1))) == ["%a", "%w", "%b"]


@pytest.mark.parametrize(("times", "loads"), [(2, ["%a'0", "%a"]), (4, ["%a'0", "%a", "%a'0", "%a"])])
def test_iterations_that_ptxas_joined_have_registers_of_their_own(times, loads):
    places = {0: Place(2, [1, 2]), 1: Place(2, [3, 4])}
    found = names(told(TWO[:2], places, times))
    assert [one for one in found if one.startswith("%")] == loads
    assert found[:4] == ["%a'0", "%a", "Shared", "Shared"]


def test_the_machine_code_says_where_each_row_stands():
    """loop.ptx: four loads, one after the other, then four sums."""
    row = {i.text.split()[0]: r for r, i in enumerate(PROGRAM.instrs) if i is not None}
    found = Counted(PROGRAM, code(CUBIN)).places
    assert found[row["ld.global.f32"]].joined == found[row["add.f32"]].joined == 4
    assert max(found[row["ld.global.f32"]].at) < min(found[row["add.f32"]].at)


def test_four_loads_are_under_way_where_four_iterations_are_joined():
    arrays = np.zeros(4096, np.float32), np.zeros(32, np.float32)
    launch = ptxsim.load((FOLDER / "loop.ptx").read_text()).prepare("sum", 1, 32, 1, 0, [*arrays, 8])
    (steps,) = with_costs(sample(launch, sms=132, assembly=CUBIN).execution, chip("h200")).warps
    loads = [number for number, step in enumerate(steps) if type(step.does) is Global]
    waits = [
        number for number, step in enumerate(steps) if any(name.startswith("%f2") for name, _ in step.waits)
    ]
    assert sum(load < waits[0] for load in loads) == 4 and len(loads) == 9
